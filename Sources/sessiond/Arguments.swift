import DBus
import Logging
import PluginAPI

/// The daemon's command line. Parsed here, because an argument library would need Foundation.
struct Arguments {
    var isSystem = false
    var configuration: String?
    var replace = false
    var logLevel = Logger.Level.notice

    enum Outcome {
        case run(Arguments)
        /// Printed to standard output, exit 0.
        case print(String)
        /// Printed to standard error, exit 64.
        case wrong(String)
    }

    static let usage = """
        Usage: sessiond [--system] [--config FILE] [--replace] [--log-level LEVEL]

          --system           serve the system bus instead of the session bus
          --config FILE      read this file instead of sessiond.conf (see sessiond.conf(5))
          --replace          take over the name org.sessiond1 from a running sessiond
          --log-level LEVEL  trace, debug, info, notice, warning, error or critical (default: notice)
          --version          print the version
          --help             print this help

        """

    static func parse(_ words: [String]) -> Outcome {
        var result = Arguments()
        var rest = words[...]
        while let word = rest.popFirst() {
            let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
            var value: String? = parts.count == 2 ? parts[1] : nil
            func argument() -> String? {
                defer { value = nil }
                return value ?? rest.popFirst()
            }
            switch parts.first ?? "" {
            case "--system": result.isSystem = true
            case "--replace": result.replace = true
            case "--help", "-h": return .print(usage)
            case "--version": return .print("sessiond \(version)\n")
            case "--config":
                guard let file = argument() else { return .wrong("--config needs a file") }
                result.configuration = file
            case "--log-level":
                guard let name = argument(), let level = Logger.Level(rawValue: name) else {
                    return .wrong("--log-level needs one of trace, debug, info, notice, warning, error, critical")
                }
                result.logLevel = level
            default: return .wrong("unknown argument '\(word)'")
            }
            if value != nil { return .wrong("\(parts[0]) takes no value") }
        }
        return .run(result)
    }
}
