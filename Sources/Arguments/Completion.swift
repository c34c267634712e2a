/// Completions for shells: a short script for each, which asks the program itself what fits.
enum Completion {
    /// Behind it come the words so far, the last of which is to be completed.
    static let word = "---completion"
    /// A line that stands for the names of files.
    private static let files = ":files"

    /// What fits, one on each line.
    static func offer(_ words: [String], _ root: any ParsableCommand.Type) -> String {
        // bash takes the = of --name=value for a word.
        let words = words.enumerated().compactMap { index, word -> String? in
            guard word == "=", index > 0, words[index - 1].hasPrefix("--") else { return word }
            return index == words.count - 1 ? "" : nil
        }
        guard let current = words.last else { return "" }
        var command = root
        var place = 0
        var awaited: NamedDeclaration?
        var isTerminated = false
        var declared = NamedDeclaration.all(in: command.init())
        for word in words.dropLast() {
            if awaited != nil {
                awaited = nil
            } else if isTerminated {
                place += 1
            } else if word == "--" {
                isTerminated = true
            } else if word.hasPrefix("-") {
                awaited = declared.first { "--" + $0.name == word && !$0.isFlag && !$0.isPositional }
            } else if let next = command.configuration.subcommands.first(where: { $0.name == word }) {
                command = next
                declared = NamedDeclaration.all(in: command.init())
            } else {
                place += 1
            }
        }
        if let awaited { return lines(values(awaited, words, current), current) }
        if current.hasPrefix("-"), !isTerminated {
            return lines(declared.filter { !$0.isPositional }.map { "--" + $0.name } + ["--help"], current)
        }
        let commands = command.configuration.subcommands.map { $0.name }
        let positional = declared.filter(\.isPositional)
        let next = place < positional.count ? positional[place] : positional.last { $0.declaration.isRepeated }
        return lines(commands + (next.map { values($0, words, current) } ?? []), current)
    }

    private static func values(_ item: NamedDeclaration, _ words: [String], _ current: String) -> [String] {
        switch item.declaration.completion.source {
        case .values: item.declaration.words
        case .list(let list): list
        case .files: [files]
        case .custom(let list): list(words, words.count - 1, current)
        }
    }

    private static func lines(_ offered: [String], _ current: String) -> String {
        offered.filter { ($0.hasPrefix(current) || $0 == files) && !$0.contains { $0.isNewline } }.map { $0 + "\n" }
            .joined()
    }

    /// What a shell reads; nil: no such shell is known.
    static func script(_ shell: String, _ name: String) -> String? {
        switch shell {
        case "bash":
            """
            _\(name)() {
                local line
                COMPREPLY=()
                while IFS= read -r line; do
                    if [ "$line" = '\(files)' ]; then
                        compopt -o filenames 2>/dev/null
                        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$2")
                    else
                        COMPREPLY+=("$(printf %q "$line")")
                    fi
                done < <(\(name) \(word) "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
            }
            complete -F _\(name) \(name)

            """
        case "zsh":
            """
            #compdef \(name)
            _\(name)() {
                local -a offered
                offered=("${(@f)$(\(name) \(word) "${(@)words[2,CURRENT]}" 2>/dev/null)}")
                if (( ${offered[(Ie)\(files)]} )); then _files; fi
                compadd -- "${(@)offered:#(\(files)|)}"
            }
            if [ "$funcstack[1]" = _\(name) ]; then _\(name) "$@"; else compdef _\(name) \(name); fi

            """
        case "fish":
            """
            function __\(name)_offer
                set -l words (commandline -opc) (commandline -ct)
                for line in (\(name) \(word) $words[2..] 2>/dev/null)
                    if test "$line" = '\(files)'
                        __fish_complete_path (commandline -ct)
                    else
                        echo $line
                    end
                end
            end
            complete -c \(name) -f -a '(__\(name)_offer)'

            """
        default: nil
        }
    }
}
