import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus

/// Moves forward or backward quickly, without sound.
struct Seeking {
    enum Direction: String {
        case forward
        case backward

        /// The state on the bus.
        var state: String { "seeking-" + rawValue }
    }

    /// The factor of the normal speed.
    static let speed = 8.0
    /// The time between two steps, in seconds.
    static let interval = 0.25

    let direction: Direction
    /// The position and the time at which it started.
    let from: Double
    let since: Double

    var rate: Double { direction == .forward ? Self.speed : -Self.speed }

    /// The position at a time.
    func position(at now: Double) -> Double { from + rate * max(0, now - since) }
}

extension PlayerPlugin {
    /// The index of the current item in the list.
    public var indexOfCurrentItem: Int? { queue.currentID.flatMap { queue.ids.firstIndex(of: $0) } }

    func beginSeeking(_ direction: Seeking.Direction) throws(Failure) {
        guard engine.state == .playing, !hasFailed else {
            throw Failure(SessionError(.cannotStartPlaying, "nothing is playing, so there is nothing to wind"))
        }
        guard engine.duration != nil else { throw Failure(SessionError(.notSupported, "it has no known end")) }
        changing {
            seeking = Seeking(direction: direction, from: engine.position, since: MonotonicClock.seconds)
        }
    }

    /// - Throws: `NotSupported` if the item is not live.
    public func goToLive() throws(SessionError) {
        guard engine.isLive else {
            throw SessionError(.notSupported, "it is not live: GoToLive is for a radio or a live stream")
        }
        changing { engine.goToLive() }
    }

    func endSeeking() { changing { seeking = nil } }

    func seekingChanged() {
        muteEngine()
        if seeking != nil { seekingTimer.arm(after: Seeking.interval) } else { seekingTimer.disarm() }
    }

    /// The silent switch and winding both mute, independently of each other.
    func muteEngine() { engine.isMuted = session.isMuted || seeking != nil }

    func wind() {
        guard let seeking, let duration = engine.duration else { return }
        let place = seeking.position(at: MonotonicClock.seconds)
        engine.seek(to: min(max(0, place), duration))
        // At the start and at the end, normal playback continues.
        guard place > 0, place < duration else { return endSeeking() }
        // The engine may have continued with the next item.
        guard self.seeking != nil else { return }
        seekingTimer.arm(after: Seeking.interval)
    }
}
