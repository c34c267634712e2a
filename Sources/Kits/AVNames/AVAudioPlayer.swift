public import Foundation

/// As on iOS. Called on the main thread. Both methods have defaults that do nothing.
public protocol AVAudioPlayerDelegate: AnyObject {
    /// It played to its end, with all loops; false: its end is missing.
    func audioPlayerDidFinishPlaying(_ player: AVAudioPlayer, successfully flag: Bool)
    /// It cannot be played on.
    func audioPlayerDecodeErrorDidOccur(_ player: AVAudioPlayer, error: (any Error)?)
}

extension AVAudioPlayerDelegate {
    public func audioPlayerDidFinishPlaying(_ player: AVAudioPlayer, successfully flag: Bool) {}
    public func audioPlayerDecodeErrorDidOccur(_ player: AVAudioPlayer, error: (any Error)?) {}
}

extension AudioPlayer {
    /// Opens a sound, in the session of ``SessionKit/AudioSession/sharedInstance(bus:)``.
    /// - Throws: `DecodeFailed` with the reason if it cannot be played; `ResourceNotAvailable` if the player
    ///   (`sessiond-plugins`) is not installed.
    public convenience init(contentsOf url: URL) throws(SessionError) {
        self.init(unopened: url)
        try waiting { [self] () async throws(SessionError) in try await open() }
    }

    /// The contents of a sound file, at most 1 MB.
    public convenience init(data: Data) throws(SessionError) {
        self.init(unopened: [UInt8](data))
        try waiting { [self] () async throws(SessionError) in try await open() }
    }

    /// Weak.
    public var delegate: (any AVAudioPlayerDelegate)? {
        get { Delegates.all.delegate(of: self) as? any AVAudioPlayerDelegate }
        set { if Delegates.all.set(newValue, of: self) { tellDelegate() } }
    }

    private func tellDelegate() {
        let (finishes, errors) = (self.finishes, decodeErrors)
        Task { [weak self] in
            for await isWhole in finishes {
                await self?.tell { $0.audioPlayerDidFinishPlaying($1, successfully: isWhole) }
            }
        }
        Task { [weak self] in
            for await error in errors { await self?.tell { $0.audioPlayerDecodeErrorDidOccur($1, error: error) } }
        }
    }

    @MainActor
    private func tell(_ event: (any AVAudioPlayerDelegate, AVAudioPlayer) -> Void) {
        if let delegate { event(delegate, self) }
    }

    @discardableResult
    public func prepareToPlay() -> Bool {
        (try? waiting { () async throws(SessionError) in await self.prepareToPlay() }) ?? false
    }

    /// - Returns: false if the session may not play; the reason is logged.
    @discardableResult
    public func play() -> Bool {
        trying("play") { () async throws(SessionError) in try await self.play() } != nil
    }

    /// The same, beginning at that time of `deviceCurrentTime`.
    @discardableResult
    public func play(atTime time: TimeInterval) -> Bool {
        trying("play(atTime:)") { () async throws(SessionError) in try await self.play(atTime: time) } != nil
    }

    public func pause() { trying("pause") { () async throws(SessionError) in await self.pause() } }
    public func stop() { trying("stop") { () async throws(SessionError) in await self.stop() } }
    public func updateMeters() { trying("updateMeters") { () async throws(SessionError) in await self.updateMeters() } }

    // What is a number of another type, or a URL, on iOS.

    @_disfavoredOverload public var url: URL? { address.flatMap { URL(string: $0) } }

    @_disfavoredOverload public func averagePower(forChannel channel: Int) -> Float {
        Float(averagePower(forChannel: channel) as Double)
    }

    @_disfavoredOverload public func peakPower(forChannel channel: Int) -> Float {
        Float(peakPower(forChannel: channel) as Double)
    }
}
