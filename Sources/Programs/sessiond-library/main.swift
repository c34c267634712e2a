import Library

LibraryProgram.main(CommandLine.arguments)
