import DBus
import PluginAPI
import SessionBus
import Synchronization

/// The items that the process of a ``Player`` has. Its requests are made one after the other.
final class PlayerQueue: Sendable {
    let playback: Playback
    private let entries = Mutex<[(item: PlayerItem, path: String)]>([])

    init(_ playback: Playback) { self.playback = playback }

    func item(_ path: String) -> PlayerItem? { entries.withLock { $0.first { $0.path == path }?.item } }

    /// Makes the process play these items, the first one now. If that is the current one already, it plays on.
    func show(_ items: [PlayerItem]) async {
        do throws(SessionError) {
            try await bring(items)
        } catch {
            items.first?.fail(error)
        }
    }

    private func bring(_ items: [PlayerItem]) async throws(SessionError) {
        let wasPlaying = playback.facts.withLock(\.isPlaying)
        if let first = items.first, item(playback.facts.withLock(\.current)) === first {
            return try await keepFirst(items)
        }
        // Nothing was loaded, and nothing is to be.
        if items.isEmpty, entries.withLock(\.isEmpty) { return }
        guard let first = items.first else {
            await playback.stop()
            entries.withLock { $0 = [] }
            return
        }
        if let path = loadedPath(of: first) {
            try await playback.ask("GoTo", [.objectPath(path)])
            try await open(first)
            return try await keepFirst(items)
        }
        let replace = { () async throws(SessionError) -> Void in
            try await self.load(items)
            try await self.open(first)
        }
        if wasPlaying { try await playback.playOn(after: replace) } else { try await replace() }
    }

    /// Nil: the process does not have the item.
    private func loadedPath(of item: PlayerItem) -> String? {
        guard playback.facts.withLock(\.current) != ObjectPath.none else { return nil }
        return entries.withLock { $0.first { $0.item === item }?.path }
    }

    private func load(_ items: [PlayerItem]) async throws(SessionError) {
        entries.withLock { $0 = [] }
        try await playback.load("LoadList", [.strings(items.map(\.url)), .uint32(0)])
        let rows = try await playback.ask("Items").first?.arrayValue ?? []
        let paths = rows.map { $0.asProperties?["id"]?.objectPathValue ?? "" }
        entries.withLock { $0 = Array(zip(items, paths)).map { (item: $0, path: $1) } }
    }

    private func open(_ item: PlayerItem) async throws(SessionError) {
        try await playback.prepare()
        item.becomeReady(duration: playback.facts.withLock(\.duration))
    }

    /// Changes the items after the current one.
    private func keepFirst(_ items: [PlayerItem]) async throws(SessionError) {
        let current = playback.facts.withLock(\.current)
        let later = entries.withLock { entries in
            (entries.firstIndex { $0.path == current }).map { Array(entries[($0 + 1)...]) } ?? []
        }
        let kept = zip(later, items.dropFirst()).prefix { $0.0.item === $0.1 }.count
        for entry in later.dropFirst(kept) {
            try await playback.ask("Remove", [.objectPath(entry.path)])
            entries.withLock { $0.removeAll { $0.path == entry.path } }
        }
        let new = Array(items.dropFirst(1 + kept))
        guard !new.isEmpty else { return }
        let answer = try await playback.ask("Append", [.strings(new.map(\.url))])
        let paths = (answer.first?.arrayValue ?? []).map { $0.objectPathValue ?? "" }
        entries.withLock { $0 += zip(new, paths).map { (item: $0, path: $1) } }
    }

    /// Plays; loads the items first if the process is a new one.
    func play(_ items: [PlayerItem]) async -> Result<Void, SessionError> {
        do throws(SessionError) {
            guard let first = items.first else {
                throw SessionError(.cannotStartPlaying, "there is no item to play")
            }
            if item(playback.facts.withLock(\.current)) !== first {
                try await load(items)
                try await open(first)
            } else if first.status == .failed {
                try await open(first)
            }
            try await playback.play()
            return .success(())
        } catch {
            if error.code == .decodeFailed { items.first?.fail(error) }
            return .failure(error)
        }
    }
}
