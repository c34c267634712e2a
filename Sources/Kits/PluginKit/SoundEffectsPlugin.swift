public import DBus
public import EventLoop
public import PluginAPI
import SessionBus
public import SessionKit

/// Short sounds for the session service: loaded once, played by number with the shortest latency, mixed with all other
/// sound (System Sound Services), on the bus as `org.sessiond1.SoundEffects`.
///
/// The session, usually ambient, is active while a sound plays. An interruption ends the sounds. Under the silent
/// switch nothing is heard, and sounds end at once.
public final class SoundEffectsPlugin: Plugin {
    /// Called once, on the loop's thread; during the call if the daemon need not be asked.
    public typealias Reply<Success> = (Result<Success, Failure>) -> Void

    /// The longest effect, in seconds.
    public static let longest = 30.0
    private static let limits = (loaded: 256, playing: 64, decoding: 8)
    /// Seconds for which the session stays active after the last sound, because effects often come in groups.
    private static let linger = 0.5

    /// The plugin owns its ``AudioSessionClient/onEvent`` from the initializer on.
    public let session: AudioSessionClient
    let connection: Connection
    private let decoder: any SoundDecoder
    private let cache: any SampleCache
    /// Called after the signal was sent: the effect, the sound, and whether it was played to its end.
    public var onCompleted: ((_ effect: UInt32, _ playing: UInt32, _ wasWhole: Bool) -> Void)?

    private struct Effect {
        let path: String
        let duration: Double
        var isCached: Bool
    }
    private var effects: [UInt32: Effect] = [:]
    private var lastEffect: UInt32 = 0
    /// The playing sounds, by the server's numbers.
    private var playing: [UInt32: (effect: UInt32, number: UInt32)] = [:]
    private var lastPlaying: UInt32 = 0
    /// Files that are being decoded, and those that wait: each decoder needs threads and file descriptors.
    private var decoding = 0
    private var waiting: [() -> Void] = []
    private var loading = 0
    /// Requests that the server has not answered.
    private var pending = 0
    /// Decides when effects may play.
    private let driver: GrantDriver
    /// Effects that wait for the daemon's answer.
    private var wishes: [(Result<Void, Failure>) -> Void] = []
    private let loop: EventLoop
    private var announcements: [Announcement<SoundEffectsPlugin>] = []

    /// Exports the object and creates the session. The objects on the connection keep this object alive.
    public init(
        decoder: any SoundDecoder, cache: any SampleCache, _ description: AudioSessionClient.Description,
        on connection: Connection, _ loop: EventLoop
    ) {
        (self.decoder, self.cache, self.connection, self.loop) = (decoder, cache, connection, loop)
        session = AudioSessionClient(description, on: connection) { _ in }
        driver = GrantDriver(session, linger: Self.linger, on: loop)
        driver.onStart = { [unowned self] () throws(Failure) in answer(.success(())) }
        driver.onSilence = { [unowned self] in for stream in playing.keys { cache.stop(stream) } }
        driver.isSilent = { [unowned self] in isIdle }
        session.onEvent = { [unowned self] event in heard(event) }
        cache.onEnded = { [unowned self] stream, wasWhole in ended(stream, wasWhole) }
        cache.onLost = { [unowned self] in for id in effects.keys { effects[id]?.isCached = false } }
        announcements = export()
    }

    private var isIdle: Bool { playing.isEmpty && pending == 0 }
    var loadedCount: Int { effects.count }
    var playingCount: Int { playing.count }

    private func changed() { for announcement in announcements { announcement.update(self) } }

    // MARK: Requests

