import CDBus
public import EventLoop
import Glibc

/// The result of requesting a name.
public enum NameRequest: Hashable, Sendable {
    case owner
    /// Another connection owns it: its unique name if the bus still knew it.
    case taken(by: String?)
}

/// A private connection to a bus, on an event loop.
///
/// Everything happens on the loop's thread; handlers are called from the loop, never during a call made here.
/// The process survives the bus: when the connection breaks, every pending call fails with
/// `org.freedesktop.DBus.Error.Disconnected`, then ``onDisconnect`` is called, once.
public final class Connection {
    /// Messages handled before other events of the loop.
    private static let batch = 64
    /// Bytes of messages that are kept at once before the bus has to wait.
    private static let receivedLimit = 8 << 20
    /// File descriptors of messages that are kept at once before the bus has to wait.
    private static let receivedDescriptors = 32
    /// The kernel passes no more with one message.
    private static let largestDescriptors = 253
    /// Waiting calls handled before other events of the loop, unless there is something to read.
    private static let waitingBatch = 128
    /// The number of waiting calls that is a crowd.
    private static let crowd = 64
    /// The number of waiting calls of one peer from which its departure is watched.
    private static let several = 8
    /// Bytes that the bus may leave unread while there is a crowd.
    private static let crowdedBuffer: Int32 = 8 << 10

    /// The name the bus gave to this connection, such as `:1.42`.
    public let uniqueName: String
    /// The objects that answer calls on this connection.
    public let objects = ObjectTable()
    /// Called once when the bus is gone; not after ``close()``.
    public var onDisconnect: (() -> Void)?
    /// Whether the bus may start the program that owns a name for a call to it (D-Bus activation).
    public var startsServices = true
    /// Called when another connection took over a name requested with `allowReplacement`.
    public var onNameLost: ((String) -> Void)?
    /// The users whose calls are answered; all others are refused with AccessDenied. Nil: all users.
    ///
    /// For programs that act for their callers, on a bus that several users share. There a signal goes only to the
    /// connections that have called; PropertiesChanged goes to all, and names the properties without their values.
    public var servedUsers: Set<UInt32>? {
        get { callerCheck?.users }
        set { callerCheck = newValue.map(CallerCheck.init) }
    }

    /// Whether several users share the bus: then each user gets an equal share of the time, however many connections it
    /// has. Otherwise each connection does.
    public var isSharedByUsers: Bool {
        get { calls.isShared }
        set { calls.isShared = newValue }
    }

    /// Gets every call instead of the objects here, without an answer. For a ``BusMonitor``.
    var overheard: ((Message) -> Void)?

    let raw: OpaquePointer
    /// The loop of this connection.
    public let loop: EventLoop
    let pending: PendingCalls
    let matches = MatchTable()
    let names = NameTable()
    /// False once the bus is gone or ``close()`` was called.
    public private(set) var isOpen = true
    /// The context that the filter was added with, to remove it again.
    var filterContext: UnsafeMutableRawPointer?
    /// Outgoing messages once the connection is ready. libdbus then writes only blocking calls, each after a
    /// ``flush()``, so that messages are never interleaved.
    private var outbox = Outbox()
    /// The number of active calls of ``batch(_:)``.
    private var batches = 0
    private let descriptor: Int32
    /// While the bus accepts no more data; created when first needed.
    private var writable: IOWatch?
    private var dispatching = false
    private var calls = CallQueue<Message>()
    let address: BusAddress
    /// Used only with ``servedUsers``.
    private let callers = Listeners()
    var listeners: Listeners? { callerCheck == nil ? nil : callers }
    private var callerUsers = CallerUsers()
    private var callerCheck: CallerCheck?
    let answers = UnreadAnswers()
    /// While there is a crowd: the size of the socket's buffer before.
    private var ampleBuffer: Int32?
    /// Of peers with several waiting calls, or with many unread answers.
    private var departures: [String: Subscription] = [:]
    /// Wakes the loop for messages that are read but not handled. A timer instead of deferred work, because the loop
    /// does not check file descriptors while work is deferred.
    private var backlog: Timer?

