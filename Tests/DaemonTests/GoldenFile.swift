import Foundation
import TestSupport
import Testing

/// The exact output of programs, in a file of `Tests/Golden`.
///
/// With SESSIOND_GOLDEN=write, the file is written, to be read and committed. Times, processes and folders, which
/// differ from run to run, are replaced. Columns are separated by two spaces, because their width depends on those
/// texts.
struct GoldenFile {
    let name: String

    private var file: URL { repository.appendingPathComponent("Tests/Golden/" + name) }

    /// The text of the file.
    var text: String { get throws { try String(contentsOf: file, encoding: .utf8) } }

    /// Reports the first line that differs.
    func expect(_ sections: [String], _ location: SourceLocation = #_sourceLocation) throws {
        let printed = sections.joined(separator: "\n\n") + "\n"
        guard ProcessInfo.processInfo.environment["SESSIOND_GOLDEN"] != "write" else {
            return try printed.write(to: file, atomically: true, encoding: .utf8)
        }
        let (old, new) = (try text.components(separatedBy: "\n"), printed.components(separatedBy: "\n"))
        for (line, (expected, actual)) in zip(old, new).enumerated() where expected != actual {
            Issue.record("Tests/Golden/\(name):\(line + 1)\n- \(expected)\n+ \(actual)", sourceLocation: location)
            return
        }
        #expect(old.count == new.count, sourceLocation: location)
    }

    /// The text without the parts that differ from run to run.
    static func masked(_ text: String, of stage: DaemonStage) -> String {
        var text = text
        for (pattern, replacement) in [
            (NSRegularExpression.escapedPattern(for: stage.bus.folder.path), "FOLDER"),
            (NSRegularExpression.escapedPattern(for: repository.path), "REPOSITORY"),
            // Not a part of a time, such as 19:22:10.
            ("(?<![:.])\\b\(stage.daemon.processID)\\b(?!:)", "DAEMON"), ("(?<![:.])\\b\(getpid())\\b(?!:)", "PID"),
            ("(\"(?:[a-z]*-?time-usec|since-usec|until-usec|duration-usec|StateSince)\":)[0-9]+", "$1TIME"),
            ("(,\"sequence\":)[0-9]+", "$1NUMBER"), ("(\"ProcessId\":)[1-9][0-9]*", "$1PID"),
            ("\\b(pid|kill -CONT) [0-9]+", "$1 PID"),
            ("\"Owner\":\":[0-9.]+\"", "\"Owner\":\"OWNER\""), ("(?<= ):1\\.[0-9]+\\b", "OWNER"),
            ("[0-9.]+ [GM]B free: [0-9.]+ (s|min|h|d)", "ROOM free: TIME"),
            ("\\b[0-9]+(\\.[0-9])? (s|min)( ago)?\\b", "AGE$3"), (" {2,}", "  "), (" +(\r?\n)", "$1"),
            // It depends on the machine whether a user may have namespaces.
            ("(\"workers\",\"status\":\")[a-z]+(\",\"text\":\")[^}]*(\"\\})", "$1ok$2ISOLATION$3"),
            ("(?s)(warning +workers .*error and )4( warnings)", "$1\\3$2"),
            ("(?:ok|warning)( +workers +).*(?:\r?\n +→ echo .*sysctl.*)?", "STATUS$1ISOLATION"),
            // PulseAudio offers what an output plays, PipeWire nothing.
            ("(?<=no input, such as a microphone: )(this|the) recor.*", "WHAT IS RECORDED"),
            // It depends on the machine which server is installed, and whether systemd runs.
            (
                "(pipewire-pulse &|pulseaudio --start|systemctl --user enable --now [a-z-]+|apt install [a-z-]+)",
                "START"
            ),
            ("\\b[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3})?\\b", "CLOCK"),
        ] {
            text = text.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
        }
        return text
    }
}
