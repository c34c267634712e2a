import EventLoop

/// Reports the position regularly during playback (AVPlayer's addPeriodicTimeObserver); idle otherwise.
final class PositionClock {
    /// Seconds between two reports; 0: never.
    var interval = 0.0 {
        didSet { if interval != oldValue { rearm() } }
    }

    private var isRunning = false
    private let onTick: () -> Void
    private let loop: EventLoop
    private lazy var timer = Timer(on: loop) { [unowned self] in
        rearm()
        onTick()
    }

    init(on loop: EventLoop, _ onTick: @escaping () -> Void) {
        self.loop = loop
        self.onTick = onTick
    }

    func run(_ runs: Bool) {
        guard runs != isRunning else { return }
        isRunning = runs
        rearm()
    }

    private func rearm() { if isRunning, interval > 0 { timer.arm(after: interval) } else { timer.disarm() } }
}
