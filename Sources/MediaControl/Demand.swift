public import PluginAPI

/// The current demand of the rules on a player, derived from the sessions of its sound.
public enum Demand: Sendable, Hashable {
    /// Nothing.
    case free
    /// Its session is interrupted.
    case silent
    /// Its session's interruption ended with the should-resume hint, and its claim is still valid.
    case resume
    /// One of its sessions should be silent or resume, and another one plays. The player may belong to either, so it is
    /// left as it is.
    case either
}

extension Demand {
    /// A session to which the player's sound belongs.
    public struct Owner: Sendable, Hashable {
        public var state: SessionState
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
        var isSilent = false
        var mayResume = false
        for owner in owners {
            switch owner.state {
            case .interrupted: if owner.isAdopted || owner.isSilencedAtServer { isSilent = true }
            case .inactive: if owner.mayResume { mayResume = true }
            case .active: break
            }
        }
        let active = owners.filter { $0.state == .active }
        if active.contains(where: { !$0.cameBack }) {
            self = isSilent || mayResume ? .either : .free
        } else if isSilent {
            self = .silent
        } else {
            // It is active because of its stream, which a player may keep open while it is paused.
            self = mayResume || !active.isEmpty ? .resume : .free
        }
    }
}
