public import DBus
import Foundation

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// Calls every member that a running service introspects, with extreme values and with arguments of wrong types.
///
/// It is reproducible: with the same seed, a newly started service gets the same calls.
public final class BusFuzzer {
    /// The results of a run.
    public struct Report: Sendable {
        public var calls = 0
        public var returns = 0
        public var errors: [String: Int] = [:]
        public var members = 0
        /// Failures of the service: calls without an answer or with two answers, and errors that it must not send.
        public var complaints: [String] = []
    }

    private struct Member {
        let path: String
        let interface: String
        let name: String
        let signature: String
    }

    private let service: String
    private let root: String
    private let peer: RawPeer
    private var dice: Dice
    private var members: [Member] = []
    /// The calls that are not answered yet, by serial.
    private var open: [UInt32: String] = [:]
    private var report = Report()

    /// - Parameter root: the first object. Its introspection leads to the other objects.
    public init(bus address: String, service: String, root: String, seed: UInt64) throws(Failure) {
        self.service = service
        self.root = root
        peer = try RawPeer(address)
        dice = Dice(seed: seed)
    }

    /// Sends this number of calls; at most `window` of them are unanswered at a time. Stops after `limit` complaints.
    public func run(calls: Int, window: Int = 64, limit: Int = 10) throws(Failure) -> Report {
        for index in 0..<calls where report.complaints.count < limit {
            // The calls create and close sessions, so the objects change.
            if index % 1_000 == 0 { try introspect() }
            send()
            while open.count >= window, receive() {}
            if !peer.isConnected {
                report.complaints.append("the bus closed the connection")
                break
            }
        }
        while !open.isEmpty, receive() {}
        for call in open.values.prefix(limit) { report.complaints.append("no answer: \(call)") }
        return report
    }

    // MARK: Calls

    private func send() {
        guard let (message, text) = make() else { return }
        guard let serial = peer.send(message) else { return }
        report.calls += 1
        open[serial] = text
    }

    private func make() -> (Message, String)? {
        var member = dice.pick(members)
        // Otherwise sessions would be closed before they get a second call.
        if member.name == "Close", !dice.once(in: 16) { member = dice.pick(members.filter { $0.name != "Close" }) }
        let path = dice.once(in: 20) ? (dice.value(of: "o").objectPathValue ?? "/") : member.path
        let interface: String? = dice.once(in: 20) ? dice.pick([nil, "org.example.None"]) : member.interface
        let name = dice.once(in: 30) ? dice.pick(members).name : member.name
        guard
            let message = try? Message.methodCall(destination: service, path: path, interface: interface, member: name)
        else { return nil }
        let signature: String
        switch dice.below(4) {
        case 0: signature = (0..<dice.below(4)).map { _ in dice.signature() }.joined()
        default: signature = member.signature
        }
        message.append(dice.values(of: signature))
        return (message, "\(path) \(interface ?? "-").\(name)(\(signature))")
    }

    /// Returns false if no message arrives within 20 s.
    private func receive() -> Bool {
        guard let message = peer.receive(timeout: 20) else { return false }
        guard message.kind == .methodReturn || message.kind == .error else { return true }
        guard let call = open.removeValue(forKey: message.replySerial) else {
            report.complaints.append("a second answer, or one without a call: \(message.replySerial)")
            return true
        }
        guard let name = message.errorName else {
            report.returns += 1
            return true
        }
        report.errors[name, default: 0] += 1
        // These errors mean that the service did not answer, that its answer could not be sent, or that the service is
        // gone.
        let wrong = ["NoReply", "Failed", "NoMemory", "ServiceUnknown", "NameHasNoOwner", "Disconnected"]
        if wrong.contains(where: { name == "org.freedesktop.DBus.Error." + $0 }) {
            report.complaints.append("\(name) from \(call)")
        }
        return true
    }

    // MARK: Introspection

    private func introspect() throws(Failure) {
        members = []
        var names: Set<String> = []
        var paths = [root]
        // A few objects of each kind are sufficient.
        while let path = paths.popLast(), members.count < 400 {
            guard let data = text(of: path)?.data(using: .utf8), let document = try? XMLDocument(data: data),
                let node = document.rootElement()
            else { continue }
            for interface in node.elements(forName: "interface") {
                for method in interface.elements(forName: "method") {
                    let types = method.elements(forName: "arg")
                        .filter { $0.attribute(forName: "direction")?.stringValue == "in" }
                        .compactMap { $0.attribute(forName: "type")?.stringValue }
                    let name = method.attribute(forName: "name")?.stringValue ?? ""
                    let owner = interface.attribute(forName: "name")?.stringValue ?? ""
                    names.insert("\(owner).\(name)")
                    members.append(
                        Member(path: path, interface: owner, name: name, signature: types.joined()))
                }
            }
            paths += node.elements(forName: "node").compactMap { $0.attribute(forName: "name")?.stringValue }
                .map { path == "/" ? "/\($0)" : "\(path)/\($0)" }
        }
        guard !members.isEmpty else {
            throw Failure(name: Failure.Name.failed, message: "\(service) introspects nothing at \(root)")
        }
        report.members = max(report.members, names.count)
    }

    private func text(of path: String) -> String? {
        while !open.isEmpty, receive() {}
        guard
            let call = try? Message.methodCall(
                destination: service, path: path, interface: "org.freedesktop.DBus.Introspectable",
                member: "Introspect"), let serial = peer.send(call)
        else { return nil }
        while let message = peer.receive(timeout: 20) {
            guard message.replySerial == serial else { continue }
            return (try? message.arguments())?.first?.stringValue
        }
        return nil
    }
}
