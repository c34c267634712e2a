import MediaControl

/// How a player that is not our own behaves.
enum Manner: CaseIterable {
    case correct
    /// Play and Pause both toggle.
    case toggles
    case ignores
    /// Handles calls after seconds.
    case late
    /// Never tells of a change.
    case quiet
    /// Answers nothing, for ever.
    case deaf
    case refuses
    case stops
}

/// One player and its person, with the truth of who did what. Independent of the book: it knows MPRIS, not rules.
struct MockPlayer {
    let manner: Manner
    var status = PlaybackStatus.paused
    var track = 1
    /// When the person last did something; 0: never.
    var personActed: UInt64 = 0
    var personPlayed: UInt64 = 0
    /// When our Pause paused it, while that is why it is paused.
    var pausedByUs: UInt64?
    var pausedTrack = 0

    var facts: PlayerFacts { PlayerFacts(status, track: Track(id: "/\(track)")) }

    enum Deed: CaseIterable {
        case play, pause, next
    }

    /// False where it changed nothing: then nobody can know of it.
    mutating func person(_ deed: Deed, at now: UInt64) -> Bool {
        if deed == .play && status == .playing || deed == .pause && status == .paused { return false }
        personActed = now
        pausedByUs = nil
        switch deed {
        case .play:
            status = .playing
            personPlayed = now
        case .pause: status = .paused
        case .next: track += 1
        }
        return true
    }

    /// Handles our call; false where it refuses.
    mutating func pause(at now: UInt64) -> Bool {
        switch manner {
        case .refuses: return false
        case .ignores, .deaf: return true
        case .stops: if status == .playing { status = .stopped }
        case .toggles where status == .paused: status = .playing
        case .toggles, .correct, .late, .quiet:
            if status == .playing {
                status = .paused
                pausedByUs = now
                pausedTrack = track
            }
        }
        return true
    }

    mutating func play(at now: UInt64) -> Bool {
        switch manner {
        case .refuses: return false
        case .ignores, .deaf: return true
        case .toggles: status = status == .playing ? .paused : .playing
        case .correct, .late, .quiet, .stops: status = .playing
        }
        pausedByUs = nil
        return true
    }
}
