import GStreamerBase
public import PluginAPI

// What a film has beside its sound.
extension GStreamerPlayer: FilmEngine {
    public var tracks: [MediaTrack] { item?.tracks?.all ?? [] }
    public var chapters: [MediaChapter] { item?.chapters ?? [] }

    public func select(_ kind: TrackKind, _ number: Int?) throws(SessionError) {
        guard let item, let tracks = item.tracks, tracks.isKnown else {
            throw SessionError(.notReady, "the tracks are not known: load a film, and wait until it is ready")
        }
        let count = tracks.count(kind)
        if let number, !(0..<count).contains(number) {
            let range = count == 0 ? "none" : count == 1 ? "one, 0" : "0 to \(count - 1)"
            throw SessionError(.badParameter, "there is no \(kind.rawValue) track \(number): the film has \(range)")
        }
        switch kind {
        case .video: throw SessionError(.notSupported, "only the first video track can be shown")
        case .audio:
            guard let number else {
                throw SessionError(.notSupported, "the sound cannot be left out: set the volume to 0")
            }
            guard number != choice.sound else { return }
            choice.sound = number
            // A pipeline whose sound is replaced may wait for the flush of the one before.
            openAgain()
        case .subtitle:
            guard number != choice.subtitles else { return }
            choice.subtitles = number
            tracks.show(number)
            // Otherwise the seek that draws again reads them.
            if state == .playing { item.readEarlierWords(than: item.place) }
            item.fetchEarlierWords(than: item.place)
            drawAgain()
        }
        onTracks?()
    }

    public func addSubtitles(uri: String) throws(SessionError) {
        guard self.uri != nil, state != .failed else {
            throw SessionError(.notReady, "no film is loaded: load it first, then its subtitles")
        }
        let added = try choice.add(uri: uri)
        guard let tracks = item?.tracks, tracks.isKnown else { return choice.showLast() }
        tracks.add(added.file, title: added.title)
        choice.subtitles = tracks.count(.subtitle) - 1
        tracks.show(choice.subtitles)
        drawAgain()
        onTracks?()
    }

    /// The last picture may have come too late to be shown while it played.
    func showLastPicture() {
        guard let item, item.source.traits.isFile, let last = pictures?.lastPicture else { return }
        item.seek(to: last.time(after: 0), told: false)
    }

    /// While it plays, the next picture has the change.
    func drawAgain() {
        if state != .playing, !isAtEnd { item?.refresh() }
    }

    public func step(_ pictures: Int) throws(SessionError) {
        guard let item, item.isReady, self.pictures?.lastPicture != nil else {
            throw SessionError(.notReady, "no picture is shown: load a film, and wait until it is ready")
        }
        pause()
        steps += min(max(pictures, -10_000), 10_000)
        // The time of the first picture is known after a seek.
        if item.isUntouched { item.refresh() } else if item.isSteady { stepOn() }
    }

    /// Makes the steps that waited for a seek.
    func stepOn() {
        guard steps != 0, let item, item.isSteady, let last = pictures?.lastPicture else { return }
        let time = last.time(after: steps)
        steps = 0
        // There is no picture after the last one.
        if let duration, time >= Times.nanoseconds(min(duration, endTime ?? duration)) { return }
        isAtEnd = false
        item.seek(to: time, told: true)
        leftTheBeginning()
    }
}
