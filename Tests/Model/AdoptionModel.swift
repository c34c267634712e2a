import PluginAPI
import SessionManager

/// A second, independent implementation of the adoption of programs, from sessiond.conf(5) and the rules. It does not guess
/// calls, and knows only the default roles.
///
/// It gets the streams at each moment, and compares the sessions with them.
struct AdoptionModel {
    /// What a session was created for.
    enum Purpose: Hashable {
        case call, background, playback
        /// An alarm, of whatever program.
        case alarm
        /// An alarm in a call, where it mixes although the apps do not.
        case quietAlarm

        init(_ session: Session, appsMix: Bool) {
            switch session.sessionClass {
            case .call: self = .call
            case .alert: self = .alarm
            case .app:
                let mixes = session.configuration.options.contains(.mixWithOthers)
                self =
                    session.configuration.category == .ambient
                    ? .background : mixes && !appsMix ? .quietAlarm : .playback
            }
        }
    }

    /// The name under which all alarms are one program.
    static let alarm = "alarm"

    struct Sound {
        let id: String
        let program: String
        let isRecording: Bool
        let role: String?
        let isPlaying: Bool

        fileprivate var isCall: Bool { role == "phone" || role == "communication" }
        fileprivate var isAlarm: Bool { !isRecording && role == "alarm" }
    }

    private struct Activity: Hashable {
        let program: String
        let purpose: Purpose
    }

    /// `streams = calls`: adopted apps mix.
    let mixes: Bool
    let labelAlone: Bool
    /// Everything that was played so far.
    private var past: Set<Activity> = []
    /// What plays, and since when.
    private var present: [Activity: Instant] = [:]
    /// What played before, and since when it is silent.
    private var silent: [Activity: Instant] = [:]
    /// Whether a call is active.
    var isInCall = false
    /// The alarms that began during a call, and the others.
    private var quiet: [String: Bool] = [:]
    /// When a call or an alert was active last.
    var lastRestriction: Instant?
    /// How often a program had to be active.
    private(set) var activeCount = 0

    init(mixes: Bool, labelAlone: Bool) {
        self.mixes = mixes
        self.labelAlone = labelAlone
    }

    /// `interrupted`: programs with an interrupted session of class app. One that is in a call was paused for that.
    mutating func look(_ sounds: [Sound], interrupted: Set<String>, at now: Instant) {
        // "In a call, where an alert is refused, it plays as playback that mixes."
        for sound in sounds where sound.isAlarm && quiet[sound.id] == nil { quiet[sound.id] = isInCall }
        let calling = Set(present.keys.filter { $0.purpose == .call }.map(\.program))
        let heard = Set(sounds.filter { $0.isPlaying && !$0.isRecording }.map(\.program))
            .union(interrupted.intersection(calling))
        let playing = sounds.filter { sound in
            sound.isPlaying && (!sound.isRecording || labelAlone || heard.contains(sound.program))
        }
        let callers = Set(playing.filter(\.isCall).map(\.program))
        let activities = Set(
            playing.compactMap { sound in
                purpose(of: sound, callers).map {
                    Activity(program: $0 == .alarm ? AdoptionModel.alarm : sound.program, purpose: $0)
                }
            })
        for ended in present.keys where !activities.contains(ended) {
            present[ended] = nil
            silent[ended] = now
        }
        for begun in activities where present[begun] == nil {
            present[begun] = now
            silent[begun] = nil
        }
        past.formUnion(activities)
    }

    /// The first contradiction; nil: none. `adopted`: the sessions of adopted programs.
    mutating func contradiction(_ adopted: [(program: String, session: Session)], at now: Instant) -> String? {
        for (activity, since) in present {
            let own = adopted.filter {
                $0.program == activity.program && Purpose($0.session, appsMix: mixes) == activity.purpose
            }
            guard let session = own.first?.session, own.count == 1 else {
                return "\(activity.program) has \(own.count) sessions for its \(activity.purpose)"
            }
            // Only calls and alerts interrupt a program that mixes.
            let isFree = lastRestriction.map { $0 < since } ?? true
            guard mixes, isFree else { continue }
            activeCount += 1
            if session.state != .active {
                return "\(activity.program) is \(session.state) with its \(activity.purpose), and nothing interrupts it"
            }
        }
        for (program, session) in adopted {
            let activity = Activity(program: program, purpose: Purpose(session, appsMix: mixes))
            guard past.contains(activity) else {
                return "\(program) has a session for \(activity.purpose), which it never played"
            }
            let options = session.configuration.options
            if activity.purpose == .playback, options.contains(.mixWithOthers) != mixes {
                return "\(program) mixes: \(!mixes)"
            }
            // The sound of an app may pause for a second, also after the user has started its player again.
            if session.state == .active, let since = silent[activity],
                now > max(since, session.since).advanced(bySeconds: activity.purpose.pause)
            {
                return "\(activity) is active without a stream"
            }
        }
        return nil
    }

    private func purpose(of sound: Sound, _ callers: Set<String>) -> Purpose? {
        // A recording is no sound; it is adopted only if it says that it is a call.
        if sound.isRecording { return sound.isCall ? .call : nil }
        switch sound.role {
        case "alarm": return quiet[sound.id] == false ? .alarm : mixes ? .playback : .quietAlarm
        case "phone", "communication": return .call
        case "game", "event", "animation", "notification": return .background
        // A stream that does not say what it is belongs to the call of its program.
        case nil: return callers.contains(sound.program) ? .call : .playback
        default: return .playback
        }
    }
}

extension AdoptionModel.Purpose {
    /// Seconds without a sound after which it has ended, with some time to notice.
    fileprivate var pause: Double {
        switch self {
        case .call: 0.2
        case .background, .playback, .quietAlarm: 1.2
        case .alarm: 5.2
        }
    }
}
