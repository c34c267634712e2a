import Glibc

/// What a command line asks for, other than a command.
enum Ending: Error {
    /// To standard output, exit 0.
    case print(String)
    /// To standard error, exit 64: the message and the usage of the command.
    case wrong(String, [any ParsableCommand.Type])
}

extension ParsableCommand {
    /// The command that the command line names, with its arguments.
    ///
    /// - Throws: what ``exit(withError:)`` prints.
    public static func parseAsRoot() throws -> any ParsableCommand {
        try parse(Array(CommandLine.arguments.dropFirst()))
    }

    static func parse(_ words: [String]) throws -> any ParsableCommand {
        if words.first == Completion.word { throw Ending.print(Completion.offer(Array(words.dropFirst()), self)) }
        var path: [any ParsableCommand.Type] = [self]
        var rest = words[...]
        while let command = path.last, !command.configuration.subcommands.isEmpty {
            let configuration = command.configuration
            if let word = rest.first, let next = configuration.subcommands.first(where: { $0.name == word }) {
                path.append(next)
                rest = rest.dropFirst()
                continue
            }
            switch rest.first {
            case "help":
                throw Ending.print(Help.text(try followed(rest.dropFirst(), from: path)))
            case "--help", "-h": throw Ending.print(Help.text(path))
            case "--version" where !configuration.version.isEmpty: throw Ending.print(configuration.version + "\n")
            case "--generate-completion-script" where path.count == 1:
                guard let script = Completion.script(rest.dropFirst().first ?? "", name) else {
                    throw Ending.wrong("Name the shell: bash, zsh or fish.", path)
                }
                throw Ending.print(script)
            default: break
            }
            if let usual = configuration.defaultSubcommand {
                path.append(usual)
            } else if let word = rest.first {
                throw Ending.wrong(
                    word.hasPrefix("-") ? unknownOption(word, among: []) : unexpected(word, path), path)
            } else {
                throw Ending.print(Help.text(path))
            }
        }
        return try filled(path.last ?? self, with: rest, path)
    }

    static var name: String { configuration.commandName }

    /// The command with its arguments.
    private static func filled(
        _ type: any ParsableCommand.Type, with words: ArraySlice<String>, _ path: [any ParsableCommand.Type]
    ) throws -> any ParsableCommand {
        let command = type.init()
        let declared = NamedDeclaration.all(in: command)
        var rest = words
        var isTerminated = false
        while let word = rest.popFirst() {
            if isTerminated {
                try place(word, declared, isTerminated: true, path)
            } else if word == "--" {
                isTerminated = true
            } else if word == "--help" || word == "-h" {
                throw Ending.print(Help.text(path))
            } else if word.hasPrefix("-"), word != "-" {
                try set(word, &rest, declared, path)
            } else {
                try place(word, declared, isTerminated: false, path)
            }
        }
        if let missing = declared.first(where: { $0.declaration.isMissing && !$0.takesOnlyTheTerminated }) {
            throw Ending.wrong("Missing expected argument '\(missing.shown)'", path)
        }
        // What comes after -- has no default; the command says what is missing.
        for item in declared where item.declaration.isMissing {
            (item.declaration as? Slot<[String]>)?.value = []
        }
        do {
            for group in NamedDeclaration.groups(in: command) { try group.validate() }
            try command.validate()
        } catch let error as ValidationError {
            throw Ending.wrong(error.message, path)
        }
        return command
    }

    /// An option or a flag, with its value from the same word or the next.
    private static func set(
        _ word: String, _ rest: inout ArraySlice<String>, _ declared: [NamedDeclaration],
        _ path: [any ParsableCommand.Type]
    ) throws {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let item = declared.first(where: { !$0.isPositional && "--" + $0.name == parts[0] }) else {
            throw Ending.wrong(unknownOption(parts[0], among: declared), path)
        }
        if item.isFlag {
            guard parts.count == 1 else { throw Ending.wrong("'\(item.shown)' takes no value", path) }
            _ = item.declaration.take("")
            return
        }
        guard let value = parts.count == 2 ? parts[1] : rest.first, parts.count == 2 || !isOption(value) else {
            throw Ending.wrong("Missing value for '\(item.shown)'", path)
        }
        if parts.count == 1 { rest = rest.dropFirst() }
        try take(value, item, path)
    }

