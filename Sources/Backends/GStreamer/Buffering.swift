import EventLoop

/// How full the buffer of a stream is, and for how long nothing came.
final class Buffering {
    /// The network has not enough yet: paused until it has.
    private(set) var isShort = false
    private var percent = 0
    private var isWatched = false
    private let timer: Timer

    /// A stream that brings nothing for so long has failed, in seconds.
    static let patience = 15.0

    init(on loop: EventLoop, tooLong: @escaping () -> Void) { timer = Timer(on: loop, tooLong) }

    func take(_ percent: Int) {
        isShort = percent < 100
        // Whatever comes, however slowly, is no stall.
        if percent != self.percent { isWatched = false }
        self.percent = percent
    }

    func watch(_ isStalled: Bool) {
        guard isStalled != isWatched else { return }
        isWatched = isStalled
        if isStalled { timer.arm(after: Buffering.patience) } else { timer.disarm() }
    }

    func stop() { timer.disarm() }
}
