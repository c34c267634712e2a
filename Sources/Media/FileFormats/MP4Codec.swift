/// The codec of the first sound track of an MP4, if its decoder is known without a search.
package enum MP4Codec {
    case aac
    case alac

    /// The bytes of a track's description that are read. They include the codec, which is after the durations. Covers
    /// and chapters are elsewhere.
    private static let atomLimit = 4_096

    /// Searches the track's sample description (`moov/trak/mdia/minf/stbl/stsd`). Nil if it is missing or of another
    /// kind. `read` returns bytes from a position, fewer at the end of the file.
    package init?(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) {
        var range = 0..<size
        // These atoms are nested. The number of atoms is limited; real files have fewer.
        var path = ["moov", "trak", "mdia", "minf", "stbl", "stsd"][...]
        var looks = 0
        while let name = path.first {
            guard let atom = MP4Codec.find(name, in: range, &looks, read) else { return nil }
            range = atom
            path = path.dropFirst()
        }
        let description = read(range.lowerBound, min(range.count, MP4Codec.atomLimit))
        guard description.count >= 16 else { return nil }
        switch String(decoding: description[12...15], as: UTF8.self) {
        case "mp4a": self = .aac
        case "alac": self = .alac
        default: return nil
        }
    }

    /// The position and size of the contents of the first atom with this name.
    private static func find(
        _ name: String, in range: Range<Int>, _ looks: inout Int, _ read: (Int, Int) -> [UInt8]
    ) -> Range<Int>? {
        var place = range.lowerBound
        while place + 8 <= range.upperBound, looks < 256 {
            looks += 1
            let head = read(place, 16)
            guard head.count >= 8 else { return nil }
            var length = head[0...3].reduce(0) { $0 << 8 | Int($1) }
            var start = 8
            if length == 1, head.count == 16, head[8] == 0 {
                length = head[9...15].reduce(0) { $0 << 8 | Int($1) }
                start = 16
            } else if length == 0 {
                length = range.upperBound - place
            }
            guard length >= start, length <= range.upperBound - place else { return nil }
            if head[4...7].elementsEqual(name.utf8) { return (place + start)..<(place + length) }
            place += length
        }
        return nil
    }
}
