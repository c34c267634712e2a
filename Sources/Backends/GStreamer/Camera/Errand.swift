import EventLoop
import Glibc

/// Work that would keep the loop waiting, such as for a disk: done on a thread of its own, answered on the loop.
enum Errand {
    private final class Work: Sendable {
        let body: @Sendable () -> Void
        let end: Int32
        init(_ body: @escaping @Sendable () -> Void, _ end: Int32) { (self.body, self.end) = (body, end) }
    }

    // SAFETY: the thread writes the answer before it closes the pipe, and the loop reads it after that.
    private final class Answer<Value>: @unchecked Sendable { var value: Value? }

    private final class Wait { var watch: IOWatch? }

    /// - Parameter done: called once, on the loop, after this returns.
    /// - Returns: false if no thread can be started; then nothing was done.
    static func run<Value>(
        on loop: EventLoop, _ body: @escaping @Sendable () -> Value, done: @escaping (Value) -> Void
    ) -> Bool {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        let (read, written) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let answer = Answer<Value>()
        let work = Work({ answer.value = body() }, written)
        var thread = pthread_t()
        let context = Unmanaged.passRetained(work).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let work = Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
                work.body()
                // The end of the pipe tells the loop.
                close(work.end)
                return nil
            }, context)
        guard status == 0 else {
            Unmanaged<Work>.fromOpaque(context).release()
            for end in ends { close(end) }
            return false
        }
        pthread_detach(thread)
        let wait = Wait()
        wait.watch = IOWatch(on: loop, descriptor: read, events: .readable) { _ in
            wait.watch = nil
            close(read)
            if let value = answer.value { done(value) }
        }
        return true
    }
}
