import Glibc

/// A named pipe that is full, for a pipe sink of PulseAudio that must never write.
///
/// One byte fills it, because it has room for one page. The sink reports what is in the pipe as its latency, and
/// PulseAudio takes a moved stream back by the latency of the sink that it leaves: a pipe full to its last byte would make
/// the program repeat 20 ms or more.
final class FullPipe {
    let path: String
    private var descriptor: Int32 = -1

    /// Nil if no pipe can be created there.
    init?(path: String) {
        unlink(path)
        guard mkfifo(path, 0o600) == 0 else { return nil }
        self.path = path
        descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        var byte: UInt8 = 0
        guard descriptor >= 0, fcntl(descriptor, FullPipe.setSize, 1) > 0, write(descriptor, &byte, 1) == 1, isFull
        else { return nil }
    }

    /// The pipe itself exists for as long as a sink has it open.
    deinit {
        if descriptor >= 0 { close(descriptor) }
        unlink(path)
    }

    /// Closes the pipe, and returns whether another program has it open. A server on another machine, or with another root
    /// directory, has created another pipe, which is empty.
    func handOver() -> Bool {
        close(descriptor)
        descriptor = -1
        // A pipe without a reader cannot be opened for writing alone.
        let probe = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        if probe >= 0 { close(probe) }
        return probe >= 0
    }

    private var isFull: Bool {
        var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return Glibc.poll(&poll, 1, 0) == 0
    }

    /// F_SETPIPE_SZ, which glibc defines only with _GNU_SOURCE. The kernel rounds the size up to a page.
    private static let setSize: Int32 = 1031
}