    /// Decodes a file of at most ``longest`` seconds and stores it in the server's cache; returns its number and
    /// length.
    public func load(path: String, _ reply: @escaping Reply<(effect: UInt32, duration: Double)>) {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            return reply(.failure(Failure(.badParameter("'path' must be absolute, not \(quoted(path))"))))
        }
        let count = effects.count + loading
        guard count < Self.limits.loaded else {
            return reply(.failure(Failure(SessionError(.resourceNotAvailable, "\(count) effects are already loaded"))))
        }
        loading += 1
        lastEffect += 1
        let id = lastEffect
        fetch(id, path) { [weak self] result in
            guard let self else { return }
            loading -= 1
            switch result {
            case .failure(let failure): reply(.failure(failure))
            case .success(let duration):
                effects[id] = Effect(path: path, duration: duration, isCached: true)
                changed()
                reply(.success((id, duration)))
            }
        }
    }

    /// Stops its sounds and removes it.
    /// - Throws: `BadParameter` if there is no effect with that number.
    public func unload(_ effect: UInt32) throws(Failure) {
        guard effects.removeValue(forKey: effect) != nil else { throw Self.unknown(effect) }
        for (stream, what) in playing where what.effect == effect { cache.stop(stream) }
        cache.remove(name(effect))
        changed()
    }

    /// Plays it once; returns the number for ``onCompleted``. An effect may play several times at once.
    public func play(_ effect: UInt32, _ reply: @escaping Reply<UInt32>) {
        guard let known = effects[effect] else { return reply(.failure(Self.unknown(effect))) }
        guard playing.count + pending < Self.limits.playing else {
            return reply(.failure(Failure(SessionError(.resourceNotAvailable, "\(playing.count) sounds play already"))))
        }
        pending += 1
        // The server was restarted and has lost it.
        guard known.isCached else {
            return fetch(effect, known.path) { [weak self] result in
                guard let self else { return }
                switch result {
                case .failure(let failure): settled(.failure(failure), reply)
                case .success:
                    effects[effect]?.isCached = true
                    activateAndPlay(effect, reply)
                }
            }
        }
        activateAndPlay(effect, reply)
    }

    /// Stops one sound.
    public func stop(_ number: UInt32) {
        for (stream, what) in playing where what.number == number { cache.stop(stream) }
    }

    public func end(_ done: @escaping () -> Void) {
        for stream in playing.keys { cache.stop(stream) }
        for id in effects.keys { cache.remove(name(id)) }
        session.close { [connection] _ in
            connection.flush()
            done()
        }
    }

    private func fetch(_ effect: UInt32, _ path: String, _ reply: @escaping Reply<Double>) {
        guard decoding < Self.limits.decoding else {
            waiting.append { [weak self] in self?.fetch(effect, path, reply) }
            return
        }
        decoding += 1
        decoder.decode(path: path, limit: Self.longest) { [weak self] result in
            guard let self else { return }
            decoding -= 1
            if !waiting.isEmpty { loop.later(waiting.removeFirst()) }
            switch result {
            case .failure(let error): reply(.failure(Failure(error)))
            case .success(let sample):
                cache.upload(sample, as: name(effect)) { result in
                    reply(result.map { sample.duration }.mapError { Failure($0) })
                }
            }
        }
    }

    private func activateAndPlay(_ effect: UInt32, _ reply: @escaping Reply<UInt32>) {
        wishes.append { [weak self] result in
            switch result {
            case .failure(let failure): self?.settled(.failure(failure), reply)
            case .success: self?.playNow(effect, reply)
            }
        }
        switch driver.grant.state {
        case .asking: break
        case .sounding where session.state == .active, .lingering where session.state == .active: driver.take(.goesOn)
        case .idle, .lingering, .due, .sounding, .ending, .interrupted, .unplugged: ask()
        }
    }

    private func ask() {
        driver.ask { [weak self] result in if case .failure = result { self?.answer(result) } }
    }

    private func answer(_ result: Result<Void, Failure>) {
        let wishes = wishes
        self.wishes = []
        for wish in wishes { wish(result) }
    }

    private func playNow(_ effect: UInt32, _ reply: @escaping Reply<UInt32>) {
        lastPlaying += 1
        let number = lastPlaying
        if session.isMuted {
            settled(.success(number), reply)
            return completed(effect, number, true)
        }
        cache.play(name(effect), gain: session.duckGain) { [weak self] result in
            guard let self else { return }
            if case .success(let stream) = result { playing[stream] = (effect, number) }
            settled(result.map { _ in number }.mapError { Failure($0) }, reply)
            // Its start was reported, but the interruption came first.
            if case .success(let stream) = result, session.state == .interrupted { cache.stop(stream) }
        }
    }

    private func settled(_ result: Result<UInt32, Failure>, _ reply: Reply<UInt32>) {
        pending -= 1
        reply(result)
        changed()
        if isIdle { driver.take(.burstOver) }
    }

    // MARK: Signals

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(.interruptionBegan(let reason, _, _, _)): driver.take(.began(reason))
        case .session(.mutedChanged(true)): for stream in playing.keys { cache.stop(stream) }
        case .daemonLost: driver.take(.daemonLost)
        // An effect whose time has passed is not played later.
        case .session, .servicesLost, .servicesReset, .registered, .refused: break
        }
    }

    private func ended(_ stream: UInt32, _ wasWhole: Bool) {
        guard let what = playing.removeValue(forKey: stream) else { return }
        completed(what.effect, what.number, wasWhole)
        changed()
        if isIdle { driver.take(.burstOver) }
    }

    private func completed(_ effect: UInt32, _ number: UInt32, _ wasWhole: Bool) {
        emit("Completed", [.uint32(effect), .uint32(number), .bool(wasWhole)])
        onCompleted?(effect, number, wasWhole)
    }

    /// All clients share the cache of a server.
    private func name(_ effect: UInt32) -> String { "sessiond-effects-\(PluginHost.processID)-\(effect)" }

    private static func unknown(_ effect: UInt32) -> Failure {
        Failure(.badParameter("there is no effect \(effect): load it first"))
    }
}
