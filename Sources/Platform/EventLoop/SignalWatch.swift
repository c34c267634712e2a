import CLinux
import CPulse
import Glibc

/// Watches one signal until it is released; then the former handler is restored. One watch per signal in a process.
///
/// The handler writes to the loop's eventfd. `pa_signal_new` is not used, because its clean-up aborts the process if
/// the newest watch is freed first. A signalfd is not used, because the signal must be blocked in every thread for it.
public final class SignalWatch {
    let signal: Int32
    private let queue: SignalQueue
    private var previous = sigaction()
    fileprivate let handler: () -> Void

    init(signal: Int32, on loop: EventLoop, _ handler: @escaping () -> Void) {
        precondition((1..<SignalQueue.count).contains(Int(signal)), "no signal \(signal)")
        self.signal = signal
        self.handler = handler
        queue = loop.signals
        queue.add(self)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
            let error = errno
            SignalQueue.seen[Int(number)] = 1
            var one: UInt64 = 1
            _ = write(SignalQueue.descriptors[Int(number)], &one, 8)
            errno = error
        }
        action.sa_flags = SA_RESTART
        sigaction(signal, &action, &previous)
    }

    deinit {
        sigaction(signal, &previous, nil)
        queue.remove(self)
    }
}

/// All watched signals of a loop on one eventfd: another watch needs no file descriptor, and so cannot fail.
final class SignalQueue {
    private let api: UnsafeMutablePointer<pa_mainloop_api>
    private let descriptor: Int32
    private var event: OpaquePointer?
    /// Each removes itself before it is freed.
    private var watches: [Unmanaged<SignalWatch>] = []

    /// Ends the process if file descriptors are exhausted: a loop is created at the start of a program.
    init(_ api: UnsafeMutablePointer<pa_mainloop_api>) {
        self.api = api
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { fatalError("eventfd: out of file descriptors") }
        event = api.pointee.io_new(
            api, descriptor, PA_IO_EVENT_INPUT,
            { _, _, _, _, context in
                guard let context else { return }
                let queue = Unmanaged<SignalQueue>.fromOpaque(context).takeUnretainedValue()
                withExtendedLifetime(queue) { queue.hear() }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { close(descriptor) }

    /// The loop must call this before it is freed: watches may outlive it.
    func detach() {
        if let event { api.pointee.io_free(event) }
        event = nil
    }

    func add(_ watch: SignalWatch) {
        watches.append(.passUnretained(watch))
        SignalQueue.seen[Int(watch.signal)] = 0
        SignalQueue.descriptors[Int(watch.signal)] = descriptor
    }

    func remove(_ watch: SignalWatch) {
        SignalQueue.descriptors[Int(watch.signal)] = -1
        let pointer = Unmanaged.passUnretained(watch).toOpaque()
        watches.removeAll { $0.toOpaque() == pointer }
    }

    private func hear() {
        var writes: UInt64 = 0
        guard read(descriptor, &writes, 8) == 8 else { return }
        for watch in watches.map({ $0.takeUnretainedValue() }) where SignalQueue.seen[Int(watch.signal)] != 0 {
            // Several at once count as one, like the signals themselves.
            SignalQueue.seen[Int(watch.signal)] = 0
            watch.handler()
        }
    }

    static let count = 65
    // SAFETY: allocated and initialised before the first handler is installed, never freed; each element is an aligned
    // 32-bit word, written by the loop's thread while its signal has no handler of ours, and only read by the handler.
    nonisolated(unsafe) fileprivate static let descriptors = words(-1)
    // SAFETY: as above. The handler writes 1 before it wakes the loop, and the loop's thread writes 0 before it handles
    // the signal.
    nonisolated(unsafe) fileprivate static let seen = words(0)

    private static func words(_ value: Int32) -> UnsafeMutablePointer<Int32> {
        let words = UnsafeMutablePointer<Int32>.allocate(capacity: count)
        words.initialize(repeating: value, count: count)
        return words
    }
}
