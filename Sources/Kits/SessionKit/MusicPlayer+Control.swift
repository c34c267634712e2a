import DBus
public import PluginAPI
import SessionBus

extension MusicPlayer {
    // MARK: State

    public var playbackState: PlaybackState {
        get async throws(SessionError) { Self.state(try await client.get("State").stringValue ?? "") }
    }

    public var repeatMode: RepeatMode {
        get async throws(SessionError) {
            RepeatMode(rawValue: try await client.get("RepeatMode").stringValue ?? "") ?? .none
        }
    }

    public func setRepeatMode(_ mode: RepeatMode) async throws(SessionError) {
        try await set("RepeatMode", mode == .default ? nil : mode.rawValue)
    }

    public var shuffleMode: ShuffleMode {
        get async throws(SessionError) {
            ShuffleMode(rawValue: try await client.get("ShuffleMode").stringValue ?? "") ?? .off
        }
    }

    public func setShuffleMode(_ mode: ShuffleMode) async throws(SessionError) {
        try await set("ShuffleMode", mode == .default ? nil : mode.rawValue)
    }

    /// Nil: the value of the system player.
    private func set(_ property: String, _ word: String?) async throws(SessionError) {
        if let word { return try await client.set(property, .string(word)) }
        guard kind == .application else { return }
        let system = PluginClient(.player, on: bus, .shared(uri: ""))
        try await client.set(property, try await system.get(property))
    }

    /// Seconds since the start of the item.
    public var currentPlaybackTime: Double {
        get async throws(SessionError) { try await client.get("Position").doubleValue ?? 0 }
    }

    /// - Throws: `BadParameter` for a negative time, or if the queue is empty.
    public func setCurrentPlaybackTime(_ seconds: Double) async throws(SessionError) {
        try await client.ask("SeekTo", [.double(seconds)])
    }

    /// 0 while it does not play, 1 at normal speed, 8 and −8 while it seeks.
    public var currentPlaybackRate: Double {
        get async throws(SessionError) { try await client.get("CurrentRate").doubleValue ?? 0 }
    }

    /// 0 pauses, 0.5…2 plays.
    public func setCurrentPlaybackRate(_ rate: Double) async throws(SessionError) {
        guard rate != 0 else { return try await pause() }
        try await client.set("Rate", .double(rate))
        try await play()
    }

    /// 0…1; the volume of this player only.
    public var volume: Double { get async throws(SessionError) { try await client.get("Volume").doubleValue ?? 1 } }

    public func setVolume(_ volume: Double) async throws(SessionError) {
        try await client.set("Volume", .double(volume))
    }

    /// Whether the item can start to play without a delay.
    public var isPreparedToPlay: Bool {
        get async throws(SessionError) { try await client.get("ItemStatus").stringValue == "ready" }
    }

    package func modes() async throws(SessionError) -> (shuffle: ShuffleMode, repeat: RepeatMode) {
        (try await shuffleMode, try await repeatMode)
    }

    // MARK: Control

    /// Opens the item. ``play()`` does this itself.
    /// - Returns: whether it can be played.
    @discardableResult
    public func prepareToPlay() async throws(SessionError) -> Bool {
        try await client.ask("Prepare").first?.boolValue ?? false
    }

    /// - Throws: the reason why the session may not play, such as `InsufficientPriority` during an alert;
    ///   `CannotStartPlaying` if the queue is empty.
    public func play() async throws(SessionError) {
        switch source {
        case .separate(let client): try await client.ask("Play")
        case .hosted(let plugin): try await plugin.sound("Play")
        }
    }

    public func pause() async throws(SessionError) { try await fallSilent("Pause") }
    /// Stops, and goes back to the start of the item.
    public func stop() async throws(SessionError) { try await fallSilent("Stop") }

    private func fallSilent(_ member: String) async throws(SessionError) {
        switch source {
        case .separate(let client): try await client.ask(member)
        case .hosted(let plugin): await plugin.fallSilent(member)
        }
    }

    /// Moves to the next item. It plays if the player was playing. At the end of the queue nothing happens.
    public func skipToNextItem() async throws(SessionError) { try await client.ask("Next") }
    /// Moves to the previous item. It plays if the player was playing. At the start of the queue nothing happens.
    public func skipToPreviousItem() async throws(SessionError) { try await client.ask("Previous") }
    public func skipToBeginning() async throws(SessionError) { try await client.ask("SkipToBeginning") }

    /// Moves forward at eight times the speed without sound, until ``endSeeking()`` or the end of the item.
    /// - Throws: `CannotStartPlaying` if nothing plays.
    public func beginSeekingForward() async throws(SessionError) {
        try await client.ask("BeginSeeking", [.string("forward")])
    }

    /// Moves backward at eight times the speed without sound, until ``endSeeking()`` or the start of the item.
    /// - Throws: `CannotStartPlaying` if nothing plays.
    public func beginSeekingBackward() async throws(SessionError) {
        try await client.ask("BeginSeeking", [.string("backward")])
    }

    public func endSeeking() async throws(SessionError) { try await client.ask("EndSeeking") }
}
