import EventLoop

/// How full the buffer of a stream is, and for how long no data has arrived.
final class Buffering {
    /// Not enough data has arrived: playing is paused until it has.
    private(set) var isShort = false
    private var percent = 0
    private var isWatched = false
    private let timer: Timer

    /// Seconds without data after which a stream has failed.
    private let patience: Double

    init(patience: Double, on loop: EventLoop, tooLong: @escaping () -> Void) {
        self.patience = patience
        timer = Timer(on: loop, tooLong)
    }

    func take(_ percent: Int) {
        isShort = percent < 100
        // As long as data arrives, however slowly, the stream is not stalled.
        if percent != self.percent { isWatched = false }
        self.percent = percent
    }

    func watch(_ isStalled: Bool) {
        guard isStalled != isWatched else { return }
        isWatched = isStalled
        if isStalled, patience.isFinite { timer.arm(after: patience) } else { timer.disarm() }
    }

    func stop() { timer.disarm() }
}
