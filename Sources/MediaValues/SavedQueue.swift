public import PluginAPI

/// A queue as it is saved on the disk: its items and its position.
public struct SavedQueue: Sendable, Hashable {
    public var entries: [PlaylistEntry] = []
    /// The index of the current item in the list.
    public var current = 0
    /// The position in the current item, in seconds.
    public var position = 0.0
    public var repeatMode = ""
    public var shuffleMode = ShuffleMode.off
    /// The indices of the items in the order of playing.
    public var order: [Int] = []

    private static let head = "sessiond queue 1"
    private static let end = "end"

    public init() {}

    /// A line for each item, and a last line that marks the text as complete.
    public var text: String {
        var lines = [
            Self.head, "current \(current)", "position \(position)", "repeat \(repeatMode)",
            "shuffle \(shuffleMode.rawValue)",
            "order " + order.map(String.init).joined(separator: " "),
        ]
        for entry in entries {
            let fields = [
                entry.uri, entry.title ?? "", entry.artist ?? "", entry.album ?? "",
                entry.duration.map { "\($0)" } ?? "",
                entry.item > 0 ? "\(entry.item)" : "", entry.start > 0 ? "\(entry.start)" : "",
            ]
            lines.append("item " + fields.map(Self.escaped).joined(separator: "\t"))
        }
        return (lines + [Self.end, ""]).joined(separator: "\n")
    }

    /// Nil if the text is not complete, or not valid.
    public init?(text: String) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst() == Self.head[...] else { return nil }
        var isWhole = false
        while let line = lines.popFirst() {
            if line == Self.end {
                isWhole = true
                break
            }
            let space = line.firstIndex(of: " ") ?? line.endIndex
            let value = line[space...].dropFirst()
            switch line[..<space] {
            case "current": current = Int(value) ?? 0
            case "position": position = Double(value) ?? 0
            case "repeat": repeatMode = String(value)
            case "shuffle": shuffleMode = ShuffleMode(rawValue: String(value)) ?? .off
            case "order": order = value.split(separator: " ").compactMap { Int($0) }
            case "item":
                let fields = value.split(separator: "\t", omittingEmptySubsequences: false).map(Self.unescaped)
                guard fields.count == 7, !fields[0].isEmpty else { return nil }
                func known(_ text: String) -> String? { text.isEmpty ? nil : text }
                var entry = PlaylistEntry(uri: fields[0], title: known(fields[1]), duration: Double(fields[4]))
                (entry.artist, entry.album) = (known(fields[2]), known(fields[3]))
                (entry.item, entry.start) = (UInt64(fields[5]) ?? 0, Double(fields[6]) ?? 0)
                entries.append(entry)
            default: return nil
            }
        }
        guard isWhole, entries.count <= PlayQueue.limit, position.isFinite, position >= 0,
            entries.isEmpty || entries.indices.contains(current)
        else { return nil }
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\t": result += "\\t"
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func unescaped(_ text: Substring) -> String {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard scalar == "\\", let next = rest.popFirst() else {
                result.append(scalar)
                continue
            }
            result.append(next == "t" ? "\t" : next == "n" ? "\n" : next)
        }
        return String(result)
    }
}
