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
        case .bash: return corrected(script, bash + queriesInBash)
        case .zsh: return corrected(script, queriesInZsh)
        case .fish: return corrected(script, fish + queriesInFish)
        default: return script
        }
    }

    private static func corrected(_ script: String, _ changes: [(old: String, new: String)]) -> String {
        changes.reduce(script) { text, change in text.replacing(first: change.old, with: change.new) }
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

    // MARK: The words of `library list`

    // The parser offers the subcommands of `library` only, and no words of the one that may be left out: `songs`,
    // `albums` and so on.

    private static let queries = LibraryListCommand.Preset.allCases
    private static let libraryCommands = LibraryCommand.configuration.subcommands.map { CommandNames.name(of: $0) }

    private static var queriesInBash: [(old: String, new: String)] {
        let commands = libraryCommands.joined(separator: " ")
        let branch = "    \(libraryCommands.joined(separator: "|")))\n"
        return [
            (
                old: branch,
                new: """
                    \(queries.map(\.rawValue).joined(separator: "|")))
                        # The subcommand may be left out before these words
                        unparsed_words=("${subcommand}" "${unparsed_words[@]}")
                        _sessionctl_library_list
                        ;;
                \(branch)
                """
            ),
            (
                old: "compgen -W '\(commands)'",
                new: "compgen -W '\(commands) \(queries.map(\.rawValue).joined(separator: " "))'"
            ),
        ]
    }

    private static var queriesInZsh: [(old: String, new: String)] {
        let branch = "        \(libraryCommands.joined(separator: "|")))\n"
        let first = "            'list:\(LibraryListCommand.configuration.abstract)'\n"
        return [
            (old: first, new: first + queries.map { "            '\($0.rawValue):\($0.abstract)'\n" }.joined()),
            (
                old: branch,
                new: """
                        \(queries.map(\.rawValue).joined(separator: "|")))
                            words=(list "${words[@]}")
                            (( CURRENT++ ))
                            _sessionctl_library_list && ret=0
                            ;;
                \(branch)
                """
            ),
        ]
    }

    private static var queriesInFish: [(old: String, new: String)] {
        let words = queries.map(\.rawValue).joined(separator: " ")
        let open = """
                    case 'library'
                        __sessionctl_parse_subcommand 0 'version' 'h/help'

            """
        let offer =
            "complete -c 'sessionctl' -n '__sessionctl_should_offer_completions_for_positional "
            + "\"sessionctl library\" -eq 1' -fa "
        return [
            (
                old: open,
                new: open
                    + "            contains -- \"$unparsed_tokens[1]\" \(words); and set -p unparsed_tokens list\n"
            ),
            (
                old: offer + "'list'",
                new: queries.map { "\(offer)'\($0.rawValue)' -d '\($0.abstract)'\n" }.joined() + offer + "'list'"
            ),
        ]
    }
}