    /// A word without a name.
    private static func place(
        _ word: String, _ declared: [NamedDeclaration], isTerminated: Bool, _ path: [any ParsableCommand.Type]
    ) throws {
        let next = declared.first {
            $0.isPositional && (isTerminated || !$0.takesOnlyTheTerminated)
                && ($0.declaration.isRepeated || !$0.declaration.wasGiven)
        }
        guard let next else { throw Ending.wrong(unexpected(word, path), path) }
        try take(word, next, path)
    }

    private static func take(_ value: String, _ item: NamedDeclaration, _ path: [any ParsableCommand.Type]) throws {
        guard !item.declaration.take(value) else { return }
        let words = item.declaration.words
        throw Ending.wrong(
            "The value '\(value)' is invalid for '\(item.shown)'"
                + (words.isEmpty ? "" : ". Use one of: \(words.joined(separator: ", "))"), path)
    }

    private static func isOption(_ word: String) -> Bool { word.hasPrefix("-") && word.count > 1 }

    private static func unexpected(_ word: String, _ path: [any ParsableCommand.Type]) -> String {
        let near = Spelling.nearest(to: word, in: path.last?.configuration.subcommands.map { $0.name } ?? [])
        return "Unexpected argument '\(word)'" + (near.map { ". Did you mean '\($0)'?" } ?? "")
    }

    private static func unknownOption(_ word: String, among declared: [NamedDeclaration]) -> String {
        let names = declared.filter { !$0.isPositional }.map { "--" + $0.name } + ["--help"]
        let near = Spelling.nearest(to: word, in: names)
        return "Unknown option '\(word)'" + (near.map { ". Did you mean '\($0)'?" } ?? "")
    }

    /// The commands that those words name, one below the other.
    private static func followed(
        _ words: ArraySlice<String>, from path: [any ParsableCommand.Type]
    ) throws -> [any ParsableCommand.Type] {
        try words.reduce(into: path) { path, word in
            guard let next = path.last?.configuration.subcommands.first(where: { $0.name == word }) else {
                throw Ending.wrong(unexpected(word, path), path)
            }
            path.append(next)
        }
    }

    /// Ends the program: prints the help or a completion and exits 0, or complains and exits 64 for wrong usage, 1 for
    /// any other error.
    public static func exit(withError error: any Error) -> Never {
        switch error {
        case Ending.print(let text):
            print(text, terminator: "")
            // A full disk must not look like an empty answer.
            Glibc.exit(fflush(nil) == 0 ? 0 : 1)
        case Ending.wrong(let message, let path):
            complain("Error: \(message)\n\(Help.usage(path, prefix: "Usage: "))\n  See '\(Help.name(path)) --help'.\n")
            Glibc.exit(64)
        case let error as ValidationError:
            complain("Error: \(error.message)\n")
            Glibc.exit(64)
        default:
            complain("Error: \(error)\n")
            Glibc.exit(1)
        }
    }

    private static func complain(_ text: String) {
        var text = text
        text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// What somebody may have meant.
enum Spelling {
    /// The word that differs least, by two letters at most.
    static func nearest(to word: String, in words: [String]) -> String? {
        words.map { (distance(word, $0), $0) }.filter { $0.0 <= 2 }.min { $0.0 < $1.0 }?.1
    }

    /// How many letters have to be put in, taken out or changed.
    static func distance(_ one: String, _ other: String) -> Int {
        let other = Array(other)
        var row = Array(0...other.count)
        for (index, letter) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in other.indices {
                let changed = diagonal + (letter == other[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(changed, diagonal + 1, row[column] + 1)
            }
        }
        return row[other.count]
    }
}
