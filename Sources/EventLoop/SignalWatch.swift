import CLinux
import Glibc

/// Watches one signal until dropped; what handled it before does so again then. One watch per signal in a process.
///
/// A handler that writes to an eventfd. Not `pa_signal_new`, whose clean-up aborts the process where the newest watch
/// goes first; not a signalfd, which needs the signal blocked in every thread there is.
public final class SignalWatch {
    private let signal: Int32
    private let descriptor: Int32
    private var previous = sigaction()
    private var watch: IOWatch?

    init(signal: Int32, on loop: EventLoop, _ handler: @escaping () -> Void) {
        precondition((1..<SignalWatch.count).contains(Int(signal)), "no signal \(signal)")
        self.signal = signal
        let descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        precondition(descriptor >= 0, "eventfd: out of file descriptors")
        self.descriptor = descriptor
        SignalWatch.descriptors[Int(signal)] = descriptor
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { _ in
            var seen: UInt64 = 0
            // Several that came at once are one: like the signals themselves.
            if read(descriptor, &seen, 8) == 8 { handler() }
        }
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
            let error = errno
            var one: UInt64 = 1
            _ = write(SignalWatch.descriptors[Int(number)], &one, 8)
            errno = error
        }
        action.sa_flags = SA_RESTART
        sigaction(signal, &action, &previous)
    }

    deinit {
        sigaction(signal, &previous, nil)
        SignalWatch.descriptors[Int(signal)] = -1
        watch = nil
        close(descriptor)
    }

    private static let count = 65
    // SAFETY: allocated and initialised before the first handler is installed, never freed; each element is an aligned
    // 32-bit word, written by the loop's thread while its signal has no handler of ours, and only read by the handler.
    nonisolated(unsafe) private static let descriptors: UnsafeMutablePointer<Int32> = {
        let words = UnsafeMutablePointer<Int32>.allocate(capacity: count)
        words.initialize(repeating: -1, count: count)
        return words
    }()
}
