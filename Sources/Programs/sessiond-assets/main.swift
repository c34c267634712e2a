import Assets

AssetsProgram.main(CommandLine.arguments)
