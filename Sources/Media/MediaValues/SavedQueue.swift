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

    /// The largest file in bytes: no queue within the limits of ``PlayQueue`` has a larger one. An escaped text is at most
    /// twice as long; an item has three numbers, and its place in the order.
    public static let largestFile = 4_096 + 2 * PlayQueue.byteLimit + 128 * PlayQueue.limit

    private static let head = "sessiond queue 1"
    private static let end = "end"

    public init() {}

    // MARK: Writing

    /// A line for each item, and a last line that marks the file as complete.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        func add(_ line: String) {
            bytes += line.utf8
            bytes.append(Self.lineEnd)
        }
        add(Self.head)
        add("current \(current)")
        add("position \(position)")
        add("repeat \(repeatMode)")
        add("shuffle \(shuffleMode.rawValue)")
        add("order " + order.map(String.init).joined(separator: " "))
        for entry in entries {
            bytes += "item ".utf8
            Self.append(entry.uri, to: &bytes)
            for text in [entry.title, entry.artist, entry.album] {
                bytes.append(Self.tab)
                if let text { Self.append(text, to: &bytes) }
            }
            let item = entry.item > 0 ? "\(entry.item)" : ""
            let duration = entry.duration.map { "\($0)" } ?? ""
            bytes += "\t\(duration)\t\(item)\t\(entry.start > 0 ? "\(entry.start)" : "")".utf8
            if let spoken = entry.spoken { bytes += "\t\(spoken.rawValue)".utf8 }
            bytes.append(Self.lineEnd)
        }
        add(Self.end)
        return bytes
    }

    private static let (lineEnd, tab, backslash) = (UInt8(ascii: "\n"), UInt8(ascii: "\t"), UInt8(ascii: "\\"))

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case backslash: bytes += [backslash, backslash]
            case tab: bytes += [backslash, UInt8(ascii: "t")]
            case lineEnd: bytes += [backslash, UInt8(ascii: "n")]
            default: bytes.append(byte)
            }
        }
    }

    // MARK: Reading

    /// Nil if the file is not complete, or not valid. An item that cannot be read is left out.
    ///
    /// The bytes are compared, not the characters: a text may begin with a mark that would join the character before it.
    public init?(bytes: [UInt8]) {
        var rest = bytes[...]
        guard Self.line(&rest)?.elementsEqual(Self.head.utf8) == true else { return nil }
        // For each item of the file, its index in `entries`.
        var places: [Int?] = []
        while true {
            guard let line = Self.line(&rest) else { return nil }
            if line.elementsEqual(Self.end.utf8) { break }
            let key = line.prefix { $0 != UInt8(ascii: " ") }
            let value = line[key.endIndex...].dropFirst()
            if key.elementsEqual("item".utf8) {
                guard places.count < PlayQueue.limit else { return nil }
                let entry = Self.entry(value)
                places.append(entry == nil ? nil : entries.count)
                if let entry { entries.append(entry) }
            } else if !set(String(decoding: key, as: UTF8.self), String(decoding: value, as: UTF8.self)) {
                return nil
            }
        }
        guard position.isFinite, position >= 0, places.isEmpty || places.indices.contains(current) else { return nil }
        order = order.compactMap { places.indices.contains($0) ? places[$0] : nil }
        guard !places.isEmpty else { return }
        let isCurrentThere = places[current] != nil
        // Without it, the next item is the current one.
        current = min(places[..<current].count { $0 != nil }, max(0, entries.count - 1))
        if !isCurrentThere { position = 0 }
    }

    /// Removes the first line, which must have an end.
    private static func line(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: lineEnd) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return rest[..<end]
    }

    /// False if the key is unknown.
    private mutating func set(_ key: String, _ value: String) -> Bool {
        switch key {
        case "current": current = Int(value) ?? 0
        case "position": position = Double(value) ?? 0
        case "repeat": repeatMode = value
        case "shuffle": shuffleMode = ShuffleMode(rawValue: value) ?? .off
        case "order": order = value.split(separator: " ").compactMap { Int($0) }
        default: return false
        }
        return true
    }

    private static func entry(_ line: ArraySlice<UInt8>) -> PlaylistEntry? {
        let fields = line.split(separator: tab, omittingEmptySubsequences: false)
        // Only spoken items have the eighth.
        guard fields.count == 7 || fields.count == 8 else { return nil }
        var texts: [String] = []
        for field in fields {
            guard let text = text(field) else { return nil }
            texts.append(text)
        }
        guard !texts[0].isEmpty else { return nil }
        func known(_ text: String) -> String? { text.isEmpty ? nil : text }
        var entry = PlaylistEntry(uri: texts[0], title: known(texts[1]), duration: Double(texts[4]))
        (entry.artist, entry.album) = (known(texts[2]), known(texts[3]))
        (entry.item, entry.start) = (UInt64(texts[5]) ?? 0, Double(texts[6]) ?? 0)
        if texts.count == 8 { entry.spoken = PlaylistEntry.Spoken(rawValue: texts[7]) }
        return entry
    }

    /// Nil if it is not UTF-8.
    private static func text(_ field: ArraySlice<UInt8>) -> String? {
        guard field.contains(backslash) else { return String(validating: field, as: UTF8.self) }
        var bytes: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            guard byte == backslash, let next = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            bytes.append(next == UInt8(ascii: "t") ? tab : next == UInt8(ascii: "n") ? lineEnd : next)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
