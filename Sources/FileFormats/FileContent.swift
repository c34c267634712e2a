import Glibc

/// What a file's first bytes say of it: enough to choose its decoder without trying any.
package struct FileContent {
    package let head: [UInt8]
    /// Of the MP3 at its beginning, or behind an ID3 tag.
    package let frames: MP3Frames?
    /// Bytes from the end of an ID3 tag, where there is one, to the file's end.
    package let rest: Int
    /// Bytes of an MP3's tag that is too large to be read into memory, or of what ``plain`` has another header for.
    package let skip: Int
    /// Read as a file of another kind.
    package let plain: PlainFile?
    /// Whether so much is said of the sound before it begins that it would fill the memory.
    package let isAllTags: Bool
    private let path: [CChar]
    /// What an MP4's first sound track is coded as.
    package let codec: MP4Codec?

    /// The tag demultiplexer takes a tag into memory twice.
    private static let tagLimit = 8 << 20

    package init(_ descriptor: Int32, path: [CChar], size: Int) throws(AppleFile.Refusal) {
        self.path = path
        head = FileContent.bytes(of: descriptor, at: 0, count: 64)
        var start = 0
        if head.starts(with: "ID3".utf8), head.count > 9 {
            // The tag's size is written in four times seven bits; FLAC and AAC may hide behind it too.
            start = 10 + head[6...9].reduce(0) { $0 << 7 | Int($1 & 0x7f) }
        }
        frames = MP3Frames(FileContent.bytes(of: descriptor, at: start, count: 32_768))
        rest = size - start
        plain = try PlainFile(head: head, size: size) { FileContent.bytes(of: descriptor, at: $0, count: $1) }
        skip = plain?.skip ?? (frames != nil && start > FileContent.tagLimit ? start : 0)
        isAllTags =
            Preamble.size(head: head) { FileContent.bytes(of: descriptor, at: $0, count: $1) } > Preamble.limit
        codec =
            head.dropFirst(4).starts(with: "ftyp".utf8)
            ? MP4Codec(size: size) { FileContent.bytes(of: descriptor, at: $0, count: $1) } : nil
    }

    /// The whole file, or its first `limit` bytes.
    package func whole(_ limit: Int) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        return FileContent.bytes(of: descriptor, at: 0, count: limit)
    }

    /// What is there from that place on, fewer at the end.
    package static func bytes(of descriptor: Int32, at offset: Int, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) {
            $1 = max(0, pread(descriptor, $0.baseAddress, count, off_t(offset)))
        }
    }
}
