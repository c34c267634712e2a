import Movie

MovieProgram.main()
