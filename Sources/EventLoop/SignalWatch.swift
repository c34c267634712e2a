import CLinux
import Glibc

/// Watches one signal until dropped.
///
/// A signalfd: the signal is blocked in this thread, and in threads started after, while it is watched. A child starts
/// with that mask, so whoever spawns one clears it. Not `pa_signal_new`, whose clean-up aborts the process where the
/// newest watch goes first.
public final class SignalWatch {
    private let descriptor: Int32
    private var watch: IOWatch?
    private var signals = sigset_t()

    fileprivate init(descriptor: Int32, signals: sigset_t) {
        self.descriptor = descriptor
        self.signals = signals
    }

    convenience init(signal: Int32, on loop: EventLoop, _ handler: @escaping () -> Void) {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, signal)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let descriptor = signalfd(-1, &signals, Int32(SFD_NONBLOCK | SFD_CLOEXEC))
        precondition(descriptor >= 0, "signalfd: out of file descriptors")
        self.init(descriptor: descriptor, signals: signals)
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { _ in
            var info = signalfd_siginfo()
            // Several that came at once are one: like the signals themselves.
            var isSeen = false
            while read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0 { isSeen = true }
            if isSeen { handler() }
        }
    }

    deinit {
        watch = nil
        close(descriptor)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }
}
