import Decider
import PluginAPI
import Routing
import SessionManager

/// A scenario file: sessions, steps and expected results. See docs/scenarios.md.
public struct Scenario: Sendable {
    /// A line with a statement.
    public struct Line: Sendable {
        /// From 1.
        public let number: Int
        /// Without spaces at both ends.
        public let text: String
        let content: Content
    }

    enum Content: Sendable {
        case step(Step)
        case expect(Expectation)
        /// A line of a decision that must match exactly.
        case exactly
        /// A part of the fact in a later line.
        case part

        /// What an exact run takes from the file although it followed from the streams of a program; nil: nothing.
        var undecided: String? {
            switch self {
            case .step(.session(_, _, let new, let isAdopted)):
                // An export of before `adopted` was written has the evidence alone.
                if !new.evidence.isEmpty { return "the guessed call of \(quoted(new.name))" }
                return isAdopted ? "the adoption of \(quoted(new.name))" : nil
            case .step(.about(let label, .ignored)): return "that \(label) ignored its interruption"
            case .step, .expect, .exactly, .part: return nil
            }
        }
    }

    /// For messages.
    public let file: String
    /// Whether the results of each step must be exactly those in the file, and claims expire only at `expire`.
    public internal(set) var isExact = false
    /// Whether it has the facts from which everything is decided again, and not only the events of the sessions.
    public internal(set) var hasFacts = false
    /// The lines before the first step of a scenario with facts.
    var head: [String] = []
    /// The state before the first fact.
    var start: Start?

    struct Start: Sendable {
        let state: Decider.State
        let view: Routing.View
    }

    /// In the order of the file.
    public internal(set) var lines: [Line] = []
    /// The names of the sessions, those at the start first, in the order of creation.
    public var sessionLabels: [String] {
        memory.members.map { "s\($0.id)" }
            + lines.compactMap { line in
                switch line.content {
                case .step(.session(let label, _, _, _)): label == "-" ? nil : label
                case .step(.program(let label, _)): label
                default: nil
                }
            }
    }

    /// Lines with what the daemon decided by the streams of programs, which are not in the file: an exact run takes these
    /// decisions from the file.
    public internal(set) var undecided: [Undecided] = []

    /// A line with such a decision.
    public struct Undecided: Sendable, Hashable {
        /// From 1.
        public let line: Int
        /// What was not decided again, for display.
        public let what: String
    }

    var memory = Memory()
    /// How programs are adopted.
    var adoption = Settings().adoption
    var ports: [String: Port] = [:]

    /// A larger file is refused at once.
    public static let maximumBytes = 64 << 20
    /// A longer line, in bytes, is refused.
    public static let maximumLineBytes = 65_536
}

/// A step. Sessions and clients have their names in the file.
enum Step: Sendable {
    /// `isAdopted`: the streams of a program led to it, which are not in the file.
    case session(label: String, client: String, NewSession, isAdopted: Bool)
    case about(String, Request)
    case vanish(String)
    /// From now on, the client answers no Ping.
    case hang(String)
    /// The machine is about to sleep, or has woken up.
    case machine(isAsleep: Bool)
    case fact(Event)
    /// `outputs`: for each session, the uid of an output on which its streams were heard.
    case sounding(
        sessions: [String], pausable: [String], holdable: [String], exempt: [String],
        outputs: [(session: String, uid: String)], others: Bool)
    case program(String, SimulatedServer.App)
    case begin(String, SimulatedServer.Beginning)
    case pause(String, Bool)
    /// The user or a program sets the volume of a stream.
    case volume(String, VolumeChange)
    /// A stream is moved to that output, by its uid.
    case move(String, to: String)
    case end(String)
    case endProgram(String)
    /// An MPRIS player of a stream.
    case player(String, stream: String)
    /// The user uses it.
    case use(String, PlayerCondition)
    case expire
    /// A fact of an exported history.
    case recorded(RecordedFact)
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
        case unanswered
    }

    enum Preference: Sendable {
        case sampleRate(Double?)
        case ioBufferDuration(Double?)
        case interruptsOnRouteDisconnect(Bool)
        case noInterruptionsFromAlerts(Bool)
    }
}

/// An expected state after a step, or an expected effect of it.
enum Expectation: Sendable {
    case nothing
    case refused(SessionError.Code?)
    case nowPlaying(String?)
    case stream(String, StreamCondition)
    /// In points.
    case volume(String, Int)
    case player(String, PlayerCondition)
    /// That output was requested in this step, by its uid.
    case output(String)
    case session(String, Claim)

    /// An expectation about one session.
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
