import PluginAPI
import SessionManager

/// A written scenario: sessions, what happens step by step, and what is expected of it. See docs/scenarios.md.
public struct Scenario: Sendable {
    /// A line that does something.
    public struct Line: Sendable {
        /// From 1.
        public let number: Int
        /// Without surrounding spaces.
        public let text: String
        let content: Content
    }

    enum Content: Sendable {
        case step(Step)
        case expect(Expectation)
        /// A line of a decision, to be met to the byte.
        case exactly
    }

    /// For messages.
    public let file: String
    /// Whether every step's events must be exactly those written, and claims run out only where it is written.
    public internal(set) var isExact = false
    /// In the order of the file.
    public internal(set) var lines: [Line] = []
    /// What the sessions are called that are there at the start or made on the way, in this order.
    public var sessionLabels: [String] {
        memory.members.map { "s\($0.id)" }
            + lines.compactMap { line in
                guard case .step(.session(let label, _, _)) = line.content, label != "-" else { return nil }
                return label
            }
    }

    var memory = Memory()
    var ports: [String: Port] = [:]

    /// A larger file is refused at once.
    public static let maximumBytes = 64 << 20
    /// A longer line, in bytes, is refused.
    public static let maximumLineBytes = 65_536
}

/// What a line makes happen. Sessions and clients by what they are called in the file.
enum Step: Sendable {
    case session(label: String, client: String, NewSession)
    case about(String, Request)
    case vanish(String)
    case fact(Event)
    case sounding(sessions: [String], pausable: [String], others: Bool)
    case expire
    /// Microseconds from the step before.
    case wait(UInt64)
    /// Microseconds on the monotonic clock.
    case at(UInt64)

    enum Request: Sendable {
        case activate
        case deactivate(notifyOthers: Bool)
        case setCategory(Configuration)
        case override(OutputOverride)
        case preferInput(String)
        case prefer([Preference])
        case close
        case foreground(Bool)
        case ignored
    }

    enum Preference: Sendable {
        case sampleRate(Double?)
        case ioBufferDuration(Double?)
        case interruptsOnRouteDisconnect(Bool)
        case noInterruptionsFromAlerts(Bool)
    }
}

/// What should be so after a step, or should have been told in it.
enum Expectation: Sendable {
    case nothing
    case refused(SessionError.Code?)
    case nowPlaying(String?)
    case session(String, Claim)

    /// What is said of one session.
    enum Claim: Sendable {
        // States.
        case state(SessionState)
        case gone
        case waitsFor([String])
        case lowered(Bool)
        case muted(Bool)
        case mayReturn(Bool)
        case interrupted(by: String?, InterruptionReason?)
        // Events of the step.
        case hearsNothing
        case began(by: String?, InterruptionReason?, Rule?)
        case ended(resume: Bool, Rule?)
        case happened(Happening, Rule?)
        case hint(begin: Bool)
        case routed(RouteChangeReason?)
    }

    enum Happening: String, CaseIterable, Sendable {
        case created, activated, deactivated, closed
        case claimDropped = "claim-dropped"
    }
}
