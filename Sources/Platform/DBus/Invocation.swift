import CDBus

/// One method call that needs exactly one answer, now or later.
///
/// If it is released without an answer, `org.freedesktop.DBus.Error.NoReply` is sent; a second answer is ignored.
/// Nothing is sent to a caller that wants no answer.
public final class Invocation {
    /// The caller's unique name from the bus; empty only without a bus.
    public let sender: String
    public let path: String
    /// Empty if a relayed call had none.
    public let interface: String
    public let member: String
    /// The arguments, which have the types that the method declares.
    public let arguments: [Value]
    private let call: CallHeader
    private weak var connection: Connection?
    private var answered = false

    init(
        _ message: Message, on connection: Connection, path: String, interface: String, member: String,
        arguments: [Value]
    ) {
        call = CallHeader(message)
        self.connection = connection
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
        sender = call.sender ?? ""
    }

    deinit {
        if !answered { fail(.noReply("\(interface).\(member) ended without an answer")) }
    }

    /// Answers with those values, or with an error if they are invalid.
    public func reply(_ values: [Value] = []) {
        guard claim() else { return }
        connection?.answer(call, values)
    }

    public func fail(_ failure: Failure) { fail(name: failure.name, message: failure.message) }

    /// Answers with an error. A malformed name becomes `…Error.Failed`.
    public func fail(name: String, message text: String) {
        guard claim() else { return }
        connection?.answer(call, Failure(name: name, message: text))
    }

    /// Sends the messages of `body` together, also the answer; see ``Connection/batch(_:)``.
    public func batch<Outcome>(_ body: () -> Outcome) -> Outcome {
        if let connection { connection.batch(body) } else { body() }
    }

    private func claim() -> Bool {
        guard !answered else { return false }
        answered = true
        return true
    }
}

extension Connection {
    func answer(_ call: CallHeader, _ values: [Value]) {
        guard !call.noReplyExpected else { return }
        let reply = call.reply()
        reply.append(values)
        if let failure = reply.failure {
            answer(call, .failed("The answer cannot be sent: \(failure.message)"))
        } else {
            send(reply, answering: call)
        }
    }

    func answer(_ call: CallHeader, _ failure: Failure) {
        guard !call.noReplyExpected else { return }
        send(call.error(name: failure.name, text: failure.message), answering: call)
    }
}
