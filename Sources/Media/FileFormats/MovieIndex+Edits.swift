import Glibc

extension MovieIndex {
    /// Bytes to write at a position of the file.
    package struct Patch: Equatable {
        package let place: Int
        package let bytes: [UInt8]
    }

    /// The changes of the edit lists and lengths after which players leave out the first seconds of the tracks. Decoders still
    /// get the samples of these seconds: pictures on which the first shown picture depends, and the delay of an encoder.
    ///
    /// A track without an edit list is not changed, because a new box would move everything after it.
    ///
    /// - Parameters:
    ///   - video: seconds to leave out of tracks with pictures.
    ///   - audio: seconds to leave out of tracks with sound.
    package static func patches(descriptor file: Int32, leavingOut video: Double, _ audio: Double) -> [Patch] {
        patches(size: Int(lseek(file, 0, SEEK_END)), leavingOut: video, audio) {
            FileContent.bytes(of: file, at: $0, count: $1)
        }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package static func patches(
        size: Int, leavingOut video: Double, _ audio: Double, read: (_ place: Int, _ count: Int) -> [UInt8]
    ) -> [Patch] {
        guard let index = contents(size: size, read: read) else { return [] }
        return patches(of: index.boxes, at: index.place) { $0 == "vide" ? video : $0 == "soun" ? audio : 0 }
    }

    /// The boxes in `moov`, and where it begins in the file; nil: there is none, or it is too large.
    static func contents(
        size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]
    ) -> (boxes: ArraySlice<UInt8>, place: Int)? {
        var place = 0
        for _ in 0..<boxLimit {
            guard let box = Box(read(place, 16)[...], 0), box.length <= size - place else { return nil }
            if box.kind == "moov" {
                guard box.length <= indexLimit else { return nil }
                let bytes = read(place, box.length)
                guard bytes.count == box.length else { return nil }
                return (bytes[box.header...], place)
            }
            place += box.length
        }
        return nil
    }

    /// The fields of a track that change.
    private struct EditedTrack {
        var kind = ""
        /// Units per second of its media.
        var timescale = 0
        /// The field of its length, in units of the film.
        var length: Number?
        /// The content of its edit list.
        var edits: ArraySlice<UInt8>?
    }

    private static func patches(
        of movie: ArraySlice<UInt8>, at origin: Int, _ seconds: (_ kind: String) -> Double
    ) -> [Patch] {
        var patches: [Patch] = []
        var scale = 0
        var whole: Number?
        var longest = 0
        each(movie) { kind, content in
            guard kind == "mvhd" else { return }
            let isLong = content.first == 1
            scale = number(content, isLong ? 20 : 12, 4)
            whole = field(content, isLong ? 24 : 16, isLong ? 8 : 4)
        }
        guard scale > 0, let whole else { return [] }
        each(movie) { kind, content in
            guard kind == "trak" else { return }
            let track = editedTrack(content)
            let left = Int((seconds(track.kind) * Double(scale)).rounded())
            guard let length = track.length else { return }
            longest = max(longest, length.value - (track.edits == nil ? 0 : min(left, length.value)))
            guard left > 0, track.timescale > 0, let edits = track.edits,
                let changed = advanced(edits, by: left, seconds(track.kind) * Double(track.timescale))
            else { return }
            patches.append(Patch(place: origin + edits.startIndex - 8, bytes: changed))
            patches.append(
                Patch(place: origin + length.place, bytes: big(max(0, length.value - left), length.size)))
        }
        if !patches.isEmpty { patches.append(Patch(place: origin + whole.place, bytes: big(longest, whole.size))) }
        return patches
    }

    private static func editedTrack(_ track: ArraySlice<UInt8>) -> EditedTrack {
        var result = EditedTrack()
        each(track) { kind, content in
            switch kind {
            case "tkhd":
                let isLong = content.first == 1
                result.length = field(content, isLong ? 28 : 20, isLong ? 8 : 4)
            case "edts": each(content) { kind, content in if kind == "elst" { result.edits = content } }
            case "mdia":
                each(content) { kind, content in
                    switch kind {
                    case "mdhd": result.timescale = number(content, content.first == 1 ? 20 : 12, 4)
                    case "hdlr" where content.count >= 12:
                        result.kind = String(decoding: content.dropFirst(8).prefix(4), as: UTF8.self)
                    default: break
                    }
                }
            default: break
            }
        }
        return result
    }

    private static func field(_ content: ArraySlice<UInt8>, _ place: Int, _ size: Int) -> Number? {
        guard content.count >= place + size else { return nil }
        return Number(place: content.startIndex + place, size: size, value: number(content, place, size))
    }

    /// The box of an edit list without its first part, of the same length: what is left over is an unused box.
    ///
    /// - Parameters:
    ///   - left: the part in units of the film.
    ///   - media: the same in units of the track.
    private static func advanced(_ edits: ArraySlice<UInt8>, by left: Int, _ media: Double) -> [UInt8]? {
        let isLong = edits.first == 1
        let (width, timeWidth) = isLong ? (20, 8) : (12, 4)
        let count = number(edits, 4, 4)
        guard count > 0, count == (edits.count - 8) / width else { return nil }
        var rest = left
        var entries: [UInt8] = []
        var kept = 0
        for entry in 0..<count {
            let place = 8 + entry * width
            var length = number(edits, place, timeWidth)
            let time = edits.dropFirst(place + timeWidth).prefix(timeWidth)
            let isEmpty = time.allSatisfy { $0 == 0xFF }
            let taken = min(rest, length)
            var start = Array(time)
            if taken > 0, !isEmpty {
                let share = media * Double(taken) / Double(left)
                start = big(number(edits, place + timeWidth, timeWidth) + Int(share.rounded()), timeWidth)
            }
            rest -= taken
            length -= taken
            if length == 0 { continue }
            kept += 1
            entries += big(length, timeWidth) + start + edits.dropFirst(place + 2 * timeWidth).prefix(4)
        }
        guard kept > 0 else { return nil }
        let content = Array(edits.prefix(4)) + big(kept, 4) + entries
        let unused = edits.count - content.count
        return box("elst", content) + (unused >= 8 ? box("free", [UInt8](repeating: 0, count: unused - 8)) : [])
    }
}
