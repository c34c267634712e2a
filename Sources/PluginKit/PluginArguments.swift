import DBus
import PluginAPI
public import SessionKit

/// A plugin program's command line. By hand, because an argument library would bring Foundation with it.
public struct PluginArguments {
    /// What the session is created with: the program's own category and name, unless the words say otherwise.
    public var session: AudioSessionClient.Description
    /// The manifest's id; nil for a program nobody started as a plugin.
    var pluginID: String?
    private var isSystem = false
    /// Whether it ends, as at SIGTERM, with the program that started it.
    var endsWithParent = false
    /// What to play or the file to record, as given; nil to serve.
    public var item: String?
    /// A recording's length in seconds.
    public var duration: Double?
    /// The uid of the input to record from; empty: the route's.
    public var input = ""

    /// A daemon that started it says which it serves; nobody else's word for that is meant for it.
    var bus: BusAddress { isSystem ? .system : pluginID == nil ? .session : .starter }

    /// What to do about the words.
    enum Outcome {
        case run(PluginArguments)
        /// To standard output, exit 0.
        case print(String)
        /// To standard error, exit 64.
        case wrong(String)
    }

    /// - Parameter kind: `PluginManifest.Kind.recorder` has `--duration` and `--input` too.
    static func parse(
        _ words: [String], program: String, kind: PluginManifest.Kind, category: Category
    ) -> Outcome {
        var reader = PluginArguments(session: AudioSessionClient.Description(name: program, category: category))
        do throws(Wrong) {
            return try reader.read(words, program: program, kind, category)
        } catch {
            return .wrong("\(error.message)\n\n\(usage(program, kind, category))")
        }
    }

    private struct Wrong: Error {
        let message: String
    }

    private mutating func read(
        _ words: [String], program: String, _ kind: PluginManifest.Kind, _ category: Category
    ) throws(Wrong) -> Outcome {
        let isRecorder = kind == .recorder
        var rest = words[...]
        var options: [String] = []
        var mayBeOption = true
        while let word = rest.popFirst() {
            guard mayBeOption, word.hasPrefix("-"), word != "-" else {
                guard item == nil else { throw Wrong(message: "one item only, not \(quoted(word)) too") }
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
            case "--help", "-h": return .print(PluginArguments.usage(program, kind, category))
            case "--name": session.name = try value()
            case "--category": session.category = try parsed(value(), parts[0])
            case "--mode": session.mode = try parsed(value(), parts[0])
            case "--class": session.sessionClass = try parsed(value(), parts[0])
            case "--option": options.append(try value())
            case "--id": pluginID = try value()
            case "--system": isSystem = true
            case "--die-with-parent": endsWithParent = true
            case "--input" where isRecorder: input = try value()
            case "--duration" where isRecorder:
                guard let seconds = Double(try value()), seconds > 0, seconds < 1e9 else {
                    throw Wrong(message: "--duration needs seconds, more than 0")
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

    private static func usage(_ program: String, _ kind: PluginManifest.Kind, _ category: Category) -> String {
        let isRecorder = kind == .recorder
        let (item, action) =
            switch kind {
            case .recorder: ("FILE", "Records into FILE until it is stopped")
            case .soundEffects: ("FILE", "Plays FILE, a sound of at most 30 s, to its end")
            default: ("URI|FILE", "Plays URI to its end")
            }
        return """
            Usage: \(program) [OPTION]... [\(item)]

            \(action); \
            without one, serves on the bus until SIGTERM.

              --name NAME        the session's name, as people read it
              --category C       the session's category (default: \(category.rawValue))
              --mode M           its mode
              --option O         one of its options; may be given again
              --class CLASS      app, alert or call
              --system           talk to the daemon on the system bus, and serve there
              --id PLUGIN-ID     register with the daemon as that plugin, on the bus that it serves
              --die-with-parent  end with the program that started this one

            """
                + (isRecorder
                    ? """
                      --input UID        record from that input
                      --duration S       stop after S seconds

                    """ : "")
                + "  --help             print this help\n"
    }
}
