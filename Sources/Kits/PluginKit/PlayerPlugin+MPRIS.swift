import DBus
import MediaValues
import PluginAPI
import SessionBus
import SessionKit

// `org.mpris.MediaPlayer2` and `.Player`, version 2.2: the interfaces for media keys, playerctl and desktops.

extension PlayerPlugin {
    static let mprisPath = "/org/mpris/MediaPlayer2"
    private static let rootName = "org.mpris.MediaPlayer2"
    private static let playerName = "org.mpris.MediaPlayer2.Player"
    static let noTrack = "/org/mpris/MediaPlayer2/TrackList/NoTrack"

    func exportMPRIS() {
        connection.objects.export(
            self, at: PlayerPlugin.mprisPath,
            interfaces: [
                PlayerPlugin.rootInterface, PlayerPlugin.playerInterface, PlayerPlugin.trackListInterface,
                PlayerPlugin.playlistsInterface,
            ])
    }

    func announcementOfMPRIS() -> Announcement<PlayerPlugin> {
        Announcement(
            self, path: PlayerPlugin.mprisPath, interface: PlayerPlugin.playerName, PlayerPlugin.playerProperties,
            on: connection.objects)
    }

    func emitSeeked(_ position: Double) {
        connection.objects.emit(
            path: PlayerPlugin.mprisPath, interface: PlayerPlugin.playerName, member: "Seeked",
            [.int64(microseconds(position))])
    }

    private func microseconds(_ seconds: Double) -> Int64 { seconds > 0 ? Int64(min(seconds, 1e12) * 1e6) : 0 }

    private var currentTrack: String { queue.currentID.map(trackPath) ?? PlayerPlugin.noTrack }

    private var status: String {
        switch state {
        case .playing: "Playing"
        case .paused, .interrupted: "Paused"
        case .stopped, .failed: "Stopped"
        }
    }

    private var desktopEntry: String {
        let entry = session.description.desktopEntry
        return entry.isEmpty ? "sessiond-player" : entry
    }

    private var isPlayable: Bool { engine.uri != nil && !hasFailed }
    private var canSeek: Bool { isPlayable && engine.duration != nil }

    /// Metadata of the current item: the common fields and its own tags.
    var metadata: Value {
        guard let item = queue.current else { return .properties([]) }
        var fields = basics(of: item, duration: engine.duration)
        if !artURI.isEmpty { fields.append(("mpris:artUrl", .string(artURI))) }
        if let album = tags.album { fields.append(("xesam:album", .string(album))) }
        let lists = [
            ("xesam:artist", tags.artist ?? tags.organization), ("xesam:albumArtist", tags.albumArtist),
            ("xesam:genre", tags.genre), ("xesam:composer", tags.composer), ("xesam:comment", tags.comment),
        ]
        for (name, text) in lists { if let text { fields.append((name, .strings([text]))) } }
        if let number = tags.trackNumber {
            fields.append(("xesam:trackNumber", .int32(Int32(clamping: number))))
        }
        if let number = tags.discNumber { fields.append(("xesam:discNumber", .int32(Int32(clamping: number)))) }
        if let date = tags.date { fields.append(("xesam:contentCreated", .string(date))) }
        return .properties(fields)
    }

    func metadata(of item: PlayQueue.Item) -> Value {
        item.id == queue.currentID ? metadata : .properties(basics(of: item, duration: nil))
    }

    private func basics(of item: PlayQueue.Item, duration: Double?) -> [(String, Value)] {
        var fields: [(String, Value)] = [
            ("mpris:trackid", .objectPath(trackPath(item.id))), ("xesam:url", .string(shown(item.entry.uri))),
        ]
        if let duration = duration ?? item.entry.duration {
            fields.append(("mpris:length", .int64(microseconds(duration))))
        }
        // By this number, programs find it in the library again.
        if item.entry.item > 0 { fields.append(("sessiond:item", .uint64(item.entry.item))) }
        if let title = title(of: item) { fields.append(("xesam:title", .string(title))) }
        // The tags of the current item say it themselves.
        if item.id != queue.currentID || tags == MediaTags() {
            if let artist = item.entry.artist { fields.append(("xesam:artist", .strings([artist]))) }
            if let album = item.entry.album { fields.append(("xesam:album", .string(album))) }
        }
        return fields
    }

