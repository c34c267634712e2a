import MediaControl

/// How a player handles calls.
enum Manner: CaseIterable {
    case correct
    /// Play and Pause both toggle.
    case toggles
    case ignores
    /// Handles calls after seconds.
    case late
    /// Never announces a change.
    case quiet
    /// Never replies.
    case deaf
    case refuses
    case stops
}

/// One player and its user, with a record of who did what. It implements MPRIS and uses no rules of the book.
struct MockPlayer {
    let manner: Manner
    var status = PlaybackStatus.paused
    var track = 1
    /// When the user last changed something; 0 if never.
    var personActed: UInt64 = 0
    var personPlayed: UInt64 = 0
    /// When the daemon paused the player; nil if it is not paused because of that.
    var pausedByUs: UInt64?
    var pausedTrack = 0

    var facts: PlayerFacts { PlayerFacts(status, track: Track(id: "/\(track)")) }

    enum Deed: CaseIterable {
        case play, pause, next
    }

    /// The user does something. Returns false if it changes nothing, because then nobody can notice it.
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

    /// Handles a call of the daemon. Returns false if the player refuses.
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
