public import Enforcement
public import PluginAPI

/// How streams, the server's remembered values, the profiles of headsets and the defaults were before the daemon changed them.
public struct StreamRecord: Sendable, Hashable {
    /// A stream that differs from what the user left.
    public struct Entry: Sendable, Hashable {
        /// Identifies the run of the server, so that a number means one stream.
        public var instance: UInt32
        /// The server's number for it.
        public var id: AudioStream.ID
        /// As ``AudioStream/processID``.
        public var process: UInt32?
        /// As ``AudioStream/memoryName``.
        public var memoryName: String?
        public var kept: KeptStream

        public init(instance: UInt32, _ stream: AudioStream, _ kept: KeptStream) {
            self.init(
                instance: instance, id: stream.id, process: stream.processID, memoryName: stream.memoryName, kept: kept)
        }

        init(instance: UInt32, id: AudioStream.ID, process: UInt32?, memoryName: String?, kept: KeptStream) {
            self.instance = instance
            self.id = id
            self.process = process
            self.memoryName = memoryName
            self.kept = kept
        }
    }

    /// The existing streams.
    public var entries: [Entry] = []
    /// The remembered values that must be corrected.
    public var memories: [MemoryRepair] = []
    /// The profiles of headsets before they were switched to hands-free, by card, until they have another profile again.
    public var profiles: [String: String] = [:]
    /// The default devices before sessions needed other ones.
    public var defaults = FormerDefaults()

    /// Whether nothing must be restored: then no file is needed.
    public var isEmpty: Bool { entries.isEmpty && memories.isEmpty && profiles.isEmpty && defaults.isEmpty }

    public init(
        entries: [Entry] = [], memories: [MemoryRepair] = [], profiles: [String: String] = [:],
        defaults: FormerDefaults = FormerDefaults()
    ) {
        self.entries = entries
        self.memories = memories
        self.profiles = profiles
        self.defaults = defaults
    }

    static let magic: [UInt8] = Array("sessiond streams 6\n".utf8)

    /// Nil if the bytes are truncated or not in this format.
    public init?(_ bytes: [UInt8]) {
        guard bytes.starts(with: StreamRecord.magic) else { return nil }
        var reader = ByteReader(bytes[StreamRecord.magic.count...])
        do throws(ByteError) {
            self = try reader.streams()
        } catch {
            return nil
        }
        guard reader.isAtEnd else { return nil }
    }

    /// The complete file; ``init(_:)`` reads it.
    public var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.streams(self)
        return StreamRecord.magic + writer.bytes
    }
}

extension ByteWriter {
    fileprivate mutating func streams(_ record: StreamRecord) {
        entries(record.entries) { writer, entry in
            writer.integer(entry.instance)
            writer.bool(entry.id.direction == .playback)
            writer.integer(entry.id.number)
            writer.optional(entry.process) { $0.integer($1) }
            writer.optional(entry.memoryName) { $0.string($1) }
            writer.base(entry.kept.base)
            writer.bool(entry.kept.ignoresInterruption)
            writer.optional(entry.kept.began) { $0.integer($1) }
        }
        entries(record.memories) { writer, memory in
            writer.string(memory.name)
            writer.optional(memory.original) { writer, original in
                writer.array(original.channels) { $0.integer($1) }
                writer.array(original.volume) { $0.integer($1) }
                writer.bool(original.isMuted)
                writer.optional(original.deviceName) { $0.string($1) }
            }
            writer.array(memory.bases) { $0.base($1) }
        }
        entries(record.profiles.sorted { $0.key < $1.key }) { writer, profile in
            writer.string(profile.key)
            writer.string(profile.value)
        }
        former(record.defaults.output)
        former(record.defaults.input)
    }

    private mutating func former(_ device: FormerDefaults.Device?) {
        optional(device) { writer, device in
            writer.string(device.uid)
            writer.string(device.name)
            writer.bool(device.isChosen)
        }
    }

    private mutating func base(_ base: StreamBase) {
        array(base.volume) { $0.integer($1) }
        bool(base.isMuted)
        optional(base.deviceName) { $0.string($1) }
        integer(base.volumeChange.rawValue)
        bool(base.isMuteTheirs)
    }
}

extension ByteReader {
    fileprivate mutating func streams() throws(ByteError) -> StreamRecord {
        var record = StreamRecord()
        record.entries = try entries { reader throws(ByteError) in
            let instance = try reader.integer(UInt32.self)
            let direction: AudioStream.Direction = try reader.bool() ? .playback : .record
            return StreamRecord.Entry(
                instance: instance, id: AudioStream.ID(direction, try reader.integer()),
                process: try reader.optional { reader throws(ByteError) in try reader.integer(UInt32.self) },
                memoryName: try reader.optional { reader throws(ByteError) in try reader.string() },
                kept: KeptStream(
                    base: try reader.base(), ignoresInterruption: try reader.bool(),
                    began: try reader.optional { reader throws(ByteError) in try reader.integer(UInt64.self) }))
        }
        record.memories = try entries { reader throws(ByteError) in
            let name = try reader.string()
            return MemoryRepair(
                name: name,
                original: try reader.optional { reader throws(ByteError) in
                    StreamMemory(
                        name: name, channels: try reader.integers(), volume: try reader.integers(),
                        isMuted: try reader.bool(),
                        deviceName: try reader.optional { reader throws(ByteError) in try reader.string() })
                }, bases: try reader.array { reader throws(ByteError) in try reader.base() })
        }
        let profiles = try entries { reader throws(ByteError) in (try reader.string(), try reader.string()) }
        record.profiles = Dictionary(profiles) { first, _ in first }
        record.defaults = FormerDefaults(output: try former(), input: try former())
        return record
    }

    private mutating func former() throws(ByteError) -> FormerDefaults.Device? {
        try optional { reader throws(ByteError) in
            FormerDefaults.Device(
                uid: try reader.string(), name: try reader.string(), isChosen: try reader.bool())
        }
    }

    private mutating func base() throws(ByteError) -> StreamBase {
        StreamBase(
            volume: try integers(), isMuted: try bool(),
            deviceName: try optional { reader throws(ByteError) in try reader.string() },
            volumeChange: try volumeChange(),
            isMuteTheirs: try bool())
    }

    private mutating func volumeChange() throws(ByteError) -> StreamBase.VolumeChange {
        guard let change = StreamBase.VolumeChange(rawValue: try integer()) else { throw ByteError() }
        return change
    }

    private mutating func integers<T: FixedWidthInteger>() throws(ByteError) -> [T] {
        try array { reader throws(ByteError) in try reader.integer(T.self) }
    }
}
