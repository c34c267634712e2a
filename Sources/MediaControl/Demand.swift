public import PluginAPI

/// What the rules want of a player at this moment, by the sessions its sound belongs to.
public enum Demand: Sendable, Hashable {
    /// Nothing.
    case free
    /// Its session is interrupted.
    case silent
    /// Its session's interruption ended with should-resume, and its claim still stands.
    case resume
}

extension Demand {
    /// A session that the player's sound belongs to.
    public struct Owner: Sendable, Hashable {
        public var state: SessionState
        /// Whether the daemon made the session, for a program that never asked for one.
        public var isAdopted = false
        /// Whether it played on although it was interrupted, so that its streams are silenced at the server.
        public var isSilencedAtServer = false
        /// Whether it may resume, and has not yet.
        public var mayResume = false
        /// Whether it is active because it came back after an interruption.
        public var cameBack = false

        public init(_ state: SessionState) { self.state = state }
    }

    /// Programs that never asked for a session are paused with the interruption; those that did, where they played on.
    ///
    /// - Parameter isAdoptionOff: whether programs are no longer adopted: who was paused as one is given back.
    public init(of owners: [Owner], isAdoptionOff: Bool) {
        guard !owners.isEmpty else {
            self = isAdoptionOff ? .resume : .free
            return
        }
        self = .free
        for owner in owners {
            switch owner.state {
            case .interrupted: if owner.isAdopted || owner.isSilencedAtServer { self = .silent }
            case .inactive: if owner.mayResume, self == .free { self = .resume }
            case .active:
                guard owner.cameBack else {
                    // Nobody silences what another of its sessions may play.
                    self = .free
                    return
                }
                // It came back by its stream, which a player may keep open while it is paused.
                if self == .free { self = .resume }
            }
        }
    }
}
