public import PluginAPI

/// The current demand of the rules on a player, derived from the sessions of its sound.
public enum Demand: Sendable, Hashable, Codable {
    /// Nothing.
    case free
    /// Its session is interrupted. `since`: when that began, in microseconds: another interruption may follow at once.
    case silent(since: UInt64)
    /// Its session's interruption ended with the should-resume hint, and its claim is still valid.
    case resume
    /// One of its sessions should be silent or resume, and another one plays. The player may belong to either, so it is
    /// left as it is.
    case either

    public var isSilent: Bool {
        switch self {
        case .silent: true
        case .free, .resume, .either: false
        }
    }
}

extension Demand {
    /// A session to which the player's sound belongs.
    public struct Owner: Sendable, Hashable {
        public var state: SessionState
        /// When the state last changed, in microseconds.
        public var since: UInt64 = 0
        /// Whether the program was adopted.
        public var isAdopted = false
        /// Whether it continued to play although it was interrupted, so that its streams are silenced at the server.
        public var isSilencedAtServer = false
        /// Whether it may resume, and has not yet.
        public var mayResume = false
        /// Whether it is active because it came back after an interruption.
        public var cameBack = false

        public init(_ state: SessionState) { self.state = state }
    }

    /// Adopted programs are paused when they are interrupted; clients only if they play on.
    ///
    /// - Parameter isAdoptionOff: whether programs are no longer adopted: then players paused as adopted are resumed.
    public init(of owners: [Owner], isAdoptionOff: Bool) {
        guard !owners.isEmpty else {
            self = isAdoptionOff ? .resume : .free
            return
        }
        /// When the latest interruption that silences it began.
        var silent: UInt64?
        var mayResume = false
        for owner in owners {
            switch owner.state {
            case .interrupted:
                if owner.isAdopted || owner.isSilencedAtServer { silent = max(silent ?? 0, owner.since) }
            case .inactive: if owner.mayResume { mayResume = true }
            case .active: break
            }
        }
        let active = owners.filter { $0.state == .active }
        if active.contains(where: { !$0.cameBack }) {
            self = silent != nil || mayResume ? .either : .free
        } else if let silent {
            self = .silent(since: silent)
        } else {
            // It is active because of its stream, which a player may keep open while it is paused.
            self = mayResume || !active.isEmpty ? .resume : .free
        }
    }
}
