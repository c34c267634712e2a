import DBus
import PluginAPI
import SessionBus

// `org.mpris.MediaPlayer2` and `.Player`, version 2.2: what media keys, playerctl and desktops speak.

extension PlayerPlugin {
    private static let path = "/org/mpris/MediaPlayer2"
    private static let rootName = "org.mpris.MediaPlayer2"
    private static let playerName = "org.mpris.MediaPlayer2.Player"
    private static let noTrack = "/org/mpris/MediaPlayer2/TrackList/NoTrack"

    func exportMPRIS() {
        connection.objects.export(
            self, at: PlayerPlugin.path, interfaces: [PlayerPlugin.rootInterface, PlayerPlugin.playerInterface])
    }

    func announcementOfMPRIS() -> Announcement<PlayerPlugin> {
        Announcement(
            self, path: PlayerPlugin.path, interface: PlayerPlugin.playerName, PlayerPlugin.playerProperties,
            on: connection.objects)
    }

    func emitSeeked(_ position: Double) {
        connection.objects.emit(
            path: PlayerPlugin.path, interface: PlayerPlugin.playerName, member: "Seeked",
            [.int64(microseconds(position))])
    }

    private func microseconds(_ seconds: Double) -> Int64 { seconds > 0 ? Int64(min(seconds, 1e12) * 1e6) : 0 }

    private var trackPath: String {
        engine.uri == nil ? PlayerPlugin.noTrack : "\(ObjectPath.player)/track/\(track)"
    }

    private var status: String {
        switch state {
        case .playing: "Playing"
        case .paused, .interrupted: "Paused"
        case .stopped, .failed: "Stopped"
        }
    }

    private var isPlayable: Bool { engine.uri != nil && engine.state != .failed }
    private var canSeek: Bool { isPlayable && engine.duration != nil }

    private var metadata: Value {
        guard let uri = engine.uri else { return .properties([]) }
        var fields: [(String, Value)] = [("mpris:trackid", .objectPath(trackPath)), ("xesam:url", .string(uri))]
        if let duration = engine.duration { fields.append(("mpris:length", .int64(microseconds(duration)))) }
        // Without a title of its own, the file's name is what a person knows it by.
        if let title = tags.title ?? FileURI.title(uri) { fields.append(("xesam:title", .string(title))) }
        if let album = tags.album { fields.append(("xesam:album", .string(album))) }
        let lists = [
            ("xesam:artist", tags.artist ?? tags.organization), ("xesam:albumArtist", tags.albumArtist),
            ("xesam:genre", tags.genre), ("xesam:comment", tags.comment),
        ]
        for (name, text) in lists { if let text { fields.append((name, .strings([text]))) } }
        if let number = tags.trackNumber {
            fields.append(("xesam:trackNumber", .int32(Int32(clamping: number))))
        }
        return .properties(fields)
    }

    private func setLoopStatus(_ status: String) throws(Failure) {
        switch status {
        case "None": changing { engine.loops = 0 }
        // The list is the one item.
        case "Track", "Playlist": changing { engine.loops = -1 }
        default: throw Failure(.badParameter("LoopStatus must be None, Track or Playlist, not \(quoted(status))"))
        }
    }

    private func playPause(_ reply: @escaping Reply) {
        guard engine.state == .playing else { return play(reply) }
        pause()
        reply(.success(()))
    }

    private func move(by microseconds: Int64) throws(Failure) {
        guard canSeek else { return }
        try seek(to: max(0, engine.position + Double(microseconds) / 1e6))
    }

    /// Another item's, or a place outside, is a request that came too late.
    private func setPosition(_ path: String, _ microseconds: Int64) throws(Failure) {
        guard canSeek, path == trackPath, microseconds >= 0, Double(microseconds) / 1e6 <= engine.duration ?? 0 else {
            return
        }
        try seek(to: Double(microseconds) / 1e6)
    }

    private func open(_ uri: String, _ reply: @escaping Reply) {
        do throws(Failure) {
            try load(uri: uri)
        } catch {
            return reply(.failure(error))
        }
        play(reply)
    }

