package import EventLoop
import Glibc

/// Waits in another thread until the bytes of a file are on the disk (`fdatasync`), which may take seconds.
/// The thread owns a copy of the descriptor and the other end of a pipe, and nothing else.
package final class DiskSync {
    private let waitEnd: Int32
    private var watch: IOWatch?

    /// - Parameter done: called once from the loop, unless this object ends before.
    /// - Returns: nil if no thread can be started; the file was synchronized before this returns.
    package init?(_ descriptor: Int32, on loop: EventLoop, done: @escaping () -> Void) {
        var ends: [Int32] = [-1, -1]
        let file = dup(descriptor)
        guard file >= 0, pipe(&ends) == 0 else {
            if file >= 0 { close(file) }
            fdatasync(descriptor)
            return nil
        }
        let signalEnd = ends[1]
        waitEnd = ends[0]
        for end in ends + [file] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        watch = IOWatch(on: loop, descriptor: waitEnd, events: .readable) { [unowned self] _ in
            watch = nil
            done()
        }
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Work(file: file, end: signalEnd)).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let work = Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
                fdatasync(work.file)
                close(work.file)
                // The end of the pipe tells the loop.
                close(work.end)
                return nil
            }, context)
        if status == 0 {
            pthread_detach(thread)
        } else {
            Unmanaged<Work>.fromOpaque(context).release()
            fdatasync(file)
            close(file)
            close(signalEnd)
        }
    }

    private final class Work: Sendable {
        let file, end: Int32
        init(file: Int32, end: Int32) { (self.file, self.end) = (file, end) }
    }

    deinit {
        watch = nil
        close(waitEnd)
    }
}
