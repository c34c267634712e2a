import CDBus
import EventLoop

/// Finds out which callers do not read their answers, and keeps calls waiting until it knows.
final class UnreadAnswers {
    /// A call that waits.
    private struct Held {
        enum Content {
            /// The bytes of its message.
            case call([UInt8])
            case refusal(Failure)
        }

        let header: CallHeader
        let content: Content
    }

    /// How the bus reports what it keeps for a peer.
    private enum Source {
        /// `GetConnectionStats`: dbus-daemon.
        case onePeer
        /// `GetStats`: dbus-broker, which reports all peers at once.
        case allPeers
        /// It does not. The peer itself is asked; its answer shows that it has read what was sent before.
        case none
    }

    private static let statistics = "org.freedesktop.DBus.Debug.Stats"
    private static let accounting = "org.bus1.DBus.Debug.Stats.PeerAccounting"
    private static let bytes = "OutgoingBytes"
    private static let reason = Failure.limitsExceeded("Read the answers to your calls before you ask for more")
    private static let tooMany = Failure.limitsExceeded("Too many of your calls are waiting; read their answers")

    weak var connection: Connection?
    private var budget = AnswerBudget()
    private var held = HeldCalls<Held>()
    /// The next questions about peers.
    private var pauses: [String: Timer] = [:]
    private var source = Source.onePeer
    /// Peers about which all statistics are being read, and those for the next time.
    private var asked: Set<String> = []
    private var next: Set<String> = []

    var isLarge: Bool { budget.isLarge }

    /// Counts an answer.
    func add(_ bytes: Int, to peer: String) {
        budget.add(bytes, to: peer)
        if budget.wantsQuestion(peer) { ask(peer) }
        if budget.remembers(peer) { connection?.watchDeparture(of: peer) }
    }

    /// Whether further calls of that peer must wait; then they go to ``hold(_:of:)``.
    func holds(_ peer: String) -> Bool { held.has(peer) || budget.doubts(peer) }

    /// Keeps the calls until it is known how much the peer has read. Then they are passed on, or refused.
    func hold(_ calls: [Message], of peer: String) {
        for call in calls { hold(call, of: peer) }
        while let most = held.excessive { refuse(held.take(most), of: most, Self.tooMany) }
        guard held.has(peer), let pause = budget.pause(before: peer) else { return }
        connection?.watchDeparture(of: peer)
        ask(peer, after: pause)
    }

    private func hold(_ call: Message, of peer: String) {
        let header = CallHeader(call)
        // A waiting call would keep them open.
        if call.hasFileDescriptors {
            return held.add(Held(header: header, content: .refusal(.noDescriptors)), bytes: 0, of: peer)
        }
        var bytes: [UInt8] = []
        do throws(Failure) {
            _ = try call.write(to: &bytes, serial: 0)
            held.add(Held(header: header, content: .call(bytes)), bytes: bytes.count, of: peer)
        } catch {
            held.add(Held(header: header, content: .refusal(error)), bytes: 0, of: peer)
        }
    }

    /// Drops the calls of a peer that is gone.
    func forget(_ peer: String) { settle(peer, .gone) }

    func removeAll() {
        held.removeAll()
        pauses.removeAll()
    }

    private func settle(_ peer: String, _ reading: AnswerBudget.Reading) {
        let outcome = budget.settle(peer, reading)
        guard held.has(peer) else { return }
        switch outcome {
        case .handle: pass(held.take(peer))
        case .ask(let pause): ask(peer, after: pause)
        case .refuse: refuse(held.take(peer), of: peer, Self.reason)
        case .forget: _ = held.take(peer)
        }
    }

    private func pass(_ calls: [Held]) {
        for call in calls {
            switch call.content {
            case .call(let bytes): if let message = Message(bytes) { connection?.receive(call: message) }
            case .refusal(let failure): connection?.answer(call.header, failure)
            }
        }
    }

    private func refuse(_ calls: [Held], of peer: String, _ reason: Failure) {
        guard let connection, connection.takesRefusals else { return }
        for call in calls where budget.mayRefuse(peer) { connection.answer(call.header, reason) }
    }

    // MARK: Questions

    private func ask(_ peer: String, after pause: Double) {
        guard pause > 0, let loop = connection?.loop else { return ask(peer) }
        guard pauses[peer] == nil else { return }
        let timer = Timer(on: loop) { [weak self] in
            self?.pauses[peer] = nil
            self?.ask(peer)
        }
        timer.arm(after: pause)
        pauses[peer] = timer
    }

    private func ask(_ peer: String) {
        guard budget.asks(peer) else { return }
        switch source {
        case .onePeer: askBus(about: peer)
        case .allPeers:
            next.insert(peer)
            if asked.isEmpty { askBus() }
        case .none: ping(peer)
        }
    }

    private func askBus(about peer: String) {
        ask(StandardName.bus, StandardName.busPath, Self.statistics, "GetConnectionStats", [peer]) {
            [weak self] answer in
            guard let self else { return }
            switch answer {
            case .success(let values):
                if let bytes = values.first?.asProperties?[Self.bytes]?.uint32Value {
                    return settle(peer, .unread(Int(bytes)))
                }
            case .failure(let failure):
                if failure.name == Failure.Name.nameHasNoOwner { return settle(peer, .gone) }
            }
            if source == .onePeer { source = .allPeers }
            next.insert(peer)
            if asked.isEmpty { askBus() }
        }
    }

    private func askBus() {
        asked = next
        next = []
        ask(StandardName.bus, StandardName.busPath, Self.statistics, "GetStats", []) { [weak self] answer in
            self?.learn(answer)
        }
    }

    private func learn(_ answer: Result<[Value], Failure>) {
        let peers = asked
        asked = []
        defer { if !next.isEmpty { askBus() } }
        guard case .success(let values) = answer,
            let accounting = values.first?.asProperties?[Self.accounting]?.unwrapped.arrayValue
        else {
            source = .none
            for peer in peers.union(next) { ping(peer) }
            next = []
            return
        }
        var unread: [String: Int] = [:]
        for entry in accounting {
            guard let fields = entry.structureValue, fields.count > 2, let peer = fields[0].stringValue,
                peers.contains(peer)
            else { continue }
            unread[peer] = fields[2].asProperties?[Self.bytes]?.uint32Value.map { Int($0) } ?? 0
        }
        for peer in peers { settle(peer, unread[peer].map { .unread($0) } ?? .gone) }
    }

    private func ping(_ peer: String) {
        ask(peer, "/", StandardName.peer, "Ping", [], timeout: AnswerBudget.patience) { [weak self] answer in
            guard case .failure(let failure) = answer else { self?.settle(peer, .unread(0)); return }
            switch failure.name {
            case Failure.Name.nameHasNoOwner, Failure.Name.serviceUnknown: self?.settle(peer, .gone)
            case Failure.Name.noReply: self?.settle(peer, .silence)
            // Also if the bus does not let this program ask.
            default: self?.settle(peer, .unread(0))
            }
        }
    }

    private func ask(
        _ name: String, _ path: String, _ interface: String, _ member: String, _ texts: [String],
        timeout: Double = .infinity, _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        guard
            let message = try? Message.methodCall(destination: name, path: path, interface: interface, member: member)
        else { return }
        message.autoStart = false
        message.append(texts.map { .string($0) })
        connection?.call(message, timeout: timeout, reply)
    }
}
