import DBus
import PluginAPI

/// D-Bus values as JSON: with the keys of the bus, on one line, without characters that a terminal interprets.
enum JSON {
    static func text(_ value: Value) -> String {
        var text = ""
        write(value, to: &text)
        return text
    }

    /// The types of objects in `data/schema/sessionctl.schema.json`. The number increases with incompatible changes.
    enum Schema: String {
        case status = "status/1"
        case list = "list/1"
        case show = "show/1"
        case explain = "explain/1"
        case history = "history/1"
        case monitor = "monitor/1"
        case route = "route/1"
        case plugins = "plugins/1"
        case inspect = "inspect/1"
        case thumbnail = "thumbnail/1"
        case image = "image/1"
        case export = "export/1"
        case estimate = "estimate/1"
        case cameras = "cameras/1"
        case upload = "upload/1"
        case jobs = "jobs/1"
        case cache = "cache/1"
        case fetch = "fetch/1"
        case library = "library/1"
        case items = "items/1"
        case collections = "collections/1"
        case findings = "findings/1"
        case scan = "scan/1"
        case doctor = "doctor/1"
        case simulate = "simulate/1"
    }

    /// An object of those members, in that order, after the name of its schema.
    static func object(_ schema: Schema, _ members: [(String, Value)]) -> String {
        text(.properties([("Schema", .string(schema.rawValue))] + members))
    }

    private static func write(_ value: Value, to text: inout String) {
        switch value {
        case .byte(let number): text += String(number)
        case .bool(let flag): text += flag ? "true" : "false"
        case .int16(let number): text += String(number)
        case .uint16(let number): text += String(number)
        case .int32(let number): text += String(number)
        case .uint32(let number): text += String(number)
        case .int64(let number): text += String(number)
        case .uint64(let number): text += String(number)
        // JSON has no NaN or infinity.
        case .double(let number): text += number.isFinite ? number.description : "null"
        case .string(let string), .objectPath(let string), .signature(let string): write(string, to: &text)
        // A file descriptor cannot be printed. Encoded properties are only sent.
        case .fileDescriptor, .encoded: text += "null"
        case .array(_, let elements), .structure(let elements): write(elements, to: &text)
        case .dictionary(_, _, let entries): write(entries, to: &text)
        case .variant(let inner): write(inner, to: &text)
        }
    }

    private static func write(_ elements: [Value], to text: inout String) {
        text += "["
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            write(element, to: &text)
        }
        text += "]"
    }

    private static func write(_ entries: [DictionaryEntry], to text: inout String) {
        text += "{"
        for (index, entry) in entries.enumerated() {
            if index > 0 { text += "," }
            if case .string(let key) = entry.key {
                write(key, to: &text)
            } else {
                // A JSON key must be a string: other keys are converted to one.
                write(Self.text(entry.key), to: &text)
            }
            text += ":"
            write(entry.value, to: &text)
        }
        text += "}"
    }

    /// Whether other characters than ASCII are escaped, for a terminal that cannot show them.
    private static let isASCII = !Terminal.isUnicode && Terminal.standard.isTerminal

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        var marks = MarkCount()
        for scalar in string.unicodeScalars {
            let isExcessive = marks.isExcessive(scalar)
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\r": text += "\\r"
            case _ where scalar.isUnsafe || isExcessive || isASCII && !scalar.isASCII:
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
