import ArgumentParser

/// The completions for shells, as the argument parser writes them, with what it does not do right.
enum CompletionScript {
    /// The script that these arguments ask for; nil if they ask for none, or for an unknown shell.
    static func text(for arguments: [String]) -> String? {
        let option = "--generate-completion-script"
        guard let first = arguments.first, first == option || first.hasPrefix(option + "="),
            let word = first == option ? arguments.dropFirst().first : String(first.dropFirst(option.count + 1)),
            let shell = CompletionShell(rawValue: word)
        else { return nil }
        let script = Sessionctl.completionScript(for: shell)
        switch shell {
        case .bash: return corrected(script, bash)
        case .fish: return corrected(script, fish)
        default: return script
        }
    }

    private static func corrected(_ script: String, _ changes: [(old: String, new: String)]) -> String {
        changes.reduce(script) { text, change in
            guard let place = text.firstRange(of: change.old) else { return text }
            return text.replacingCharacters(in: place, with: change.new)
        }
    }

    /// bash takes all words for names of files. If there is a folder with the name of a session, it adds a slash. So only
    /// names of files are completed as such, and others are quoted here.
    private static let bash = [
        (old: "complete -o filenames -F ", new: "complete -F "),
        (
            old: """
            __sessionctl_add_completions() {
                local completion
                while IFS='' read -r completion; do
                    COMPREPLY+=("${completion}")
            """,
            new: """
            __sessionctl_add_completions() {
                local completion
                [[ "${1}" == -W ]] || compopt -o filenames 2>/dev/null
                while IFS='' read -r completion; do
                    [[ "${1}" != -W || "${cur}" == \\"* || "${cur}" == \\'* ]] || printf -v completion %q "${completion}"
                    COMPREPLY+=("${completion}")
            """
        ),
    ]

    /// The position in the word, which our completions do not need: fish before 4 complains if there is no command line.
    private static let fish = [
        (
            old: "        commandline -o $argv\n",
            new: "        commandline -o $argv 2>/dev/null; or echo 0\n"
        )
    ]
}

extension String {
    fileprivate func firstRange(of part: String) -> Range<String.Index>? {
        let (bytes, wanted) = (Array(utf8), Array(part.utf8))
        guard wanted.count <= bytes.count else { return nil }
        return (0...(bytes.count - wanted.count)).first { bytes[$0..<($0 + wanted.count)].elementsEqual(wanted) }
            .map { utf8.index(startIndex, offsetBy: $0)..<utf8.index(startIndex, offsetBy: $0 + wanted.count) }
    }

    fileprivate func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
        String(self[..<range.lowerBound]) + text + String(self[range.upperBound...])
    }
}
