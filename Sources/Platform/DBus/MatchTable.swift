import CDBus

/// The signals of a subscription; nil matches anything.
struct MatchRule: Hashable {
    var path: String?
    var interface: String?
    var member: String?
    var sender: String?
    var arg0: String?
    /// The first argument is that name, or one below it (`arg0namespace`).
    var arg0Namespace: String?

    /// The bus's signal that a name has another owner: that name, or one below that namespace; nil for both: any name.
    static func ownerChanged(of name: String? = nil, below namespace: String? = nil) -> MatchRule {
        MatchRule(
            path: StandardName.busPath, interface: StandardName.bus, member: "NameOwnerChanged",
            sender: StandardName.bus, arg0: name, arg0Namespace: namespace)
    }

    /// The rule for the bus; nil if a part is malformed, so that no signal can match.
    var text: String? {
        guard path.map(Syntax.isPath) ?? true, interface.map(Syntax.isInterface) ?? true,
            member.map(Syntax.isMember) ?? true, sender.map(Syntax.isBusName) ?? true,
            arg0.map({ !$0.utf8.contains(0) }) ?? true, arg0Namespace.map(Syntax.isBusName) ?? true
        else { return nil }
        var text = "type='signal'"
        if let sender { text += ",sender='\(sender)'" }
        if let path { text += ",path='\(path)'" }
        if let interface { text += ",interface='\(interface)'" }
        if let member { text += ",member='\(member)'" }
        if let arg0Namespace { text += ",arg0namespace='\(arg0Namespace)'" }
        if let arg0 {
            // Inside quotes, only a quote needs escaping; that is done outside of them.
            text += ",arg0='"
            for character in arg0.unicodeScalars {
                if character == "'" { text += "'\\''" } else { text.unicodeScalars.append(character) }
            }
            text += "'"
        }
        return text
    }
}

/// A lasting registration, such as a subscription or a name watch, until it is released.
public final class Subscription {
    private let end: () -> Void

    init(_ end: @escaping () -> Void) { self.end = end }

    deinit { end() }
}

/// The subscribed signals: match rules at the bus, shared and counted, and their handlers.
final class MatchTable {
    final class Subscriber {
        let handler: (Message) -> Void
        var active = true
        init(_ handler: @escaping (Message) -> Void) { self.handler = handler }
    }

    private struct Key: Hashable {
        let path: String?
        let arg0: String?
    }

    private final class Entry {
        let rule: MatchRule
        var subscribers: [Subscriber] = []
        /// Tracks the owner of the sender's name, if that is a well-known name.
        var owner: Subscription?
        init(_ rule: MatchRule) { self.rule = rule }
    }

    weak var connection: Connection?
    /// References to each rule at the bus.
    private var holds: [MatchRule: Int] = [:]
    /// Keyed by the part that differs most, so that a thousand rules for a thousand paths or names need one lookup.
    private var entries: [Key: [Entry]] = [:]
    private var usesArg0 = 0

    // MARK: Rules at the bus

    /// Adds the rule without waiting for the bus, or another reference to it.
    func hold(_ rule: MatchRule) {
        let count = holds[rule, default: 0]
        holds[rule] = count + 1
        if count == 0 { tell("AddMatch", rule) }
    }

    func release(_ rule: MatchRule) {
        guard let count = holds[rule] else { return }
        holds[rule] = count > 1 ? count - 1 : nil
        if count == 1 { tell("RemoveMatch", rule) }
    }

    private func tell(_ member: String, _ rule: MatchRule) {
        guard let text = rule.text, let call = try? Connection.busCall(member, [.string(text)]) else { return }
        call.noReplyExpected = true
        connection?.send(call)
    }

    // MARK: Subscribers

    func subscribe(_ rule: MatchRule, _ handler: @escaping (Message) -> Void) -> Subscription {
        let subscriber = Subscriber(handler)
        let key = Key(path: rule.path, arg0: rule.arg0)
        if let entry = entries[key]?.first(where: { $0.rule == rule }) {
            entry.subscribers.append(subscriber)
        } else {
            let entry = Entry(rule)
            entry.subscribers.append(subscriber)
            if let sender = rule.sender, sender != StandardName.bus, !sender.hasPrefix(":") {
                // Requested before the rule is added, so that the owner is known before its first signal arrives.
                entry.owner = connection?.names.track(sender)
            }
            entries[key, default: []].append(entry)
            if rule.arg0 != nil { usesArg0 += 1 }
            hold(rule)
        }
        return Subscription { [weak self] in
            subscriber.active = false
            self?.remove(subscriber, rule, key)
        }
    }

    private func remove(_ subscriber: Subscriber, _ rule: MatchRule, _ key: Key) {
        guard let bucket = entries[key], let entry = bucket.first(where: { $0.rule == rule }) else { return }
        entry.subscribers.removeAll { $0 === subscriber }
        guard entry.subscribers.isEmpty else { return }
        let left = bucket.filter { $0 !== entry }
        entries[key] = left.isEmpty ? nil : left
        if rule.arg0 != nil { usesArg0 -= 1 }
        release(rule)
    }

    func deliver(_ signal: Message) {
        guard !entries.isEmpty, let path = signal.path else { return }
        deliver(signal, Key(path: path, arg0: nil))
        deliver(signal, Key(path: nil, arg0: nil))
        guard usesArg0 > 0, let arg0 = signal.firstString else { return }
        deliver(signal, Key(path: path, arg0: arg0))
        deliver(signal, Key(path: nil, arg0: arg0))
    }

    private func deliver(_ signal: Message, _ key: Key) {
        guard let bucket = entries[key] else { return }
        for entry in bucket where wants(entry.rule, signal) {
            // A handler may drop other subscriptions: the array here is a copy, the flag is not.
            for subscriber in entry.subscribers where subscriber.active { subscriber.handler(signal) }
        }
    }

    private func wants(_ rule: MatchRule, _ signal: Message) -> Bool {
        if let member = rule.member, dbus_message_has_member(signal.raw, member) == 0 { return false }
        if let interface = rule.interface, dbus_message_has_interface(signal.raw, interface) == 0 { return false }
        if let namespace = rule.arg0Namespace {
            guard let name = signal.firstString, name == namespace || name.hasPrefix(namespace + ".") else {
                return false
            }
        }
        guard let sender = rule.sender else { return true }
        if dbus_message_has_sender(signal.raw, sender) != 0 { return true }
        guard let owner = connection?.names.owner(of: sender) else { return false }
        return dbus_message_has_sender(signal.raw, owner) != 0
    }
}
