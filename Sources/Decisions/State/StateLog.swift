import PluginAPI
public import SessionManager

/// The bytes of the state file: a line with the format, then records, each with its length and a checksum.
///
/// Any bytes can be decoded. The complete records up to the first incomplete one are used; an entry that cannot be read
/// is left out.
public struct StateLog: Sendable {
    /// Each record, and how many of its notices were sent.
    public private(set) var records: [(record: StateRecord, told: Int)] = []
    /// False if the data after the records is incomplete.
    public private(set) var isWhole = true

    private enum Kind: UInt8 {
        case step = 0x53
        case told = 0x54
    }

    /// The first line of a file; the number is the version of the format and of its meaning.
    public static let magic: [UInt8] = Array("sessiond state 16\n".utf8)

    /// Reads a file's bytes; nil if they do not begin as a state file of this version.
    public init?(_ bytes: [UInt8]) {
        guard bytes.starts(with: StateLog.magic) else { return nil }
        var reader = ByteReader(bytes[StateLog.magic.count...])
        do throws(ByteError) {
            while !reader.isAtEnd { try readRecord(&reader) }
        } catch {
            isWhole = false
        }
    }

    /// A record as it is in the file. The first of its notices counts as sent.
    public static func bytes(of record: StateRecord) -> [UInt8] { withBytes(of: record) { Array($0) } }

    /// The same, valid during `body`, to avoid a copy for each event.
    public static func withBytes<Result>(
        of record: StateRecord, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result { frame(.step, { record.write(to: &$0) }, body) }

    /// An entry that `count` notices of the last record were sent.
    public static func bytes(ofTold count: Int) -> [UInt8] {
        frame(.told, { $0.integer(UInt32(clamping: count)) }, { Array($0) })
    }

    private static func frame<Result>(
        _ kind: Kind, _ payload: (inout ByteWriter) -> Void, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        var writer = ByteWriter()
        writer.integer(kind.rawValue)
        let length = writer.count
        writer.integer(UInt32(0))
        let sum = writer.count
        writer.integer(UInt64(0))
        let start = writer.count
        payload(&writer)
        writer.patch(UInt32(clamping: writer.count - start), at: length)
        writer.patch(writer.withBytes(from: start, checksum), at: sum)
        return writer.withBytes(body)
    }

    private mutating func readRecord(_ reader: inout ByteReader) throws(ByteError) {
        let kind = Kind(rawValue: try reader.integer())
        let length = Int(try reader.integer(UInt32.self))
        let sum = try reader.integer(UInt64.self)
        let payload = try reader.take(length)
        guard payload.withUnsafeBytes(StateLog.checksum) == sum else { throw ByteError() }
        switch kind {
        case .step:
            let record = try StateRecord(payload)
            records.append((record, record.told.isEmpty ? 0 : 1))
        case .told:
            var count = ByteReader(payload)
            guard !records.isEmpty else { throw ByteError() }
            records[records.count - 1].told = Int(try count.integer(UInt32.self))
        case nil: throw ByteError()
        }
    }

    /// FNV-1a, eight bytes at a time. It detects truncated and overwritten data, any single byte for certain; it is no
    /// protection against forgery.
    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        var place = 0
        while place + 8 <= bytes.count {
            hash = step(hash, UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)))
            place += 8
        }
        for byte in bytes[place...] { hash = step(hash, UInt64(byte)) }
        return hash
    }

    /// The upper half, which is mixed best, is combined with the lower one.
    private static func step(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        let product = (hash ^ word) &* 0x100_0000_01b3
        return product ^ (product >> 32)
    }
}

extension StateLog {
    /// The state after all records.
    public struct Summary: Sendable {
        /// Including its sessions.
        public var core: Memory
        /// Each session with its owner, in ascending order.
        public var entries: [StateRecord.Entry]
        /// The last decided notices that were not sent yet, in order.
        public var untold: [Notice]
        /// Players that the daemon has paused.
        public var paused: [StateRecord.PausedPlayer]

        /// Limits all times to that instant, and all claims to the longest that a setting allows: a file may contain
        /// any value, and later additions must not overflow.
        public mutating func limit(to now: UInt64) {
            for index in entries.indices { entries[index].session.limit(to: Instant(microseconds: now)) }
            core.members = entries.map(\.session)
            for index in paused.indices { paused[index].since = min(paused[index].since, now) }
        }
    }

    /// Nil if there is no record.
    public var summary: Summary? {
        guard let last = records.last else { return nil }
        var entries: [SessionID: StateRecord.Entry] = [:]
        for (record, _) in records {
            for change in record.waits {
                for id in Array(entries.keys) where change.waiters.contains(id) {
                    entries[id]?.session.apply(change)
                }
            }
            for entry in record.changed { entries[entry.session.id] = entry }
            for id in record.closed { entries[id] = nil }
        }
        let sorted = entries.values.sorted { $0.session.id < $1.session.id }
        var core = last.record.core
        core.members = sorted.map(\.session)
        let untold = Array(last.record.told.dropFirst(last.told))
        return Summary(core: core, entries: sorted, untold: untold, paused: last.record.paused)
    }
}

extension Memory.Member {
    fileprivate mutating func limit(to now: Instant) {
        since = min(since, now)
        ignoredSince = ignoredSince.map { min($0, now) }
        if let since = interruption?.since { interruption?.since = min(since, now) }
        if let since = ended?.since { ended?.since = min(since, now) }
        // The longest possible grace period is far shorter.
        claimExpires = claimExpires.map { min($0, now.advanced(bySeconds: 3.15e9)) }
    }
}
