import CLinux
import Glibc

/// Reports once when a process ends, also if it is not a child (`pidfd_open`). Dropping it cancels it.
public final class ProcessWatch {
    private var descriptor: Int32
    private var watch: IOWatch?

    /// Nil if the process has ended already, or cannot be watched.
    public init?(_ process: UInt32, on loop: EventLoop, _ handler: @escaping () -> Void) {
        guard let id = Int32(exactly: process) else { return nil }
        descriptor = pidfd_open(id, 0)
        guard descriptor >= 0 else { return nil }
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [weak self] _ in
            self?.end()
            handler()
        }
    }

    /// Whether it uses a descriptor: until the process has ended.
    public var isWatching: Bool { descriptor >= 0 }

    /// Nothing is left to watch, and the descriptor is free for others.
    private func end() {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    deinit { end() }
}
