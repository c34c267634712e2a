import DBus
import PluginAPI

/// The result of one check of `sessionctl doctor`.
struct Finding {
    enum Status: String {
        case ok
        /// Everything works, but perhaps not as expected.
        case warning
        /// Something does not work.
        case error
        /// It cannot be found out from here.
        case unknown

        var style: Style {
            switch self {
            case .ok: .good
            case .warning: .warning
            case .error: .bad
            case .unknown: .dim
            }
        }
    }

    let topic: String
    let status: Status
    let text: String
    /// The command, or the change, that fixes it.
    let remedy: String?

    var value: Value {
        var fields: [(String, Value)] = [
            ("topic", .string(topic)), ("status", .string(status.rawValue)), ("text", .string(text)),
        ]
        if let remedy { fields.append(("remedy", .string(remedy))) }
        return .properties(fields)
    }
}

/// The results of all checks, in the order of the output.
struct Diagnosis {
    private(set) var findings: [Finding] = []

    mutating func add(_ topic: String, _ status: Finding.Status, _ text: String, remedy: String? = nil) {
        findings.append(Finding(topic: topic, status: status, text: text, remedy: remedy))
    }

    func count(_ status: Finding.Status) -> Int { findings.count { $0.status == status } }

    var isHealthy: Bool { count(.error) == 0 }

    var json: String {
        JSON.object(
            .doctor,
            [
                ("Healthy", .bool(isHealthy)), ("Version", .string(version)),
                ("Findings", .array(of: "a{sv}", findings.map(\.value))),
            ])
    }

    /// One line for each finding, and below it the remedy.
    var table: Table {
        var table = Table()
        for finding in findings {
            table.add([
                Table.Cell(finding.status.rawValue, finding.status.style), Table.Cell(finding.topic, .strong),
                Table.Cell(finding.text.escaped),
            ])
            if let remedy = finding.remedy {
                table.add([Table.Cell(""), Table.Cell(""), Table.Cell("→ " + remedy.escaped, .strong)])
            }
        }
        return table
    }

    var summary: String {
        func counted(_ status: Finding.Status, _ word: String) -> [String] {
            let count = count(status)
            return count == 0 ? [] : ["\(count) \(word)\(count == 1 ? "" : "s")"]
        }
        let problems = counted(.error, "error") + counted(.warning, "warning")
        return problems.isEmpty ? "Nothing is wrong." : Wording.list(problems) + "."
    }
}
