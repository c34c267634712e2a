import EventLoop
import Glibc
import MediaValues
import PluginAPI
import PluginKit
import Processes

/// Keeps the places of long films on the disk, in `$XDG_STATE_HOME/sessiond/films`: a second after a film was paused or
/// left, every ten seconds while it plays, and at the end of the program.
///
/// Several players may run at a time: the file is read again before each change.
final class PlaceKeeper {
    private static let (delay, interval) = (1.0, 10.0)

    private let file: KeptFile
    private let loop: EventLoop
    private let complain: (String) -> Void
    private var hasComplained = false
    /// The film that plays or is paused, with its last known position; nil: none.
    private var seen: (uri: String, position: Double, length: Double?, at: Double, rate: Double)?
    private lazy var timer = Timer(on: loop) { [unowned self] in tick() }
    private var isPlaying = false
    private weak var engine: (any FilmEngine)?
    /// What is to be written.
    private var left: [(uri: String, position: Double, length: Double?)] = []

    /// Nil if there is no folder for it.
    /// - Parameter complain: told once if the file cannot be written.
    init?(on loop: EventLoop, complain: @escaping (String) -> Void) {
        guard let state = UserFolder.state.path else { return nil }
        file = KeptFile(state + "/sessiond/films", limit: FilmPlaces.largestFile)
        (self.loop, self.complain) = (loop, complain)
    }

    /// Where the film begins, in seconds; nil: at its beginning.
    func place(of uri: String) -> Double? {
        write()
        return read().place(of: uri)
    }

    /// Called when something may have changed.
    func settled(_ engine: any FilmEngine) {
        let now = MonotonicClock.seconds
        if let seen, seen.uri != engine.uri || engine.state == .stopped || engine.state == .failed {
            leave(seen, at: now)
        }
        let wasPlaying = isPlaying
        isPlaying = engine.state == .playing
        self.engine = engine
        // A film that was only opened was not left anywhere.
        guard let uri = engine.uri, isPlaying || engine.state == .paused && seen?.uri == uri else {
            seen = nil
            return
        }
        seen = (uri, engine.position, engine.duration, now, isPlaying && !engine.isStalled ? engine.rate : 0)
        if isPlaying != wasPlaying { timer.arm(after: isPlaying ? Self.interval : Self.delay) }
    }

    /// The engine has no position any more: it is where it would be now.
    private func leave(
        _ film: (uri: String, position: Double, length: Double?, at: Double, rate: Double), at now: Double
    ) {
        left.append((film.uri, film.position + (now - film.at) * film.rate, film.length))
        seen = nil
        timer.arm(after: Self.delay)
    }

    /// The film was seen to its end.
    func finished(_ uri: String) {
        seen = nil
        left.append((uri, 0, nil))
        write()
    }

    /// The program ends.
    func end() {
        note()
        write()
        timer.disarm()
    }

    private func tick() {
        note()
        write()
        if isPlaying { timer.arm(after: Self.interval) }
    }

    /// The film that plays is where the engine says.
    private func note() {
        guard let seen else { return }
        left.append((seen.uri, engine?.position ?? seen.position, engine?.duration ?? seen.length))
    }

    private func read() -> FilmPlaces { FilmPlaces(bytes: file.read() ?? []) }

    private func write() {
        guard !left.isEmpty else { return }
        var places = read()
        let before = places
        for film in left { places.leave(film.uri, at: film.position, of: film.length) }
        left = []
        guard places != before else { return }
        do throws(SessionError) {
            try file.write(places.bytes)
        } catch {
            if !hasComplained { complain("the places of films are not kept: \(error.reason)") }
            hasComplained = true
        }
    }
}
