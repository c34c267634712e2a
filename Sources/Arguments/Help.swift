import Glibc

/// Help and usage texts, wrapped to the terminal.
enum Help {
    static func name(_ path: [any ParsableCommand.Type]) -> String { path.map { $0.name }.joined(separator: " ") }

    static func usage(_ path: [any ParsableCommand.Type], prefix: String) -> String {
        guard let command = path.last else { return "" }
        if let usage = command.configuration.usage { return wrapped(usage, first: prefix, indent: 2) }
        let parts = NamedDeclaration.all(in: command.init()).map { item in
            let more = item.declaration.isRepeated ? " ..." : ""
            return item.isPositional && item.declaration.isMissing ? item.shown + more : "[\(item.shown)\(more)]"
        }
        let commands = command.configuration.subcommands.isEmpty ? [] : ["<subcommand>"]
        return wrapped(([name(path)] + parts + commands).joined(separator: " "), first: prefix, indent: 2)
    }

    static func text(_ path: [any ParsableCommand.Type]) -> String {
        guard let command = path.last else { return "" }
        let configuration = command.configuration
        let declared = NamedDeclaration.all(in: command.init())
        var sections = [wrapped(configuration.abstract, first: "OVERVIEW: ", indent: 0)]
        if !configuration.discussion.isEmpty {
            sections.append(wrapped(configuration.discussion, first: "", indent: 0))
        }
        sections.append(usage(path, prefix: "USAGE: "))
        var options = declared.filter { !$0.isPositional }.map { ($0.shown, described($0)) }
        if !configuration.version.isEmpty { options.append(("--version", "Show the version.")) }
        options.append(("-h, --help", "Show help information."))
        let commands = configuration.subcommands.map { next in
            let isUsual = next == configuration.defaultSubcommand
            return (next.name + (isUsual ? " (default)" : ""), next.configuration.abstract)
        }
        let lists = [
            ("ARGUMENTS", declared.filter(\.isPositional).map { ($0.shown, described($0)) }), ("OPTIONS", options),
            ("SUBCOMMANDS", commands),
        ]
        for (title, rows) in lists where !rows.isEmpty { sections.append("\(title):\n" + table(rows)) }
        if !commands.isEmpty {
            let group = path.dropFirst().map { $0.name + " " }.joined()
            sections.append("  See '\(path[0].name) help \(group)<subcommand>' for detailed help.")
        }
        return sections.joined(separator: "\n\n") + "\n"
    }

    private static func described(_ item: NamedDeclaration) -> String {
        let words = item.declaration.words
        let facts =
            (words.isEmpty ? [] : ["values: " + words.joined(separator: ", ")])
            + (item.declaration.defaultText.map { ["default: " + $0] } ?? [])
        return item.declaration.help + (facts.isEmpty ? "" : " (\(facts.joined(separator: "; ")))")
    }

    private static let column = 26

    private static func table(_ rows: [(String, String)]) -> String {
        rows.map { name, text in
            let start = "  " + name
            let isWide = start.count > column - 2
            let first = isWide ? "" : start + String(repeating: " ", count: column - start.count)
            let lines = wrapped(
                text, first: isWide ? String(repeating: " ", count: column) : first, indent: column)
            return isWide ? "\(start)\n\(lines)" : lines
        }
        .joined(separator: "\n")
    }

    /// The width of the terminal, else of COLUMNS, else 80.
    private static let width: Int = {
        var size = winsize()
        if ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return max(40, Int(size.ws_col)) }
        return max(40, getenv("COLUMNS").flatMap { Int(String(cString: $0)) } ?? 80)
    }()

    /// The text in lines of at most ``width``, the first beginning with `first`, the others indented.
    private static func wrapped(_ text: String, first: String, indent: Int) -> String {
        var lines: [String] = []
        for (index, paragraph) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            var line = index == 0 ? first : String(repeating: " ", count: indent)
            var isEmpty = true
            for word in paragraph.split(separator: " ") {
                if !isEmpty, line.count + 1 + word.count > width {
                    lines.append(line)
                    line = String(repeating: " ", count: indent)
                    isEmpty = true
                }
                line += (isEmpty ? "" : " ") + word
                isEmpty = false
            }
            lines.append(line)
        }
        return lines.joined(separator: "\n")
    }
}
