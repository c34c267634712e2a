import PluginAPI
import SessionManager

/// What programs do with their streams: when they pause them, and when they begin to play.
///
/// PipeWire shows the state of a stream, not the request of its program, so a stream that is moved is shown as paused for a
/// moment (``AudioStream/isPauseInferred``). Such a pause does not count. It is a value: it gets all streams at each look, and
/// keeps what it needs for the next one when ``note(_:)`` is called.
struct StreamActivity: Codable {
    /// The streams at one look.
    struct Look {
        /// The streams, paused exactly if their programs have paused them.
        fileprivate(set) var streams: [StreamFacts] = []
        /// The streams that began to play since the last look, and how.
        fileprivate(set) var beginnings: [AudioStream.ID: UsersHand.Beginning] = [:]
        /// When a pause that may be the effect of a move counts; nil: there is none.
        fileprivate(set) var deadline: UInt64?
        fileprivate var known: [AudioStream.ID: Known] = [:]
        fileprivate var silent: [Program.Key: UInt64] = [:]
        fileprivate var firstLook: UInt64 = 0
    }

    /// A stream at the last look.
    fileprivate struct Known: Codable {
        let program: Program.Key?
        var deviceName: String
        var isHeld: Bool
        /// Whether its program has paused it.
        var isPaused: Bool
        /// Since when the server shows it as paused; nil: it does not.
        var shownPaused: UInt64?
        /// Whether it has played.
        var hasPlayed: Bool
        /// When it was last moved, by the daemon or the server; nil: never.
        var moved: UInt64?

        /// Whether it plays from the view of its program.
        var isPlaying: Bool { hasPlayed && !isPaused }
    }

    private var known: [AudioStream.ID: Known] = [:]
    /// Programs without a stream that plays, and since when.
    private var silent: [Program.Key: UInt64] = [:]
    private var firstLook: UInt64?

    /// Compares the streams with the last look.
    func look(_ streams: [StreamFacts], at now: UInt64) -> Look {
        var look = Look()
        look.firstLook = firstLook ?? now
        let playing = programs(of: known)
        for facts in streams {
            let stream = facts.stream
            var one = known[stream.id] ?? Known(facts)
            if one.deviceName != stream.deviceName || one.isHeld != stream.isHeld || stream.isSettling {
                one.deviceName = stream.deviceName
                one.isHeld = stream.isHeld
                one.moved = now
            }
            if stream.isCorked {
                one.shownPaused = one.shownPaused ?? now
                let due = stream.isPauseInferred ? one.pauseCounts : nil
                if due.map({ $0 <= now }) ?? true {
                    one.isPaused = true
                } else if !one.isPaused, let due {
                    look.deadline = min(look.deadline ?? due, due)
                }
            } else {
                // It may have been shown as paused long enough since the last look.
                let wasPaused = one.isPaused || one.pauseCounts.map { $0 <= now } ?? false
                one.shownPaused = nil
                one.isPaused = false
                if stream.direction == .playback, !one.hasPlayed || wasPaused {
                    look.beginnings[stream.id] = beginning(of: one, playing, look.firstLook, at: now)
                }
                one.hasPlayed = true
            }
            look.known[stream.id] = one
            look.streams.append(facts.paused(one.isPaused))
        }
        look.silent = silent
        let current = programs(of: look.known)
        for program in current { look.silent[program] = nil }
        for program in playing.subtracting(current) { look.silent[program] = now }
        return look
    }

    /// How a stream began that did not play before.
    private func beginning(
        of stream: Known, _ playing: Set<Program.Key>, _ firstLook: UInt64, at now: UInt64
    ) -> UsersHand.Beginning? {
        guard let program = stream.program else { return nil }
        let isPlaying = playing.contains(program)
        guard stream.hasPlayed else {
            return .newStream(afterSilence: isPlaying ? nil : now &- (silent[program] ?? firstLook))
        }
        // A stream that was not silenced, of a program that plays: for example a notification in another page.
        guard stream.isHeld || !isPlaying else { return nil }
        return .sameStream(afterMove: stream.moved.map { now &- $0 })
    }

    private func programs(of streams: [AudioStream.ID: Known]) -> Set<Program.Key> {
        Set(streams.filter { $0.key.direction == .playback && $0.value.isPlaying }.compactMap(\.value.program))
    }

    /// The look was handled. `programs`: those that are still known; the others are forgotten.
    mutating func note(_ look: Look, keeping programs: (Program.Key) -> Bool) {
        known = look.known
        firstLook = look.firstLook
        let present = Set(known.values.compactMap(\.program))
        silent = look.silent.filter { present.contains($0.key) || programs($0.key) }
    }

    /// The daemon moves the stream.
    mutating func moved(_ id: AudioStream.ID, at now: UInt64) { known[id]?.moved = now }

    /// The server is gone, and knows no stream any more.
    mutating func forgetStreams() { self = StreamActivity() }
}

extension StreamActivity.Known {
    fileprivate init(_ facts: StreamFacts) {
        let stream = facts.stream
        self.init(
            program: facts.program?.key, deviceName: stream.deviceName, isHeld: stream.isHeld, isPaused: true,
            shownPaused: nil, hasPlayed: false, moved: nil)
    }

    /// When the pause that is shown counts: one that began just after a move counts if it lasts longer than those that moves
    /// cause. Nil: none is shown.
    fileprivate var pauseCounts: UInt64? {
        guard let shownPaused else { return nil }
        guard let moved, shownPaused <= moved + UsersHand.move else { return shownPaused }
        return moved + 2 * UsersHand.move
    }
}

extension StreamFacts {
    fileprivate func paused(_ isPaused: Bool) -> StreamFacts {
        guard stream.isCorked != isPaused else { return self }
        var stream = stream
        stream.isCorked = isPaused
        return StreamFacts(stream: stream, ancestry: ancestry, user: user, sandbox: sandbox, program: program)
    }
}
