import CMicroHTTPD
import Glibc

/// One request of a client, and its answer.
public final class LoopbackExchange {
    public let method: String
    /// Without the query.
    public let path: String
    let connection: OpaquePointer
    private weak var server: LoopbackServer?
    /// Called once, when the answer has been sent or the client has left.
    public var onEnd: () -> Void = {}
    private var answer: LoopbackAnswer?
    private var isAnswered = false
    private var isSuspended = false
    private var isGone = false
    private(set) var isOver = false
    private var read: ((UInt64, UnsafeMutableRawBufferPointer) -> LoopbackAnswer.Supply)?

    /// Larger blocks do not make it faster, and each stream has one.
    private static let block = 256 << 10

    init(_ connection: OpaquePointer, method: String, path: String, on server: LoopbackServer) {
        (self.connection, self.method, self.path, self.server) = (connection, method, path, server)
    }

    /// The value of a field of the request; nil: it is not there.
    public func field(_ name: String) -> String? {
        guard !isOver else { return nil }
        return shim_field(connection, name).map { String(cString: $0) }
    }

    /// Answers, now or later; only the first answer counts.
    public func answer(_ answer: LoopbackAnswer) {
        guard self.answer == nil, !isOver else { return }
        self.answer = answer
        resume()
    }

    /// There are bytes for a stream that waited, or its end.
    public func resume() {
        guard isSuspended, !isOver else { return }
        isSuspended = false
        server?.forget(shim_socket(connection))
        MHD_resume_connection(connection)
        server?.wake()
    }

    // MARK: Calls of the server

    /// The client has left while the connection was suspended.
    func left() {
        isGone = true
        resume()
    }

    func ended() {
        guard !isOver else { return }
        isOver = true
        if isSuspended { server?.forget(shim_socket(connection)) }
        read = nil
        onEnd()
        onEnd = {}
    }

    private func suspend() {
        isSuspended = true
        MHD_suspend_connection(connection)
        server?.watch(self, shim_socket(connection))
    }

    /// Queues the answer, or waits for it.
    func proceed() -> MHD_Result {
        guard !isGone, !isAnswered else { return shim_no }
        guard let answer else {
            suspend()
            return shim_yes
        }
        guard let response = response(answer) else { return shim_no }
        defer { MHD_destroy_response(response) }
        for field in answer.fields { MHD_add_response_header(response, field.name, field.value) }
        isAnswered = true
        return MHD_queue_response(connection, UInt32(answer.status), response)
    }

    private func response(_ answer: LoopbackAnswer) -> OpaquePointer? {
        switch answer.body {
        case .bytes(let bytes):
            return bytes.withUnsafeBytes { shim_response($0.baseAddress, $0.count) }
        case .file(let descriptor, let offset, let count):
            // The response closes it.
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard copy >= 0 else { return nil }
            return MHD_create_response_from_fd_at_offset64(count, copy, offset)
        case .stream(let count, let read):
            self.read = read
            let context = Unmanaged.passRetained(self).toOpaque()
            return MHD_create_response_from_callback(
                count ?? shim_size_unknown, LoopbackExchange.block,
                { context, place, buffer, room in
                    Unmanaged<LoopbackExchange>.fromOpaque(context!).takeUnretainedValue()
                        .supply(place, UnsafeMutableRawBufferPointer(start: buffer, count: room))
                }, context, { Unmanaged<LoopbackExchange>.fromOpaque($0!).release() })
        }
    }

    private func supply(_ place: UInt64, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !isGone, let read else { return shim_end_with_error }
        switch read(place, buffer) {
        case .bytes(let count): return count
        case .wait:
            suspend()
            return 0
        case .end: return shim_end_of_stream
        case .failed: return shim_end_with_error
        }
    }
}
