public import EventLoop
import Glibc
import MediaValues
import PluginAPI
import Processes

/// Saves the queue of a player on the disk, in `$XDG_STATE_HOME/sessiond/queue`. After a restart of the machine, the
/// player has the same queue, paused at the same position.
///
/// The whole file is replaced: a second after a change, every ten seconds while the player plays, and at the end.
public final class QueueKeeper {
    private static let (delay, interval) = (1.0, 10.0)

    private let file: KeptFile
    private let complain: (String) -> Void
    private weak var player: PlayerPlugin?
    private var last = Signature()
    private var hasComplained = false
    private lazy var timer = Timer(on: loop) { [unowned self] in if let player { save(player) } }
    private var isArmed = false
    private let loop: EventLoop

    /// The values that show whether something has changed.
    private struct Signature: Equatable {
        var revision: UInt64 = 0
        var current: UInt64?
        var mode = ShuffleMode.off
        var repeats = RepeatMode.none
        var state = PlayerState.stopped
    }

    /// Loads the saved queue into an empty player. Nil if there is no folder for it.
    public init?(restoring player: PlayerPlugin, on loop: EventLoop, complain: @escaping (String) -> Void) {
        guard let state = UserFolder.state.path else { return nil }
        file = KeptFile(state + "/sessiond/queue", limit: SavedQueue.largestFile)
        (self.loop, self.player, self.complain) = (loop, player, complain)
        if let bytes = file.read() {
            if let saved = SavedQueue(bytes: bytes) {
                player.restore(saved)
            } else {
                complain("\(file.path) is damaged: the queue is empty")
            }
        } else if errno != ENOENT {
            complain("\(file.path): \(String(cString: strerror(errno))): the queue is empty")
        }
        last = signature(of: player)
    }

    private func signature(of player: PlayerPlugin) -> Signature {
        Signature(
            revision: player.queue.revision, current: player.queue.currentID, mode: player.queue.shuffleMode,
            repeats: player.repeatMode, state: player.engine.state)
    }

    /// Called when something may have changed.
    func settled(_ player: PlayerPlugin) {
        let now = signature(of: player)
        if now != last {
            last = now
            timer.arm(after: Self.delay)
            isArmed = true
        } else if !isArmed, now.state == .playing {
            timer.arm(after: Self.interval)
            isArmed = true
        }
    }

    /// - Parameter isLast: whether it must be on the disk when this returns, because the program ends.
    func save(_ player: PlayerPlugin, isLast: Bool = false) {
        // The disk still writes the one before.
        if pending != nil, !isLast {
            timer.arm(after: Self.delay)
            return
        }
        isArmed = false
        write(player.saved.bytes, isLast: isLast)
        if player.engine.state == .playing {
            timer.arm(after: Self.interval)
            isArmed = true
        }
    }

    /// The file that is written to the disk, and gets its name after that.
    private var pending: (file: WholeFile, sync: DiskSync)?

    /// Replaces the file, or leaves it unchanged. Only the user may read it, because addresses may contain passwords.
    ///
    /// Without waiting for the disk, a power failure may leave an empty file. The loop does not wait, because a slow disk
    /// needs seconds.
    private func write(_ bytes: [UInt8], isLast: Bool) {
        attempt { () throws(SessionError) in
            let new = try file.begin(bytes)
            pending = nil
            let sync = isLast ? nil : DiskSync(new.descriptor, on: loop) { [weak self] in self?.keep() }
            if let sync {
                pending = (new, sync)
            } else {
                if isLast { fdatasync(new.descriptor) }
                try new.keep(replaces: true)
            }
        }
    }

    private func keep() {
        guard let (new, _) = pending else { return }
        pending = nil
        attempt { () throws(SessionError) in try new.keep(replaces: true) }
    }

    private func attempt(_ body: () throws(SessionError) -> Void) {
        do throws(SessionError) {
            try body()
            hasComplained = false
        } catch {
            if !hasComplained { complain("\(error.message): the queue does not survive a restart") }
            hasComplained = true
        }
    }
}

extension PlayerPlugin {
    /// The queue without items whose data are only in memory.
    var saved: SavedQueue {
        var saved = SavedQueue()
        let items = queue.items
        let kept = items.indices.filter { memory[items[$0].entry.uri] == nil }
        let places = Dictionary(uniqueKeysWithValues: kept.enumerated().map { ($1, $0) })
        saved.entries = kept.map { items[$0].entry }
        let current = indexOfCurrentItem ?? 0
        saved.current = places[current] ?? 0
        saved.position = places[current] != nil && !hasFailed ? engine.position : 0
        saved.repeatMode = repeatMode.rawValue
        saved.shuffleMode = queue.shuffleMode
        saved.order = queue.isShuffled ? queue.orderOfPlaces.compactMap { places[$0] } : []
        return saved
    }

    /// Restores the queue, paused at its position.
    func restore(_ saved: SavedQueue) {
        guard !saved.entries.isEmpty, session.description.category.playerMay.prepare else { return }
        changing {
            queue.replaceAll(with: saved.entries, startingAt: saved.current)
            queue.restore(saved.shuffleMode, order: saved.order)
            repeatMode = RepeatMode(rawValue: saved.repeatMode) ?? .none
            if let id = queue.currentID { queue.setStart(id, saved.position) }
            open(sounding: false)
        }
    }
}
