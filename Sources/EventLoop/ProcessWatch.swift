import CLinux
import Glibc

/// Reports once when a process ends, also if it is not a child (`pidfd_open`). Dropping it cancels it.
public final class ProcessWatch {
    private let descriptor: Int32
    private var watch: IOWatch?

    /// Nil if the process has ended already, or cannot be watched.
    public init?(_ process: UInt32, on loop: EventLoop, _ handler: @escaping () -> Void) {
        guard let id = Int32(exactly: process) else { return nil }
        descriptor = pidfd_open(id, 0)
        guard descriptor >= 0 else { return nil }
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [weak self] _ in
            self?.watch = nil
            handler()
        }
    }

    deinit {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
    }
}
