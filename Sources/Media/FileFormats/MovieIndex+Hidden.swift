/// The tracks with pictures that players do not show. A motion photo has a second track with a few large pictures.
extension MovieIndex {
    package struct HiddenTrack: Equatable {
        package let id: Int
        /// The kind of its content, four letters. A demuxer that reads other letters leaves out the track.
        package let kind: Number
    }

    /// The tracks that are not enabled, if another track with pictures is; the kinds have places in `tracks`.
    static func hidden(_ tracks: [ArraySlice<UInt8>]) -> [HiddenTrack] {
        let pictures = tracks.compactMap(picture)
        guard pictures.contains(where: \.isEnabled) else { return [] }
        return pictures.filter { !$0.isEnabled }.map(\.track)
    }

    private static func picture(_ track: ArraySlice<UInt8>) -> (track: HiddenTrack, isEnabled: Bool)? {
        var (id, isEnabled) = (0, false)
        var found: Number?
        each(track) { name, content in
            switch name {
            case "tkhd":
                id = number(content, content.first == 1 ? 20 : 12, 4)
                isEnabled = number(content, 3, 1) & 1 == 1
            case "mdia":
                each(content) { name, content in
                    guard name == "hdlr", content.dropFirst(8).starts(with: "vide".utf8) else { return }
                    found = Number(place: content.startIndex + 8, size: 4, value: number(content, 8, 4))
                }
            default: break
            }
        }
        return found.map { (HiddenTrack(id: id, kind: $0), isEnabled) }
    }
}
