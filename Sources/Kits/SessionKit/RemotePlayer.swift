import DBus
import EventLoop
import SessionBus

/// `org.mpris.MediaPlayer2` and `.Player` of an app. To be used only on the thread of the loop.
final class RemotePlayer {
    private static let path = "/org/mpris/MediaPlayer2"
    private static let rootName = "org.mpris.MediaPlayer2"
    private static let playerName = "org.mpris.MediaPlayer2.Player"
    private static let noTrack = "/org/mpris/MediaPlayer2/TrackList/NoTrack"
    private static let track = "/org/sessiond1/app/track/"

    private typealias Property = (name: String, signature: String, get: (RemotePlayer) -> Value, isTold: Bool)

    private let commands: RemoteCommandCenter
    private let info: NowPlayingInfoCenter
    private let name: String
    private let desktopEntry: String
    private weak var connection: Connection?
    private var told: [String: Value] = [:]
    /// The number of the item, which changes with its title or its address.
    private var item = (number: 0, key: "")

    init(_ commands: RemoteCommandCenter, _ info: NowPlayingInfoCenter, name: String, desktopEntry: String) {
        (self.commands, self.info, self.name, self.desktopEntry) = (commands, info, name, desktopEntry)
    }

    func export(on connection: Connection) {
        self.connection = connection
        connection.objects.export(self, at: Self.path, interfaces: [Self.rootInterface, Self.playerInterface])
        for property in Self.properties { told[property.name] = property.get(self) }
    }

    /// Sends the values that have changed.
    func update() {
        var changes: [(String, Value)] = []
        for property in Self.properties where property.isTold {
            let value = property.get(self)
            if told.updateValue(value, forKey: property.name) != value { changes.append((property.name, value)) }
        }
        if !changes.isEmpty {
            connection?.objects.propertiesChanged(path: Self.path, interface: Self.playerName, changes)
        }
        let time = position
        if let last = lastPosition, abs(time - last.time - (isPlaying ? MonotonicClock.seconds - last.at : 0)) > 1 {
            connection?.objects.emit(
                path: Self.path, interface: Self.playerName, member: "Seeked", [.int64(microseconds(time))])
        }
        lastPosition = (time, MonotonicClock.seconds)
    }

    private var lastPosition: (time: Double, at: Double)?

    // MARK: What is shown

    private var isPlaying: Bool { info.status == "Playing" }
    private var position: Double { info.current?.position(isPlaying: isPlaying) ?? 0 }
    private func microseconds(_ seconds: Double) -> Int64 { seconds > 0 ? Int64(min(seconds, 1e12) * 1e6) : 0 }
    private var trackPath: String { info.current == nil ? Self.noTrack : Self.track + String(item.number) }

    private var metadata: Value {
        guard let shown = info.current else { return .properties([]) }
        let key = [NowPlayingInfo.title, NowPlayingInfo.assetURL, NowPlayingInfo.albumTitle]
            .map { shown.texts[$0] ?? "" }.joined(separator: "\n")
        if key != item.key { item = (item.number + 1, key) }
        var fields: [(String, Value)] = [("mpris:trackid", .objectPath(trackPath))]
        let texts = [
            ("xesam:title", NowPlayingInfo.title), ("xesam:album", NowPlayingInfo.albumTitle),
            ("mpris:artUrl", NowPlayingInfo.artworkURL), ("xesam:url", NowPlayingInfo.assetURL),
        ]
        for (name, key) in texts { if let text = shown.texts[key] { fields.append((name, .string(text))) } }
        let lists = [
            ("xesam:artist", NowPlayingInfo.artist), ("xesam:albumArtist", NowPlayingInfo.albumArtist),
            ("xesam:genre", NowPlayingInfo.genre), ("xesam:composer", NowPlayingInfo.composer),
        ]
        for (name, key) in lists { if let text = shown.texts[key] { fields.append((name, .strings([text]))) } }
        if let duration = shown.numbers[NowPlayingInfo.playbackDuration], duration > 0 {
            fields.append(("mpris:length", .int64(microseconds(duration))))
        }
        let numbers = [
            ("xesam:trackNumber", NowPlayingInfo.albumTrackNumber), ("xesam:discNumber", NowPlayingInfo.discNumber),
        ]
        for (name, key) in numbers {
            if let number = shown.numbers[key], number >= 1, number < 1e6 {
                fields.append((name, .int32(Int32(number))))
            }
        }
        return .properties(fields)
    }

