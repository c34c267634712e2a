import ArgumentParser

/// The names of the subcommands, and which of them a mistyped word may mean.
struct CommandNames {
    /// The first word that should be a subcommand and is none; nil if there is no such word.
    ///
    /// The parser itself would take it for an argument of the subcommand that is the default.
    static func unknown(in arguments: [String], of command: any ParsableCommand.Type) -> Complaint? {
        let subcommands = command.configuration.subcommands
        guard !subcommands.isEmpty, let word = arguments.first, !word.hasPrefix("-"), !word.isEmpty else { return nil }
        if let next = subcommands.first(where: { name(of: $0) == word || $0.configuration.aliases.contains(word) }) {
            return unknown(in: Array(arguments.dropFirst()), of: next)
        }
        let isRoot = command == Sessionctl.self
        // The word may be an argument of the default subcommand, as in `sessionctl library songs`.
        guard isRoot || command.configuration.defaultSubcommand == nil else { return nil }
        // `sessionctl help play` is a subcommand of the parser.
        guard !(isRoot && word == "help") else { return nil }
        let names = subcommands.filter { $0.configuration.shouldDisplay }.map { name(of: $0) }
        let prefix = isRoot ? "sessionctl" : "sessionctl " + name(of: command)
        var text = "there is no command '\(prefix) \(word.escaped)'"
        if let nearest = nearest(to: word, among: names) {
            text += "; did you mean '\(prefix) \(nearest)'?"
        } else {
            text += "; '\(prefix) --help' lists all commands"
        }
        return Complaint(code: 64, message: text)
    }

    static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? String(describing: command).lowercased()
    }

    /// The name that differs least from the word: by its beginning, or by at most two typing errors (one, if the word is
    /// short); nil if none is near.
    static func nearest(to word: String, among names: [String]) -> String? {
        let word = word.lowercased()
        if word.count >= 2, let longer = names.first(where: { $0.hasPrefix(word) }) { return longer }
        let most = word.count <= 3 ? 1 : 2
        return names.map { ($0, distance(Array(word.utf8), Array($0.utf8))) }.filter { $0.1 <= most }
            .min { $0.1 < $1.1 }?.0
    }

    /// How many characters are added, left out, replaced or exchanged with their neighbour.
    private static func distance(_ first: [UInt8], _ second: [UInt8]) -> Int {
        // A long word is near to no name.
        guard abs(first.count - second.count) <= 2 else { return .max }
        var rows = [Array(0...second.count)]
        for (row, byte) in first.enumerated() {
            var line = [row + 1]
            for (column, other) in second.enumerated() {
                var best = min(rows[row][column + 1] + 1, line[column] + 1, rows[row][column] + (byte == other ? 0 : 1))
                if row > 0, column > 0, byte == second[column - 1], first[row - 1] == other {
                    best = min(best, rows[row - 1][column - 1] + 1)
                }
                line.append(best)
            }
            rows.append(line)
        }
        return rows[first.count][second.count]
    }
}
