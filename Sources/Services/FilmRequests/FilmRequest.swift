public import PluginAPI
public import Workers

/// The requests of the plugin for films to its workers. Paths are bytes of the file system, times in a film nanoseconds
/// unless they say seconds.
public enum FilmRequest {
    /// What the film is.
    public struct Inspect: WorkerRequest {
        public static let name = "inspect"
        public var path: [UInt8] = []
        /// Whether the length is measured: the whole file is read.
        public var isPrecise = false

        public init() {}
        public init(_ path: [UInt8], isPrecise: Bool = false) { (self.path, self.isPrecise) = (path, isPrecise) }

        public mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            try coder.flag("precise", &isPrecise)
        }
    }

    /// The presets that are possible for it.
    public struct Presets: WorkerRequest {
        public static let name = "presets"
        public var path: [UInt8] = []

        public init() {}
        public init(_ path: [UInt8]) { self.path = path }

        public mutating func code(_ coder: inout RequestCoder) throws(BadRequest) { try coder.bytes("path", &path) }
    }

    /// A picture for file managers.
    public struct Thumbnail: WorkerRequest {
        public static let name = "thumbnail"
        public var path: [UInt8] = []
        /// The largest width and height in pixels.
        public var side = 0
        /// The time of the file when the thumbnail in the cache was made, in seconds since 1970; nil: there is none.
        public var modified: Int?

        public init() {}
        public init(_ path: [UInt8], side: Int) { (self.path, self.side) = (path, side) }

        public mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            try coder.whole("side", &side)
            try coder.whole("modified", &modified)
        }
    }

    /// Pictures at some times.
    public struct Images: WorkerRequest {
        public static let name = "images"
        public var path: [UInt8] = []
        public var times: [UInt64] = []
        /// How far from its time a picture may be.
        public var (before, after) = (0, 0)
        /// The largest size in pixels; 0: that of the film.
        public var (width, height) = (0, 0)
        public var format = ImageFormat.jpeg
        /// 0…100.
        public var quality = 0
        /// Whether the pictures are turned as the film says.
        public var isTurned = true

        public init() {}

        public mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            var bytes = Self.bytes(times)
            try coder.bytes("times", &bytes)
            times = Self.times(bytes)
            try coder.whole("before", &before)
            try coder.whole("after", &after)
            try coder.whole("width", &width)
            try coder.whole("height", &height)
            try coder.word("format", &format)
            try coder.whole("quality", &quality)
            try coder.flag("turn", &isTurned)
        }

        private static func bytes(_ times: [UInt64]) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(times.count * 8)
            for time in times {
                for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: time >> (8 * UInt64(index)))) }
            }
            return bytes
        }

        private static func times(_ bytes: [UInt8]) -> [UInt64] {
            stride(from: 0, to: bytes.count - bytes.count % 8, by: 8).map { start in
                bytes[start..<(start + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            }
        }
    }

    /// What an export writes.
    public struct Wish: Sendable, Hashable {
        public var preset = ExportPreset.medium
        public var type = ExportFileType.mp4
        public var isForNetwork = false
        /// Seconds; nil: from the beginning, to the end.
        public var (from, to): (Double?, Double?) = (nil, nil)

        public init() {}

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.word("preset", &preset)
            try coder.word("type", &type)
            try coder.flag("network", &isForNetwork)
            try coder.number("from", &from)
            try coder.number("to", &to)
        }
    }

    /// A new file.
    public struct Export: WorkerRequest {
        public static let name = "export"
        public var path: [UInt8] = []
        public var wish = Wish()
        /// Whether the place where it was filmed is left out.
        public var stripsLocation = true
        /// Texts by the names of GStreamer's tags.
        public var metadata: [String: String] = [:]

        public init() {}

        public mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            try wish.code(&coder)
            try coder.flag("strip-location", &stripsLocation)
            try coder.texts("metadata", &metadata)
        }
    }

    /// How large the new file would be.
    public struct Estimate: WorkerRequest {
        public static let name = "estimate"
        public var path: [UInt8] = []
        public var wish = Wish()

        public init() {}

        public mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            try wish.code(&coder)
        }
    }
}