    private static var playerProperties: [Announcement<PlayerPlugin>.Property] {
        [
            .init("PlaybackStatus", "s", { .string($0.status) }),
            .init(
                "LoopStatus", "s", { .string($0.engine.loops == 0 ? "None" : "Track") },
                set: { player, value throws(Failure) in try player.setLoopStatus(value.stringValue ?? "") }),
            .init(
                "Rate", "d", { .double($0.engine.rate) },
                set: { player, value throws(Failure) in
                    // MPRIS's way to say pause.
                    if value.doubleValue == 0 { return player.pause() }
                    try player.setRate(value.doubleValue ?? .nan)
                }),
            .init("Metadata", "a{sv}", { $0.metadata }),
            .init(
                "Volume", "d", { .double($0.engine.volume) },
                set: { player, value throws(Failure) in
                    // MPRIS asks for 0 at negative values, and leaves the upper end to the player.
                    let volume = value.doubleValue ?? .nan
                    try player.setVolume(volume.isNaN ? volume : min(max(volume, 0), 1))
                }),
            .init("Position", "x", isTold: false, { .int64($0.microseconds($0.engine.position)) }),
            .init("MinimumRate", "d", { _ in .double(0.5) }),
            .init("MaximumRate", "d", { _ in .double(2) }),
            .init("CanGoNext", "b", { _ in .bool(false) }),
            .init("CanGoPrevious", "b", { _ in .bool(false) }),
            .init("CanPlay", "b", { .bool($0.isPlayable && $0.session.description.category.playerMay.play) }),
            .init("CanPause", "b", { .bool($0.isPlayable) }),
            .init("CanSeek", "b", { .bool($0.canSeek) }),
            .init("CanControl", "b", isTold: false, { _ in .bool(true) }),
        ]
    }

    private static var playerInterface: Interface<PlayerPlugin> {
        Interface(
            name: playerName, introspection: MPRISInterfaceXML.player,
            methods: [
                // One item is all there is.
                .init("Next", "") { _, call in call.reply() },
                .init("Previous", "") { _, call in call.reply() },
                .init("Pause", "") { player, call in
                    player.pause()
                    call.reply()
                },
                .init("PlayPause", "") { player, call in player.playPause { call.answer($0) } },
                .init("Stop", "") { player, call in
                    player.stop()
                    call.reply()
                },
                .init("Play", "") { player, call in player.play { call.answer($0) } },
                .init("Seek", "x") { player, call in
                    call.answer { () throws(Failure) in try player.move(by: call.arguments[0].int64Value ?? 0) }
                },
                .init("SetPosition", "ox") { player, call in
                    call.answer { () throws(Failure) in
                        try player.setPosition(
                            call.arguments[0].objectPathValue ?? "", call.arguments[1].int64Value ?? -1)
                    }
                },
                .init("OpenUri", "s") { player, call in
                    player.open(call.arguments[0].stringValue ?? "") { call.answer($0) }
                },
            ],
            properties: playerProperties.map(\.exported))
    }

    private static var rootInterface: Interface<PlayerPlugin> {
        let properties: [Announcement<PlayerPlugin>.Property] = [
            .init("CanQuit", "b", { _ in .bool(true) }),
            .init("CanRaise", "b", { _ in .bool(false) }),
            .init("HasTrackList", "b", { _ in .bool(false) }),
            .init("Identity", "s", { .string($0.identity) }),
            .init("SupportedUriSchemes", "as", { _ in .strings(["file", "http", "https"]) }),
            .init(
                "SupportedMimeTypes", "as",
                { _ in
                    .strings([
                        "audio/x-wav", "audio/flac", "audio/ogg", "audio/mpeg", "audio/mp4", "audio/aac",
                        "application/ogg",
                    ])
                }),
        ]
        return Interface(
            name: rootName, introspection: MPRISInterfaceXML.root,
            methods: [
                .init("Raise", "") { _, call in call.reply() },
                .init("Quit", "") { player, call in
                    call.reply()
                    player.onQuit?()
                },
            ],
            properties: properties.map(\.exported))
    }
}