    /// Connects and sends Hello; blocks until the bus has answered (`dbus_bus_register`).
    public init(_ address: BusAddress, loop: EventLoop) throws(Failure) {
        raw = try Self.open(address)
        self.address = address
        uniqueName = dbus_bus_get_unique_name(raw).map { String(cString: $0) } ?? ""
        self.loop = loop
        var descriptor: Int32 = -1
        _ = dbus_connection_get_unix_fd(raw, &descriptor)
        self.descriptor = descriptor
        pending = PendingCalls(loop: loop)
        objects.connection = self
        matches.connection = self
        names.connection = self
        answers.connection = self
        callers.connection = self
        backlog = Timer(on: loop) { [weak self] in self?.dispatch() }
        dbus_connection_set_max_received_size(raw, Self.receivedLimit)
        dbus_connection_set_max_received_unix_fds(raw, Self.receivedDescriptors)
        // Otherwise a message with more than libdbus's limit of 16 would end the connection, and some buses deliver
        // such messages.
        dbus_connection_set_max_message_unix_fds(raw, Self.largestDescriptors)
        // Otherwise libdbus would answer the calls of Peer itself.
        dbus_connection_set_route_peer_messages(raw, 1)
        guard LoopBridge.attach(self) else {
            close()
            throw .noMemory
        }
        // NameAcquired has usually been received already.
        scheduleDispatch()
    }

    /// A connection of its own that has said Hello. The caller closes and releases it.
    static func open(_ address: BusAddress) throws(Failure) -> OpaquePointer {
        let opened = Failure.catching { error in
            switch address {
            case .session: dbus_bus_get_private(DBUS_BUS_SESSION, error)
            case .system: dbus_bus_get_private(DBUS_BUS_SYSTEM, error)
            case .starter: dbus_bus_get_private(DBUS_BUS_STARTER, error)
            case .custom(let address): dbus_connection_open_private(address, error)
            }
        }
        guard let raw = opened.result else {
            if address == .session, (getenv("DBUS_SESSION_BUS_ADDRESS").map { $0.pointee == 0 } ?? true) {
                // libdbus mentions X11 in this case, which would mislead the user.
                throw .failed(
                    "DBUS_SESSION_BUS_ADDRESS is not set, and there is no $XDG_RUNTIME_DIR/bus; log in, or use "
                        + "dbus-run-session")
            }
            throw opened.failure ?? .failed("No connection to the bus")
        }
        // dbus_bus_get_private would let the process exit with the bus.
        dbus_connection_set_exit_on_disconnect(raw, 0)
        guard case .custom = address else { return raw }
        let registered = Failure.catching { dbus_bus_register(raw, $0) }
        guard registered.result != 0 else {
            dbus_connection_close(raw)
            dbus_connection_unref(raw)
            throw registered.failure ?? .failed("The bus did not answer Hello")
        }
        return raw
    }

    deinit {
        close()
        dbus_connection_unref(raw)
    }

    /// Leaves the bus. Calls in flight fail from the loop; ``onDisconnect`` is not called. Idempotent.
    public func close() {
        guard isOpen else { return }
        isOpen = false
        onDisconnect = nil
        let unanswered = pending.removeAll()
        if !unanswered.isEmpty {
            loop.later { for reply in unanswered { reply(.failure(.disconnected)) } }
        }
        LoopBridge.detach(self)
        backlog = nil
        writable = nil
        departures.removeAll()
        calls.removeAll()
        answers.removeAll()
        callers.removeAll()
        dbus_connection_close(raw)
    }