    private var loopStatus: String {
        switch repeatMode {
        case .one: "Track"
        // A number of loops is not "once".
        case .none: engine.loops == 0 ? "None" : "Track"
        case .all: "Playlist"
        }
    }

    private func setLoopStatus(_ status: String) throws(Failure) {
        switch status {
        case "None":
            changing {
                engine.loops = 0
                repeatMode = .none
            }
        case "Track": repeatMode = .one
        case "Playlist": repeatMode = .all
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
        let place = engine.position + Double(microseconds) / 1e6
        // Beyond the end, the next item begins, as the specification requires.
        if place > engine.duration ?? .infinity, canGoNext { next() } else { try seek(to: max(0, place)) }
    }

    /// A request for another item, or a position outside of the item, came too late and is ignored.
    private func setPosition(_ path: String, _ microseconds: Int64) throws(Failure) {
        guard canSeek, path == currentTrack, microseconds >= 0, Double(microseconds) / 1e6 <= engine.duration ?? 0
        else {
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
                "LoopStatus", "s", { .string($0.loopStatus) },
                set: { player, value throws(Failure) in try player.setLoopStatus(value.stringValue ?? "") }),
            .init(
                "Rate", "d", { .double($0.engine.rate) },
                set: { player, value throws(Failure) in
                    // MPRIS pauses with a rate of 0.
                    if value.doubleValue == 0 { return player.pause() }
                    try player.setRate(value.doubleValue ?? .nan)
                }),
            .init("Metadata", "a{sv}", { $0.metadata }),
            .init(
                "Volume", "d", { .double($0.engine.volume) },
                set: { player, value throws(Failure) in
                    // MPRIS requires 0 for negative values, and leaves the upper limit to the player.
                    let volume = value.doubleValue ?? .nan
                    try player.setVolume(volume.isNaN ? volume : min(max(volume, 0), 1))
                }),
            .init("Position", "x", isTold: false, { .int64($0.microseconds($0.engine.position)) }),
            .init(
                "Shuffle", "b", { .bool($0.isShuffled) },
                set: { player, value throws(Failure) in player.isShuffled = value.boolValue == true }),
            .init("MinimumRate", "d", { _ in .double(0.5) }),
            .init("MaximumRate", "d", { _ in .double(2) }),
            .init("CanGoNext", "b", { .bool($0.canGoNext) }),
            .init("CanGoPrevious", "b", { .bool($0.canGoPrevious) }),
            .init("CanPlay", "b", { .bool($0.isPlayable && $0.session.description.category.playerMay.play) }),
            .init("CanPause", "b", { .bool($0.isPlayable) }),
            .init("CanSeek", "b", { .bool($0.canSeek) }),
            .init("CanControl", "b", isTold: false, { _ in .bool(true) }),
        ]
    }

    private static var playerInterface: Interface<PlayerPlugin> {
        Interface(
            name: playerName, introspection: InterfaceXML.fragment(PackageResources.org_mpris_MediaPlayer2_Player_xml),
            methods: [
                // Without a track list, these do nothing.
                .init("Next", "") { player, call in
                    player.next()
                    call.reply()
                },
                .init("Previous", "") { player, call in
                    player.previous()
                    call.reply()
                },
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
            .init("HasTrackList", "b", { _ in .bool(true) }),
            .init("Identity", "s", { .string($0.identity) }),
            // Desktops find name and icon there. The entry in the session's description is that of the program for
            // which this one plays.
            .init(
                "DesktopEntry", "s",
                { .string($0.desktopEntry) }),
            .init("SupportedUriSchemes", "as", { _ in .strings(["file", "http", "https"]) }),
            .init(
                "SupportedMimeTypes", "as",
                { _ in
                    .strings([
                        "audio/x-wav", "audio/x-aiff", "audio/flac", "audio/ogg", "audio/mpeg", "audio/mp4",
                        "audio/aac",
                        "application/ogg", "audio/x-mpegurl", "audio/x-scpls",
                    ])
                }),
        ]
        return Interface(
            name: rootName, introspection: InterfaceXML.fragment(PackageResources.org_mpris_MediaPlayer2_xml),
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
