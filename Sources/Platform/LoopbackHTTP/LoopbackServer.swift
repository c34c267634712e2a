import CMicroHTTPD
public import EventLoop
import Glibc

/// A web server for programs on this machine: GET and HEAD on a free port of 127.0.0.1, by libmicrohttpd on the event loop.
///
/// Who may read what is the handler's decision: every user of the machine can connect. Everything runs on the loop's
/// thread. The program must ignore SIGPIPE, as plugins do.
public final class LoopbackServer {
    public let port: UInt16
    private let server: OpaquePointer
    private let loop: EventLoop
    private let onRequest: (LoopbackExchange) -> Void
    private var watch: IOWatch?
    private lazy var timer = Timer(on: loop) { [unowned self] in run() }
    /// The exchanges whose connections are suspended, by their sockets.
    private var suspended: [Int32: LoopbackExchange] = [:]
    private let leaving: Int32
    private var leavingWatch: IOWatch?
    private var isWoken = false

    private static let connections: UInt32 = 256

    /// Nil if no socket can be opened.
    /// - Parameter onRequest: called from the loop for each request; it answers now or later.
    public init?(on loop: EventLoop, onRequest: @escaping (LoopbackExchange) -> Void) {
        leaving = shim_leaving_set()
        let box = Box()
        guard leaving >= 0,
            let server = shim_start_server(
                { context, connection, path, method, _, _, _, state in
                    guard let context, let connection, let path, let method, let state else { return shim_no }
                    return LoopbackServer.from(context).take(
                        connection, String(cString: method), String(cString: path), state)
                },
                { _, _, state, _ in
                    guard let state, let exchange = state.pointee else { return }
                    state.pointee = nil
                    Unmanaged<LoopbackExchange>.fromOpaque(exchange).takeRetainedValue().ended()
                }, LoopbackServer.connections, Unmanaged.passUnretained(box).toOpaque())
        else {
            if leaving >= 0 { close(leaving) }
            return nil
        }
        (self.server, self.loop, self.onRequest, self.box) = (server, loop, onRequest, box)
        port = shim_port(server)
        box.server = self
        watch = IOWatch(on: loop, descriptor: shim_server_descriptor(server), events: .readable) { [unowned self] _ in
            run()
        }
        leavingWatch = IOWatch(on: loop, descriptor: leaving, events: .readable) { [unowned self] _ in noteLeft() }
    }

    /// libmicrohttpd keeps the pointer from before `self` is complete.
    private final class Box {
        weak var server: LoopbackServer?
    }
    private let box: Box

    deinit {
        watch = nil
        leavingWatch = nil
        for exchange in suspended.values { exchange.left() }
        MHD_stop_daemon(server)
        close(leaving)
    }

    private static func from(_ context: UnsafeMutableRawPointer) -> LoopbackServer {
        // The box lives as long as the server, which stops libmicrohttpd before it ends.
        Unmanaged<Box>.fromOpaque(context).takeUnretainedValue().server!
    }

    /// A connection was resumed: libmicrohttpd looks at it when it runs next.
    func wake() {
        guard !isWoken else { return }
        isWoken = true
        loop.later { [weak self] in
            self?.isWoken = false
            self?.run()
        }
    }

    /// The most rounds without a look at other events.
    private static let rounds = 16

    private func run() {
        // Each round sends at most 128 KiB of a file.
        var wait = 0
        for _ in 0..<LoopbackServer.rounds where wait == 0 {
            MHD_run(server)
            wait = Int(shim_timeout(server))
        }
        if wait < 0 { timer.disarm() } else { timer.arm(after: Double(wait) / 1_000) }
    }

    private func take(
        _ connection: OpaquePointer, _ method: String, _ path: String,
        _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> MHD_Result {
        if let known = state.pointee {
            let exchange = Unmanaged<LoopbackExchange>.fromOpaque(known).takeUnretainedValue()
            return exchange.proceed()
        }
        let exchange = LoopbackExchange(connection, method: method, path: path, on: self)
        state.pointee = Unmanaged.passRetained(exchange).toOpaque()
        if method == "GET" || method == "HEAD" {
            onRequest(exchange)
        } else {
            exchange.answer(LoopbackAnswer(405, [("Allow", "GET, HEAD")]))
        }
        return shim_yes
    }

    // MARK: Clients that leave

    func watch(_ exchange: LoopbackExchange, _ socket: Int32) {
        suspended[socket] = exchange
        shim_watch_leaving(leaving, socket)
    }

    func forget(_ socket: Int32) {
        guard suspended.removeValue(forKey: socket) != nil else { return }
        shim_forget_leaving(leaving, socket)
    }

    private func noteLeft() {
        var sockets = [Int32](repeating: -1, count: 64)
        let count = Int(shim_left(leaving, &sockets, 64))
        for socket in sockets[..<count] { suspended[socket]?.left() }
    }
}
