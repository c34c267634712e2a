/// How the first sound track of an MP4 is coded, as far as we play it without looking for a decoder.
package enum MP4Codec {
    case aac
    case alac

    /// Enough of a track's description to come past its durations to the coding; covers and chapters lie elsewhere.
    private static let atomLimit = 4_096

    /// Looks for the track's sample description (`moov/trak/mdia/minf/stbl/stsd`); nil where it is not there, or of
    /// another kind. `read` gives bytes from a place, fewer at the end.
    package init?(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) {
        var range = 0..<size
        // Into these, one inside the other; no more atoms than a sane file has are looked at.
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

    /// The inside of the first atom of that name.
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
