/// What a worker prints, for the log of the plugin: whole lines, cut and limited in number. A decoder that an untrusted
/// file controls may print anything.
///
/// The caller must escape the lines.
struct WorkerOutput: Sendable {
    /// The longest line in bytes; the rest of it is left out.
    static let longestLine = 500
    /// The number of lines of one worker.
    static let mostLines = 20

    private var line: [UInt8] = []
    private var isCut = false
    private var count = 0

    /// Whether no further line is taken.
    var isFull: Bool { count >= Self.mostLines }

    /// Takes bytes in the order in which they were printed. Returns the lines that they complete.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [String] {
        var lines: [String] = []
        for byte in bytes where !isFull {
            if byte == UInt8(ascii: "\n") {
                if let text = completed() { lines.append(text) }
            } else if line.count < Self.longestLine {
                line.append(byte)
            } else {
                isCut = true
            }
        }
        return lines
    }

    /// The last line, if it has no end.
    mutating func end() -> String? { isFull ? nil : completed() }

    private mutating func completed() -> String? {
        guard !line.isEmpty else { return nil }
        count += 1
        defer { (line, isCut) = ([], false) }
        let text = String(decoding: line, as: UTF8.self) + (isCut ? "…" : "")
        return isFull ? text + " (what else this worker prints is left out)" : text
    }
}

/// Limits the lines of all workers of a plugin: each file may need a new worker.
struct LineBudget: Sendable {
    /// The number of lines in ``interval``.
    static let most = 100
    /// In microseconds.
    static let interval: UInt64 = 60_000_000

    private var begin: UInt64?
    private var count = 0

    /// Whether one more line may be logged now.
    mutating func admits(at now: UInt64) -> Bool {
        if begin.map({ now &- $0 >= Self.interval }) ?? true { (begin, count) = (now, 0) }
        count += 1
        return count <= Self.most
    }
}