    // MARK: Commands

    private func run(_ command: RemoteCommand, _ event: RemoteCommandEvent, _ call: Invocation) {
        // MPRIS: what a player cannot do has no effect.
        guard command.isOffered else { return call.reply() }
        // The invocation stays on the thread of the loop.
        let held = HeldInvocation(call)
        commands.line.add { await RemoteAnswers.shared.give(await command.run(event), to: held) }
    }

    private func run(_ command: RemoteCommand, _ call: Invocation) { run(command, RemoteCommandEvent(), call) }

    private func toggle(_ call: Invocation) {
        if commands.togglePlayPauseCommand.isOffered { return run(commands.togglePlayPauseCommand, call) }
        let held = HeldInvocation(call)
        commands.line.add { [commands, info] in
            // Commands before it may have changed whether the app plays.
            let command = info.status == "Playing" ? commands.pauseCommand : commands.playCommand
            let status = command.isOffered ? await command.run(RemoteCommandEvent()) : .success
            await RemoteAnswers.shared.give(status, to: held)
        }
    }

    private func move(by seconds: Double, _ call: Invocation) {
        if commands.changePlaybackPositionCommand.isOffered { return place(max(0, position + seconds), call) }
        let command = seconds < 0 ? commands.skipBackwardCommand : commands.skipForwardCommand
        run(command, RemoteCommandEvent(interval: abs(seconds)), call)
    }

    private func place(_ seconds: Double, _ call: Invocation) {
        run(commands.changePlaybackPositionCommand, RemoteCommandEvent(positionTime: seconds), call)
    }

    private func next(_ command: RemoteCommand, or skip: RemoteCommand, _ call: Invocation) {
        if command.isOffered { return run(command, call) }
        run(skip, RemoteCommandEvent(interval: skip.preferredIntervals.first ?? 15), call)
    }

    private func setRate(_ rate: Double) {
        let command = commands.changePlaybackRateCommand
        guard rate > 0, command.isOffered else { return }
        commands.line.add { await command.run(RemoteCommandEvent(playbackRate: rate)) }
    }

    private var canSeek: Bool {
        commands.changePlaybackPositionCommand.isOffered || commands.skipForwardCommand.isOffered
            || commands.skipBackwardCommand.isOffered
    }

    // MARK: Interfaces

    private static var properties: [Property] {
        [
            ("PlaybackStatus", "s", { .string($0.info.status) }, true),
            ("Metadata", "a{sv}", { $0.metadata }, true),
            ("Position", "x", { .int64($0.microseconds($0.position)) }, false),
            ("MinimumRate", "d", { .double($0.commands.changePlaybackRateCommand.isOffered ? 0.5 : 1) }, true),
            ("MaximumRate", "d", { .double($0.commands.changePlaybackRateCommand.isOffered ? 2 : 1) }, true),
            (
                "CanGoNext", "b",
                { .bool($0.commands.nextTrackCommand.isOffered || $0.commands.skipForwardCommand.isOffered) }, true
            ),
            (
                "CanGoPrevious", "b",
                { .bool($0.commands.previousTrackCommand.isOffered || $0.commands.skipBackwardCommand.isOffered) }, true
            ),
            (
                "CanPlay", "b",
                { .bool($0.commands.playCommand.isOffered || $0.commands.togglePlayPauseCommand.isOffered) }, true
            ),
            (
                "CanPause", "b",
                { .bool($0.commands.pauseCommand.isOffered || $0.commands.togglePlayPauseCommand.isOffered) }, true
            ),
            ("CanSeek", "b", { .bool($0.canSeek) }, true),
            ("CanControl", "b", { _ in .bool(true) }, false),
        ]
    }

