import EventLoop

/// The owners of bus names that are tracked here.
final class NameTable {
    /// A system bus allows 512 rules per connection: above this number of names, all names share one rule.
    private static let ownRules = 128

    private final class Watcher {
        var vanished: (() -> Void)?
        init(_ vanished: @escaping () -> Void) { self.vanished = vanished }
    }

    private final class Entry {
        let rule: MatchRule
        /// nil until the bus has answered; empty for no owner.
        var owner: String?
        var watchers: [Watcher] = []
        var trackers = 0
        init(_ rule: MatchRule) { self.rule = rule }
    }

    weak var connection: Connection?
    private var entries: [String: Entry] = [:]

    /// The unique name of the owner of a tracked name.
    func owner(of name: String) -> String? {
        guard let owner = entries[name]?.owner, !owner.isEmpty else { return nil }
        return owner
    }

    /// Tracks the owner of the name for ``owner(of:)`` until released.
    func track(_ name: String) -> Subscription {
        let entry = entry(for: name)
        entry.trackers += 1
        return Subscription { [weak self] in
            entry.trackers -= 1
            self?.cleanUp(name, entry)
        }
    }

    /// Calls once from the loop when the name has no owner, now or later.
    func watch(_ name: String, vanished: @escaping () -> Void) -> Subscription {
        let watcher = Watcher(vanished)
        let entry = entry(for: name)
        entry.watchers.append(watcher)
        if entry.owner == "" { later(name, entry) }
        return Subscription { [weak self] in
            watcher.vanished = nil
            entry.watchers.removeAll { $0 === watcher }
            self?.cleanUp(name, entry)
        }
    }

    private func entry(for name: String) -> Entry {
        if let entry = entries[name] { return entry }
        let rule = MatchRule.ownerChanged(of: entries.count < Self.ownRules ? name : nil)
        let entry = Entry(rule)
        entries[name] = entry
        connection?.matches.hold(rule)
        // Requested after the rule is added, so that no change is missed.
        connection?.askBus("GetNameOwner", [.string(name)]) { [weak self, weak entry] answer in
            guard let self, let entry, entry.owner == nil else { return }
            switch answer {
            case .success(let values): entry.owner = values.first?.stringValue
            case .failure(let failure) where failure.name == Failure.Name.nameHasNoOwner:
                entry.owner = ""
                self.fire(name, entry)
            case .failure: break
            }
        }
        return entry
    }

    func ownerChanged(_ signal: Message) {
        guard !entries.isEmpty, let name = signal.firstString, let entry = entries[name],
            let arguments = try? signal.arguments(), arguments.count == 3, let owner = arguments[2].stringValue
        else { return }
        entry.owner = owner
        if owner.isEmpty { fire(name, entry) }
    }

    private func later(_ name: String, _ entry: Entry) {
        connection?.loop.later { [weak self] in
            if entry.owner == "" { self?.fire(name, entry) }
        }
    }

    private func fire(_ name: String, _ entry: Entry) {
        let watchers = entry.watchers
        entry.watchers = []
        for watcher in watchers {
            let vanished = watcher.vanished
            watcher.vanished = nil
            vanished?()
        }
        cleanUp(name, entry)
    }

    private func cleanUp(_ name: String, _ entry: Entry) {
        guard entry.watchers.isEmpty, entry.trackers == 0, entries[name] === entry else { return }
        entries[name] = nil
        connection?.matches.release(entry.rule)
    }
}
