import Testing

@testable import Arguments

/// Command lines as a person types them, on a program of three commands.
@Suite struct ArgumentsTests {
    private enum Colour: String, CaseIterable, ExpressibleByArgument {
        case red, green
    }

    private struct Common: ParsableArguments {
        @Flag(help: "Say more.")
        var loud = false

        func validate() throws {
            if loud { throw ValidationError("not at night") }
        }
    }

    private struct Paint: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "paint", abstract: "Paint things.", discussion: "It dries.")

        @Argument(help: "The wall.", completion: .list(["north", "south"]))
        var wall: String
        @Argument(help: "More walls.", completion: .file())
        var others: [String]
        @Option(help: "The colour.")
        var colour: Colour?
        @Option(name: .customLong("kind"), help: "The kind.")
        var ownKind: Colour = .red
        @Option(help: "How often.")
        var coatCount: UInt32 = 2
        @Option(help: "A mark.")
        var mark: [String] = []
        @OptionGroup var common: Common
    }

    private struct Run: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run", abstract: "Run.", usage: "house run -- COMMAND")

        @Flag(help: "Quickly.")
        var fast = false
        @Argument(parsing: .postTerminator, help: "The command.")
        var command: [String]
    }

    private struct List: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "list", abstract: "List rooms.")
    }

    private struct Rooms: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rooms", abstract: "Rooms.", subcommands: [List.self], defaultSubcommand: List.self)
    }

    private struct House: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "house", abstract: "Keep a house.", version: "1.2",
            subcommands: [Paint.self, Run.self, Rooms.self])
    }

    private func parsed<Command: ParsableCommand>(_ line: String, as: Command.Type) throws -> Command {
        try #require(try House.parse(line.split(separator: " ").map(String.init)) as? Command)
    }

    /// What is complained of; "" for nothing.
    private func complaint(_ line: String) -> String {
        do {
            _ = try House.parse(line.split(separator: " ").map(String.init))
            return ""
        } catch Ending.wrong(let message, _) {
            return message
        } catch {
            return "\(error)"
        }
    }

    private func printed(_ line: String) -> String {
        do {
            _ = try House.parse(line.split(separator: " ", omittingEmptySubsequences: false).map(String.init))
            return ""
        } catch Ending.print(let text) {
            return text
        } catch {
            return "\(error)"
        }
    }

    @Test func words_becomeValues() throws {
        let paint = try parsed(
            "paint --colour=green a --mark x b --mark=y --coat-count 7 -- --c", as: Paint.self)
        #expect(paint.wall == "a" && paint.others == ["b", "--c"] && paint.mark == ["x", "y"])
        #expect(paint.colour == .green && paint.ownKind == .red && paint.coatCount == 7 && !paint.common.loud)
        let other = try parsed("paint - b --kind green", as: Paint.self)
        #expect(other.wall == "-" && other.colour == nil && other.ownKind == .green && other.coatCount == 2)
        #expect(paint.wall == "a", "each parse has values of its own")
    }

    @Test func commandsOfOthers_areBehindTwoDashes() throws {
        let run = try parsed("run --fast -- sh -c --fast", as: Run.self)
        #expect(run.command == ["sh", "-c", "--fast"] && run.fast)
        #expect(try parsed("run", as: Run.self).command.isEmpty)
        #expect(complaint("run sh") == "Unexpected argument 'sh'")
    }

    @Test func groupWithoutAWord_isItsDefault() throws {
        _ = try parsed("rooms", as: List.self)
        _ = try parsed("rooms list", as: List.self)
    }

    @Test(arguments: [
        ("paint a", "Missing expected argument '<others>'"),
        ("paint", "Missing expected argument '<wall>'"),
        ("paint a b --colour", "Missing value for '--colour <colour>'"),
        ("paint a b --colour --loud", "Missing value for '--colour <colour>'"),
        ("paint a b --colour blue", "The value 'blue' is invalid for '--colour <colour>'. Use one of: red, green"),
        ("paint a b --coat-count -1", "Missing value for '--coat-count <coat-count>'"),
        ("paint a b --coat-count=-1", "The value '-1' is invalid for '--coat-count <coat-count>'"),
        ("paint a b --color red", "Unknown option '--color'. Did you mean '--colour'?"),
        ("paint a b --loud=1", "'--loud' takes no value"),
        ("paint a b --loud", "not at night"),
        ("pain", "Unexpected argument 'pain'. Did you mean 'paint'?"),
        ("--bogus", "Unknown option '--bogus'"),
        ("rooms list x", "Unexpected argument 'x'"),
        ("help cellar", "Unexpected argument 'cellar'"),
        ("--generate-completion-script tcsh", "Name the shell: bash, zsh or fish."),
    ])
    func wrongUsage_isNamed(line: String, message: String) {
        #expect(complaint(line) == message)
    }

    @Test func help_listsWhatThereIs() {
        #expect(
            printed("paint --help") == """
                OVERVIEW: Paint things.

                It dries.

                USAGE: house paint <wall> <others> ... [--colour <colour>] [--kind <kind>]
                  [--coat-count <coat-count>] [--mark <mark> ...] [--loud]

                ARGUMENTS:
                  <wall>                  The wall.
                  <others>                More walls.

                OPTIONS:
                  --colour <colour>       The colour. (values: red, green)
                  --kind <kind>           The kind. (values: red, green; default: red)
                  --coat-count <coat-count>
                                          How often. (default: 2)
                  --mark <mark>           A mark.
                  --loud                  Say more.
                  -h, --help              Show help information.

                """)
        #expect(printed("help paint") == printed("paint -h"))
        #expect(printed("help") == printed("--help"))
        #expect(printed("help").contains("SUBCOMMANDS:\n  paint                   Paint things.\n"))
        #expect(printed("help rooms").contains("  list (default)          List rooms.\n"))
        #expect(printed("run --help").contains("USAGE: house run -- COMMAND\n"))
        #expect(printed("--version") == "1.2\n")
    }

    @Test(arguments: [
        ("", "paint run rooms"), ("r", "run rooms"), ("paint n", "north"), ("paint north ", ":files"),
        ("paint --c", "--colour --coat-count"), ("paint --colour ", "red green"), ("paint --colour = g", "green"),
        ("paint --colour =", "red green"), ("rooms ", "list"), ("run -- ", ""), ("paint --colour red s", "south"),
    ])
    func shell_isOfferedWhatFits(line: String, offered: String) {
        #expect(
            printed("---completion " + line) == offered.split(separator: " ").map { $0 + "\n" }.joined())
    }
}