    private static var playerInterface: Interface<RemotePlayer> {
        Interface(
            name: playerName,
            introspection: InterfaceXML.fragment(PackageResources.org_mpris_MediaPlayer2_Player_xml),
            methods: [
                .init("Play", "") { player, call in player.run(player.commands.playCommand, call) },
                .init("Pause", "") { player, call in player.run(player.commands.pauseCommand, call) },
                .init("PlayPause", "") { player, call in player.toggle(call) },
                .init("Stop", "") { player, call in player.run(player.commands.stopCommand, call) },
                .init("Next", "") { player, call in
                    player.next(player.commands.nextTrackCommand, or: player.commands.skipForwardCommand, call)
                },
                .init("Previous", "") { player, call in
                    player.next(player.commands.previousTrackCommand, or: player.commands.skipBackwardCommand, call)
                },
                .init("Seek", "x") { player, call in
                    player.move(by: Double(call.arguments[0].int64Value ?? 0) / 1e6, call)
                },
                .init("SetPosition", "ox") { player, call in
                    // A request for another item came too late.
                    let time = call.arguments[1].int64Value ?? -1
                    guard call.arguments[0].objectPathValue == player.trackPath, time >= 0 else { return call.reply() }
                    player.place(Double(time) / 1e6, call)
                },
                .init("OpenUri", "s") { _, call in
                    call.fail(.failed("this app opens no addresses: use its own window"))
                },
            ],
            properties: properties.map {
                Interface<RemotePlayer>.Property($0.name, $0.signature, get: $0.get, emitsChanged: $0.isTold)
            } + settableProperties)
    }

    /// An app has no commands for the last three: what is written there has no effect, as MPRIS allows.
    private static var settableProperties: [Interface<RemotePlayer>.Property] {
        [
            .init(
                "Rate", "d", get: { .double(max(0.01, $0.info.current?.rate ?? 1)) },
                set: { player, value throws(Failure) in player.setRate(value.doubleValue ?? 0) }, emitsChanged: false),
            .init("Volume", "d", get: { _ in .double(1) }, set: { _, _ throws(Failure) in }, emitsChanged: false),
            .init(
                "LoopStatus", "s", get: { _ in .string("None") }, set: { _, _ throws(Failure) in },
                emitsChanged: false),
            .init("Shuffle", "b", get: { _ in .bool(false) }, set: { _, _ throws(Failure) in }, emitsChanged: false),
        ]
    }

    private static var rootInterface: Interface<RemotePlayer> {
        Interface(
            name: rootName, introspection: InterfaceXML.fragment(PackageResources.org_mpris_MediaPlayer2_xml),
            methods: [
                .init("Raise", "") { _, call in call.reply() },
                .init("Quit", "") { _, call in call.reply() },
            ],
            properties: [
                .init("CanQuit", "b", get: { _ in .bool(false) }), .init("CanRaise", "b", get: { _ in .bool(false) }),
                .init("HasTrackList", "b", get: { _ in .bool(false) }),
                .init("Identity", "s", get: { .string($0.name) }),
                .init("DesktopEntry", "s", get: { .string($0.desktopEntry) }),
                .init("SupportedUriSchemes", "as", get: { _ in .strings([]) }),
                .init("SupportedMimeTypes", "as", get: { _ in .strings([]) }),
            ])
    }
}

/// A call whose answer comes from a task.
// SAFETY: it is created on the thread of the loop, and the invocation is used only by ``RemoteAnswers``, which is on that
// thread, too.
private final class HeldInvocation: @unchecked Sendable {
    let call: Invocation

    init(_ call: Invocation) { self.call = call }
}

/// Answers calls on the thread of the loop.
private actor RemoteAnswers {
    nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    static let shared = RemoteAnswers()

    func give(_ status: RemoteCommandHandlerStatus, to held: HeldInvocation) {
        switch status {
        case .success: held.call.reply()
        case .noSuchContent, .noActionableNowPlayingItem, .deviceNotFound, .commandFailed:
            held.call.fail(.failed("the app could not do that"))
        }
    }
}
