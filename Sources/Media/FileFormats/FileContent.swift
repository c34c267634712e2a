import Glibc

/// The properties of a file that its first bytes show. They are sufficient to choose a decoder.
package struct FileContent {
    package let head: [UInt8]
    /// The MP3 frames at the beginning of the file, or after an ID3 tag.
    package let frames: MP3Frames?
    /// The number of bytes after the ID3 tag, if there is one.
    package let rest: Int
    /// The number of bytes to skip: the tag of an MP3 that is too large for the memory, or the part that the header of
    /// ``plain`` replaces.
    package let skip: Int
    /// How to read the file as a file of another kind.
    package let plain: PlainFile?
    /// Whether the metadata before the sound are too large for the memory.
    package let isAllTags: Bool
    private let path: [CChar]
    /// The codec of the first sound track of an MP4.
    package let codec: MP4Codec?

    /// The tag demultiplexer has a tag in memory twice.
    private static let tagLimit = 8 << 20

    package init(_ descriptor: Int32, path: [CChar], size: Int) throws(AppleFile.Refusal) {
        self.path = path
        head = FileContent.bytes(of: descriptor, at: 0, count: 64)
        var start = 0
        if head.starts(with: "ID3".utf8), head.count > 9 {
            // The size of the tag is four times seven bits. FLAC and AAC may also begin after a tag.
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

    /// Reads at most `count` bytes from `offset` on; fewer at the end of the file.
    package static func bytes(of descriptor: Int32, at offset: Int, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) {
            $1 = max(0, pread(descriptor, $0.baseAddress, count, off_t(offset)))
        }
    }
}
