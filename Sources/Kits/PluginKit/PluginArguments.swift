import DBus
import PluginAPI
public import SessionKit

/// The command line of a plugin program. Parsed here, because an argument library would need Foundation.
public struct PluginArguments {
    /// The parameters of the session: the program's own category and name, unless given on the command line.
    public var session: AudioSessionClient.Description
    /// The id of the manifest; nil for a program that was not started as a plugin.
    var pluginID: String?
    /// Whether the daemon has started it, for all programs.
    public var isService: Bool { pluginID != nil }
    private var isSystem = false
    /// Whether it exits, as on SIGTERM, when the program that started it exits.
    var endsWithParent = false
    /// The item to play, or the file to record, as given; nil: serve D-Bus.
    public var item: String?
    /// The length of a recording in seconds.
    public var duration: Double?
    /// The uid of the input to record from; empty: that of the route.
    public var input = ""

    /// The bus that the starting daemon named; ignored unless a daemon started the program.
    var bus: BusAddress { isSystem ? .system : pluginID == nil ? .session : .starter }

    /// The result of parsing.
    enum Outcome {
        case run(PluginArguments)
        /// To standard output, exit 0.
        case print(String)
        /// To standard error, exit 64.
        case wrong(String)
    }

    /// Only programs with one session take its parameters; only kinds that record take `--input` and `--duration`.
    static func parse(_ words: [String], _ kind: PluginKind) -> Outcome {
        var reader = PluginArguments(
            session: AudioSessionClient.Description(name: kind.program, category: kind.category ?? .ambient))
        do throws(Wrong) {
            return try reader.read(words, kind)
        } catch {
            return .wrong("\(error.message)\n\n\(usage(kind))")
        }
    }

    private struct Wrong: Error {
        let message: String
    }

    private mutating func read(_ words: [String], _ kind: PluginKind) throws(Wrong) -> Outcome {
        var rest = words[...]
        var options: [String] = []
        var mayBeOption = true
        while let word = rest.popFirst() {
            guard mayBeOption, word.hasPrefix("-"), word != "-" else {
                guard !kind.item.isEmpty else { throw Wrong(message: "unknown argument \(quoted(word))") }
                guard item == nil else { throw Wrong(message: "only one item is allowed; remove \(quoted(word))") }
                item = word
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            var inline: String? = parts.count == 2 ? parts[1] : nil
            func value() throws(Wrong) -> String {
                defer { inline = nil }
                guard let value = inline ?? rest.popFirst() else { throw Wrong(message: "\(parts[0]) needs a value") }
                return value
            }
            switch parts[0] {
            case "--": mayBeOption = false
            case "--help", "-h": return .print(PluginArguments.usage(kind))
            case "--name": session.name = try value()
            case "--category" where kind.category != nil: session.category = try parsed(value(), parts[0])
            case "--mode" where kind.category != nil: session.mode = try parsed(value(), parts[0])
            case "--class" where kind.category != nil: session.sessionClass = try parsed(value(), parts[0])
            case "--option" where kind.category != nil: options.append(try value())
            case "--id": pluginID = try value()
            case "--system": isSystem = true
            case "--die-with-parent": endsWithParent = true
            case "--hosted" where kind.category != nil:
                (session.isHosted, endsWithParent) = (true, true)
            case "--input" where kind.records: input = try value()
            case "--duration" where kind.records:
                guard let seconds = Double(try value()), seconds > 0, seconds < 1e9 else {
                    throw Wrong(message: "--duration needs a number of seconds above 0")
                }
                duration = seconds
            default: throw Wrong(message: "unknown argument \(quoted(word))")
            }
            if inline != nil { throw Wrong(message: "\(parts[0]) takes no value") }
        }
        do throws(SessionError) {
            let legal = try Configuration(
                category: session.category.rawValue, mode: session.mode.rawValue, options: options)
            session.options = legal.requestedOptions
        } catch {
            throw Wrong(message: error.message)
        }
        return .run(self)
    }

    private func parsed<Word: RawRepresentable<String> & CaseIterable>(
        _ text: String, _ option: String
    ) throws(Wrong) -> Word {
        guard let word = Word(rawValue: text) else {
            let names = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw Wrong(message: "\(option) needs one of \(names)")
        }
        return word
    }

    private static func usage(_ kind: PluginKind) -> String {
        var usage =
            kind.item.isEmpty
            ? """
            Usage: \(kind.program) [OPTION]...

            \(kind.action): serves D-Bus until SIGTERM.


            """
            : """
            Usage: \(kind.program) [OPTION]... [\(kind.item)]

            \(kind.action); without it, serves D-Bus until SIGTERM.


            """
        if let category = kind.category {
            usage += """
                  --name NAME        the name of the session that users see
                  --category C       the session's category (default: \(category.rawValue))
                  --mode M           its mode
                  --option O         one of its options; may be given more than once
                  --class CLASS      app, alert or call
                  --hosted           sound in the session of the program that started this one, and exit with it

                """
        } else {
            usage += "  --name NAME        the name of the plugin that users see\n"
        }
        usage += """
              --system           use the daemon on the system bus
              --id PLUGIN-ID     register with the daemon as that plugin
              --die-with-parent  exit when the program that started this one exits

            """
        if kind.records {
            usage += """
                  --input UID        record from this input
                  --duration S       stop after S seconds

                """
        }
        return usage + "  --help             print this help\n"
    }
}
