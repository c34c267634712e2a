package import PluginAPI

/// What the camera portal of the desktop (`org.freedesktop.portal.Camera`) is asked, in which order, and who is told the answer.
///
/// Somebody who only looks for cameras does not make the portal ask the user; somebody who wants to use one does. There is one
/// question at a time, however many wait for it. It is never taken back, because portals remember a dialog that closes without an
/// answer as a no for ever: who has waited long enough goes, and an answer that comes later counts. A value: the caller carries out
/// the acts.
package struct PortalAccess: Sendable, Hashable {
    package enum State: Sendable, Hashable {
        /// There is no connection to PipeWire; nobody waits.
        case closed
        /// The user is asked (`AccessCamera`), even if nobody waits any more. `isOpen`: there is a connection, and the portal is
        /// asked whether it may still be used.
        case asking(isOpen: Bool)
        /// The connection is requested (`OpenPipeWireRemote`). `isWanted`: somebody waits who wants to use a camera;
        /// `isAllowed`: the user has just agreed.
        case opening(isWanted: Bool, isAllowed: Bool)
        case open
    }

    package enum Event: Sendable, Hashable {
        /// Somebody looks for cameras.
        case looked
        /// Somebody wants to use a camera.
        case wanted
        /// The same, but the cameras of the connection are not those that are wanted: permissions may have changed.
        case wantedAnew
        /// The last one who wanted to use a camera waits no more.
        case left
        /// The answer of the portal to the question: 0 yes, 1 no, other values: the question has ended without an answer.
        case answered(UInt32)
        /// The portal has given the connection, and cameras were looked for.
        case opened
        /// The portal refuses the call: it gives no connection without a question, or the desktop has no cameras for anybody.
        case notPermitted
        /// A call failed; the portal may be gone.
        case failed(SessionError)
        /// PipeWire has closed the connection.
        case lost
        /// The portal has ended. An open connection is not its own.
        case portalGone
    }

    package enum Act: Sendable, Hashable {
        case ask
        case open
        /// The connection is closed, and its cameras are gone.
        case close
        /// All who wait are told; nil: there is a connection.
        case tell(SessionError?)
    }

    package private(set) var state = State.closed

    package var isAsking: Bool { if case .asking = state { true } else { false } }
    /// Whether there is a connection with its cameras.
    package var isOpen: Bool { state == .open || state == .asking(isOpen: true) }

    package init() {}

    package mutating func handle(_ event: Event) -> [Act] {
        switch (state, event) {
        case (.closed, .looked): return go(.opening(isWanted: false, isAllowed: false), .open)
        case (.closed, .wanted), (.closed, .wantedAnew): return go(.asking(isOpen: false), .ask)
        case (.closed, _): return []

        // The portal may have asked before, and answers at once.
        case (.asking(isOpen: false), .answered(0)): return go(.opening(isWanted: true, isAllowed: true), .open)
        case (.asking(isOpen: false), .answered(1)): return go(.closed, .tell(Self.denied))
        case (.asking(isOpen: false), .answered): return go(.closed, .tell(Self.ended))
        case (.asking(isOpen: false), .failed(let error)): return go(.closed, .tell(error))
        case (.asking(isOpen: false), .notPermitted): return go(.closed, .tell(Self.denied))
        case (.asking(isOpen: false), .portalGone): return go(.closed, .tell(Self.gone))
        case (.asking(isOpen: false), _): return []

        // Session managers leave an open connection its cameras when the permission is taken back.
        case (.asking(isOpen: true), .answered(0)): return go(.open, .tell(nil))
        case (.asking(isOpen: true), .answered(1)), (.asking(isOpen: true), .notPermitted):
            return go(.closed, .close, .tell(Self.denied))
        case (.asking(isOpen: true), .answered): return go(.open, .tell(Self.ended))
        // What was allowed stays allowed without a portal.
        case (.asking(isOpen: true), .failed), (.asking(isOpen: true), .portalGone): return go(.open, .tell(nil))
        case (.asking(isOpen: true), .wantedAnew), (.asking(isOpen: true), .lost):
            return go(.asking(isOpen: false), .close)
        case (.asking(isOpen: true), _): return []

        case (.opening(_, let isAllowed), .wanted), (.opening(_, let isAllowed), .wantedAnew):
            return go(.opening(isWanted: true, isAllowed: isAllowed))
        case (.opening(_, let isAllowed), .left): return go(.opening(isWanted: false, isAllowed: isAllowed))
        case (.opening, .opened): return go(.open, .tell(nil))
        case (.opening(isWanted: true, isAllowed: false), .notPermitted): return go(.asking(isOpen: false), .ask)
        case (.opening, .notPermitted): return go(.closed, .tell(Self.denied))
        case (.opening, .failed(let error)): return go(.closed, .close, .tell(error))
        case (.opening, .lost): return go(.closed, .close, .tell(Self.cut))
        // If the connection is on its way, it is not the portal's any more; otherwise the call fails.
        case (.opening, _): return []

        case (.open, .looked): return [.tell(nil)]
        // Where the user has agreed for good, the portal answers at once.
        case (.open, .wanted): return go(.asking(isOpen: true), .ask)
        case (.open, .wantedAnew): return go(.asking(isOpen: false), .close, .ask)
        case (.open, .lost): return go(.closed, .close)
        case (.open, _): return []
        }
    }

    private mutating func go(_ next: State, _ acts: Act...) -> [Act] {
        state = next
        return acts
    }

    /// Seconds for which somebody waits until a camera may be used.
    package static let patience = 60.0

    static let denied = SessionError(
        .missingEntitlement,
        "the desktop does not allow the use of cameras; allow it in its privacy settings, or for an app with "
            + "'flatpak permission-set devices camera APP yes'")
    static let ended = SessionError(
        .cancelled, "the question of the desktop whether cameras may be used was closed without an answer; try again")
    package static let unanswered = SessionError(
        .timedOut,
        "nobody has answered the desktop's question whether cameras may be used, for \(Int(patience)) s; answer it, and try again"
    )
    static let gone = SessionError(
        .resourceNotAvailable, "the portal of the desktop has ended while it was asked about cameras; try again")
    static let cut = SessionError(
        .resourceNotAvailable, "PipeWire has closed the connection of the camera portal; try again")
}