    /// Blocks until everything sent is written.
    public func flush() {
        guard isOpen else { return }
        dbus_connection_flush(raw)
        outbox.write(to: descriptor)
        while !outbox.isEmpty {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&waiting, 1, -1) > 0 || errno == EINTR else { return }
            outbox.write(to: descriptor)
        }
        writable?.events = []
    }

    // MARK: Sending

    /// Sends without waiting. Does nothing once the connection is closed, or for a message with a ``Message/failure``.
    public func send(_ message: Message) { transmit(message) }

    func send(_ answer: Message, answering call: CallHeader) {
        guard transmit(answer) != nil, let caller = call.sender else { return }
        let size = outbox.lastSize
        calls.learn(size, of: call.member)
        answers.add(size, to: caller)
    }

    /// Makes the socket's buffer small while there is a crowd, and large again when no call waits.
    private func countCrowd() {
        if calls.count >= Self.crowd, ampleBuffer == nil {
            // The bus reads everything in the buffer before any later answer, slowly while many peers send to it.
            ampleBuffer = sendBuffer
            sendBuffer = Self.crowdedBuffer
        } else if calls.isEmpty {
            if let ampleBuffer { sendBuffer = ampleBuffer }
            ampleBuffer = nil
            if !answers.isLarge { departures.removeAll() }
        }
    }

    /// When the peer leaves the bus, drops its waiting calls and stops counting its answers.
    func watchDeparture(of peer: String) {
        guard departures[peer] == nil else { return }
        departures[peer] = names.watch(peer) { [weak self] in
            guard let self else { return }
            departures[peer] = nil
            calls.forget(peer)
            answers.forget(peer)
            countCrowd()
        }
    }

    /// Bytes of the socket's buffer. The kernel doubles what is set, for its own needs.
    private var sendBuffer: Int32 {
        get {
            var bytes: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &size)
            return bytes / 2
        }
        set {
            var bytes = newValue
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    /// Its serial; nil if it was not sent.
    @discardableResult
    private func transmit(_ message: Message) -> UInt32? {
        guard isOpen, let serial = outbox.add(message) else { return nil }
        if batches == 0 { push() }
        return serial
    }

    /// Sends the messages of `body` together, at its end or with a ``push()``: with one system call, not one for each.
    public func batch<Result>(_ body: () throws -> Result) rethrows -> Result {
        batches += 1
        defer {
            batches -= 1
            if batches == 0 { push() }
        }
        return try body()
    }

    /// Writes the sent messages, as far as the bus accepts them at once. The loop writes the rest.
    public func push() {
        // If messages already wait for the bus, new ones follow them.
        guard isOpen, !outbox.isEmpty, writable?.events != .writable else { return }
        write()
    }

    /// Lets processes that wait for the written messages run first (`sched_yield`): if the kernel wakes them on this
    /// processor, they would wait until it is free. Does nothing if more messages must be handled here.
    public func giveWay() {
        if calls.isEmpty, !hasBacklog { sched_yield() }
    }

    private func write() {
        guard isOpen else { return }
        // libdbus must finish a message that it has begun to write.
        if dbus_connection_has_messages_to_send(raw) == 0 { outbox.write(to: descriptor) }
        if outbox.isEmpty {
            writable?.events = []
            if !calls.isEmpty { scheduleDispatch() }
        } else if let writable {
            writable.events = .writable
        } else {
            writable = IOWatch(on: loop, descriptor: descriptor, events: .writable) { [weak self] _ in self?.write() }
        }
    }

    /// Calls a method, and passes on the answer from the loop, exactly once.
    ///
    /// - Parameter timeout: seconds; then the answer is NoReply. `.infinity` waits as long as the bus exists.
    public func call(
        _ message: Message, timeout: Double = 25, _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        message.noReplyExpected = false
        if !startsServices { message.autoStart = false }
        guard let serial = transmit(message) else {
            let failure = message.failure ?? (isOpen ? .noMemory : .disconnected)
            loop.later { reply(.failure(failure)) }
            return
        }
        pending.add(serial, to: message.destination, timeout: timeout, reply)
    }

    /// Calls and blocks for the answer (`dbus_connection_send_with_reply_and_block`); for command lines, not services.
    public func callAndWait(_ message: Message, timeout: Double = 25) throws(Failure) -> [Value] {
        guard isOpen else { throw .disconnected }
        // libdbus writes this one itself.
        flush()
        return try Self.callAndWait(message, on: raw, timeout: timeout)
    }

    static func callAndWait(
        _ message: Message, on raw: OpaquePointer, timeout: Double
    ) throws(Failure) -> [Value] {
        if let failure = message.failure { throw failure }
        message.noReplyExpected = false
        let milliseconds = Int32(clamping: MonotonicClock.microseconds(timeout) / 1_000)
        let answer = Failure.catching {
            dbus_connection_send_with_reply_and_block(raw, message.raw, milliseconds, $0)
        }
        guard let reply = answer.result else { throw answer.failure ?? .noMemory }
        return try Message(owning: reply).outcome().get()
    }

    // MARK: Names

    /// Requests a well-known name without queueing for it; blocks (`dbus_bus_request_name`).
    public func requestName(
        _ name: String, replaceExisting: Bool = false, allowReplacement: Bool = false
    ) throws(Failure) -> NameRequest {
        guard Syntax.isBusName(name), !name.hasPrefix(":") else { throw .invalidArgs("Not a well-known bus name") }
        guard isOpen else { throw .disconnected }
        flush()
        var flags = UInt32(DBUS_NAME_FLAG_DO_NOT_QUEUE)
        if replaceExisting { flags |= UInt32(DBUS_NAME_FLAG_REPLACE_EXISTING) }
        if allowReplacement { flags |= UInt32(DBUS_NAME_FLAG_ALLOW_REPLACEMENT) }
        let request = Failure.catching { dbus_bus_request_name(raw, name, flags, $0) }
        if let failure = request.failure { throw failure }
        switch request.result {
        case DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER, DBUS_REQUEST_NAME_REPLY_ALREADY_OWNER: return .owner
        default:
            let owner = try? callAndWait(Self.busCall("GetNameOwner", [.string(name)]))
            return .taken(by: owner?.first?.stringValue)
        }
    }

    /// Gives a name back without waiting.
    public func releaseName(_ name: String) {
        guard let message = try? Self.busCall("ReleaseName", [.string(name)]) else { return }
        message.noReplyExpected = true
        send(message)
    }

    static func busCall(_ member: String, _ arguments: [Value]) throws(Failure) -> Message {
        let message = try Message.methodCall(
            destination: StandardName.bus, path: StandardName.busPath, interface: StandardName.bus, member: member)
        message.append(arguments)
        return message
    }

    // MARK: Receiving

    func scheduleDispatch() {
        guard isOpen, !dispatching else { return }
        backlog?.arm(after: 0)
    }

    /// Whether there are read messages that have not been handled yet.
    public var hasBacklog: Bool { dbus_connection_get_dispatch_status(raw) != DBUS_DISPATCH_COMPLETE }

    /// Lets libdbus read or write, then handles the read messages at once.
    func handle(_ watch: OpaquePointer, _ flags: UInt32) {
        guard isOpen else { return }
        var flags = flags
        // Nothing is read before all received messages are handled: this limits the memory.
        if hasBacklog { flags &= ~DBUS_WATCH_READABLE.rawValue }
        if flags != 0 {
            dispatching = true
            // False means that memory is exhausted; the level-triggered watch calls again.
            _ = dbus_watch_handle(watch, flags)
            dispatching = false
        }
        dispatch()
    }

    private func dispatch() {
        guard isOpen, !dispatching else { return }
        dispatching = true
        var left = Self.batch
        var status = DBUS_DISPATCH_DATA_REMAINS
        while left > 0, isOpen, status == DBUS_DISPATCH_DATA_REMAINS {
            status = dbus_connection_dispatch(raw)
            left -= 1
        }
        if !calls.isEmpty || status == DBUS_DISPATCH_COMPLETE { handleWaiting() }
        dispatching = false
        guard isOpen else { return }
        switch dbus_connection_get_dispatch_status(raw) {
        case DBUS_DISPATCH_COMPLETE: if !calls.isEmpty, outbox.isEmpty { backlog?.arm(after: 0) }
        case DBUS_DISPATCH_DATA_REMAINS: backlog?.arm(after: 0)
        default: backlog?.arm(after: 0.1)
        }
    }

    /// Handles waiting calls of peers with many calls: at most one while there is more to read, otherwise many.
    private func handleWaiting() {
        guard !calls.isEmpty else {
            if !hasBacklog, !isReadable { calls.startTurn() }
            return
        }
        // While the bus accepts no data, more answers would only delay those of all peers.
        guard outbox.isEmpty else { return }
        defer { countCrowd() }
        for index in 0..<Self.waitingBatch {
            // A bus with more to bring may need the processor first; what it brings may be for somebody who waits less.
            if !isReadable { sched_yield() }
            let isBusy = hasBacklog || isReadable
            if index == 0, !isBusy { calls.startTurn() }
            guard isOpen, outbox.isEmpty, index == 0 || !isBusy, let call = calls.next(whileReading: isBusy) else {
                return
            }
            // Those before it may have been answered since it was received.
            if let caller = call.sender, answers.holds(caller) {
                answers.hold([call] + calls.take(caller), of: caller)
            } else {
                objects.handle(call, on: self)
            }
            if isBusy { return }
        }
    }

    private var isReadable: Bool {
        var incoming = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&incoming, 1, 0) > 0
    }

    func receive(call: Message) {
        if let overheard { return overheard(call) }
        if let caller = call.sender, answers.holds(caller) {
            return answers.hold(calls.take(caller) + [call], of: caller)
        }
        // No method here takes file descriptors, and a waiting call would keep them open.
        if call.hasFileDescriptors { return refuse(call, .noDescriptors) }
        guard callerCheck?.admits(call, on: self) ?? true else {
            return refuse(call, .accessDenied("only the user of this program and root may call it"))
        }
        if let listeners, let caller = call.sender { listeners.add(caller) }
        switch calls.judge(call, method: call.member ?? "", from: call.sender, of: call.sender.flatMap(user)) {
        case .handle: objects.handle(call, on: self)
        case .wait:
            if let caller = call.sender, calls.count(of: caller) == Self.several { watchDeparture(of: caller) }
            countCrowd()
        case .refuse:
            if takesRefusals {
                refuse(call, .limitsExceeded("Too many of your calls are waiting; read their answers"))
            }
        }
    }

    /// Whether calls of a peer that sends too much are refused with an answer. While the bus accepts no data, such answers
    /// would only delay those to other users: then there is none.
    var takesRefusals: Bool { outbox.isEmpty || !calls.isShared }

    private func refuse(_ call: Message, _ failure: Failure) { answer(CallHeader(call), failure) }

    /// The user of a peer on a shared bus, if it matters; nil until the bus has answered. Does not wait for the answer.
    private func user(of caller: String) -> UInt32? {
        guard calls.isShared, calls.counts else { return nil }
        switch callerUsers[caller] {
        case .known(let user): return user
        case .asked: return nil
        case .unasked:
            callerUsers.ask(caller)
            askBus("GetConnectionUnixUser", [.string(caller)]) { [weak self] answer in
                guard let self, case .success(let values) = answer, let user = values.first?.uint32Value else { return }
                callerUsers.learn(user, of: caller)
                calls.learn(user, of: caller)
            }
            return nil
        }
    }

    /// Gets every message. Returns false if libdbus must handle it.
    func receive(_ message: OpaquePointer) -> Bool {
        switch dbus_message_get_type(message) {
        case DBUS_MESSAGE_TYPE_METHOD_CALL:
            receive(call: Message(retaining: message))
            return true
        case DBUS_MESSAGE_TYPE_METHOD_RETURN, DBUS_MESSAGE_TYPE_ERROR:
            pending.complete(Message(retaining: message))
            return true
        case DBUS_MESSAGE_TYPE_SIGNAL:
            receive(signal: Message(retaining: message))
            return true
        default:
            return false
        }
    }

    private func receive(signal: Message) {
        if dbus_message_is_signal(signal.raw, StandardName.localInterface, "Disconnected") != 0 {
            if dbus_connection_get_is_connected(raw) == 0 { disconnected() }
            return
        }
        if dbus_message_has_sender(signal.raw, StandardName.bus) != 0 {
            if dbus_message_is_signal(signal.raw, StandardName.bus, "NameOwnerChanged") != 0 {
                names.ownerChanged(signal)
            } else if dbus_message_is_signal(signal.raw, StandardName.bus, "NameLost") != 0,
                let name = signal.firstString
            {
                onNameLost?(name)
            }
        }
        // No subscribed signal has file descriptors.
        if !signal.hasFileDescriptors { matches.deliver(signal) }
    }

    private func disconnected() {
        guard isOpen else { return }
        isOpen = false
        LoopBridge.detachWatches(self)
        backlog = nil
        writable = nil
        departures.removeAll()
        calls.removeAll()
        answers.removeAll()
        callers.removeAll()
        let handler = onDisconnect
        onDisconnect = nil
        for reply in pending.removeAll() { reply(.failure(.disconnected)) }
        handler?()
    }
}
