import Live

LiveProgram.main()
