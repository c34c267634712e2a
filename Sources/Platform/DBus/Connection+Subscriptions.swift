import EventLoop
import Glibc

/// The identity of a peer, which the bus has from the kernel.
public struct Credentials: Hashable, Sendable {
    /// Nil if the bus does not report it.
    public let processID: UInt32?
    public let userID: UInt32?
    /// All groups at the time of its connection; empty if the bus does not report them.
    public let groupIDs: [UInt32]
    /// A descriptor of the process (`pidfd_open`), valid even if another process has its id now; nil if the bus does
    /// not pass one. dbus-daemon does since 1.15.8.
    public let process: FileDescriptor?

    /// Whether the process has ended, so that another one may have its id; false also if the bus passes no descriptor.
    public var hasEnded: Bool {
        guard let process else { return false }
        // A pidfd is readable when its process has ended.
        var state = pollfd(fd: process.number, events: Int16(POLLIN), revents: 0)
        return poll(&state, 1, 0) > 0
    }

    public init(processID: UInt32?, userID: UInt32?, groupIDs: [UInt32] = [], process: FileDescriptor? = nil) {
        self.processID = processID
        self.userID = userID
        self.groupIDs = groupIDs
        self.process = process
    }
}

extension Connection {
    /// Receives signals until the subscription is released; nil parts match anything.
    ///
    /// It does not wait for the bus (AddMatch); the bus handles the rule before all later messages of this connection.
    /// With a well-known name as `sender`, only signals of its current owner are passed on. A malformed part matches
    /// nothing. `arg0Namespace` is a bus name: the first argument is this name, or begins with it and a dot. Identical
    /// subscriptions share one rule.
    public func subscribe(
        path: String? = nil, interface: String? = nil, member: String? = nil, sender: String? = nil,
        arg0: String? = nil, arg0Namespace: String? = nil, _ handler: @escaping (Message) -> Void
    ) -> Subscription {
        let rule = MatchRule(
            path: path, interface: interface, member: member, sender: sender, arg0: arg0, arg0Namespace: arg0Namespace)
        return matches.subscribe(rule, handler)
    }

    /// Calls once, from the loop, when the name has no owner, now or later.
    public func watchName(_ name: String, vanished: @escaping () -> Void) -> Subscription {
        names.watch(name, vanished: vanished)
    }

    /// Calls from the loop whenever the name gets an owner, with its unique name, or loses it, with "".
    ///
    /// The current owner is not reported; if it is asked for after this call, no change is missed.
    public func watchOwner(of name: String, _ changed: @escaping (String) -> Void) -> Subscription {
        watchOwners(.ownerChanged(of: name)) { changed($1) }
    }

    /// The same for that name and all names below it.
    public func watchOwners(
        below namespace: String, _ changed: @escaping (_ name: String, _ owner: String) -> Void
    ) -> Subscription {
        watchOwners(.ownerChanged(below: namespace), changed)
    }

    private func watchOwners(_ rule: MatchRule, _ changed: @escaping (String, String) -> Void) -> Subscription {
        matches.subscribe(rule) { signal in
            guard let values = try? signal.arguments(), values.count == 3, let name = values[0].stringValue,
                let owner = values[2].stringValue
            else { return }
            changed(name, owner)
        }
    }

    /// Calls a method of the bus itself and waits for its answer, at most `timeout` seconds.
    public func askBusAndWait(
        _ member: String, _ arguments: [Value] = [], timeout: Double
    ) throws(Failure) -> [Value] {
        try callAndWait(Self.busCall(member, arguments), timeout: timeout)
    }

    /// Calls a method of the bus itself; the answer comes from the loop, once.
    public func askBus(
        _ member: String, _ arguments: [Value] = [], _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        do throws(Failure) {
            call(try Self.busCall(member, arguments), reply)
        } catch {
            loop.later { reply(.failure(error)) }
        }
    }

    /// Asks the bus for the credentials of a name's owner (`GetConnectionCredentials`); answers once, from the loop.
    public func credentials(of name: String, _ reply: @escaping (Result<Credentials, Failure>) -> Void) {
        askBus("GetConnectionCredentials", [.string(name)]) { answer in
            reply(answer.map(Credentials.init))
        }
    }

    /// The same, and waits for the answer, at most `timeout` seconds.
    public func credentialsAndWait(of name: String, timeout: Double) throws(Failure) -> Credentials {
        Credentials(try askAboutCaller("GetConnectionCredentials", name, timeout: timeout))
    }
}

extension Credentials {
    fileprivate init(_ values: [Value]) {
        let known = values.first?.asProperties ?? [:]
        self.init(
            processID: known["ProcessID"]?.uint32Value, userID: known["UnixUserID"]?.uint32Value,
            groupIDs: known["UnixGroupIDs"]?.arrayValue?.compactMap(\.uint32Value) ?? [],
            process: known["ProcessFD"]?.fileDescriptorValue)
    }
}
