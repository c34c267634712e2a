import EventLoop
import Synchronization

/// The state of an app that plays by itself (MPNowPlayingPlaybackState).
public enum NowPlayingPlaybackState: Sendable, Hashable {
    /// The rate in the info decides: 0 is paused.
    case unknown
    case playing, paused, stopped, interrupted
}

/// The keys of ``NowPlayingInfoCenter/nowPlayingInfo``. Values of another type, and other keys, are ignored.
public enum NowPlayingInfo {
    /// String.
    public static let title = "title"
    public static let artist = "artist"
    public static let albumTitle = "albumTitle"
    public static let albumArtist = "albumArtist"
    public static let genre = "genre"
    public static let composer = "composer"
    /// The URI of a picture (MPMediaItemPropertyArtwork is an image).
    public static let artworkURL = "artworkURL"
    /// Int, from 1.
    public static let albumTrackNumber = "albumTrackNumber"
    public static let discNumber = "discNumber"
    /// Double, in seconds.
    public static let playbackDuration = "playbackDuration"
    /// Double, in seconds, at the time when the info is set.
    public static let elapsedPlaybackTime = "elapsedPlaybackTime"
    /// Double, 0: it is paused; default 1.
    public static let playbackRate = "playbackRate"
    /// String: the URI of the sound.
    public static let assetURL = "assetURL"
}

/// What the desktop shows of an app that plays by itself (MPNowPlayingInfoCenter).
///
/// When info is set first, the app becomes a player of the desktop (MPRIS). ``RemoteCommandCenter`` gets its buttons.
public final class NowPlayingInfoCenter: Sendable {
    private static let only = NowPlayingInfoCenter(.shared)

    /// The center of this program, on the session bus.
    public static func `default`() -> NowPlayingInfoCenter { only }

    /// The info, as far as a desktop can show it.
    struct Shown: Sendable {
        var texts: [String: String] = [:]
        var numbers: [String: Double] = [:]
        /// The time of CLOCK_MONOTONIC at which it was set, in seconds.
        var since = 0.0

        var rate: Double { numbers[NowPlayingInfo.playbackRate] ?? 1 }

        func position(isPlaying: Bool) -> Double {
            let start = numbers[NowPlayingInfo.elapsedPlaybackTime] ?? 0
            let now = isPlaying ? start + (MonotonicClock.seconds - since) * rate : start
            return min(max(0, now), numbers[NowPlayingInfo.playbackDuration] ?? .infinity)
        }
    }

    private let control: RemoteControl
    private let shown = Mutex<Shown?>(nil)
    private let state = Mutex(NowPlayingPlaybackState.unknown)

    init(_ control: RemoteControl) {
        self.control = control
        control.info.withLock { $0 = self }
    }

    /// The keys are those of ``NowPlayingInfo``; nil: the app plays nothing.
    public var nowPlayingInfo: [String: Any]? {
        get {
            shown.withLock { shown in
                shown.map { shown in
                    var info: [String: Any] = shown.texts
                    for (key, number) in shown.numbers { info[key] = number }
                    return info
                }
            }
        }
        set {
            var new = newValue.map { _ in Shown() }
            for (key, value) in newValue ?? [:] {
                switch value {
                case let text as String: new?.texts[key] = text
                case let number as Double: new?.numbers[key] = number
                case let number as Float: new?.numbers[key] = Double(number)
                case let number as Int: new?.numbers[key] = Double(number)
                case _: break
                }
            }
            new?.since = MonotonicClock.seconds
            let value = new
            shown.withLock { $0 = value }
            control.changed()
        }
    }

    /// Default: `.unknown`.
    public var playbackState: NowPlayingPlaybackState {
        get { state.withLock { $0 } }
        set {
            state.withLock { $0 = newValue }
            control.changed()
        }
    }

    var current: Shown? { shown.withLock { $0 } }

    /// MPRIS's PlaybackStatus.
    var status: String {
        switch playbackState {
        case .unknown: current.map { $0.rate > 0 ? "Playing" : "Paused" } ?? "Stopped"
        case .playing: "Playing"
        case .paused, .interrupted: "Paused"
        case .stopped: "Stopped"
        }
    }
}
