import PluginAPI

@testable import PluginKit
@testable import ReferenceModel

/// A ``Grant`` with a fake engine and a fake daemon: messages wait in two queues, in order, and a random generator chooses
/// what happens next. ``complaints`` lists violations of the rules.
struct GrantWorld {
    private enum Call {
        case activate(order: UInt64)
        case deactivate
    }

    private enum News {
        case answered(Grant.Input, SessionState?)
        case told(Grant.Input, SessionState?)
    }

    private var grant: Grant
    private var dice: SplitMix64
    private(set) var complaints: [String] = []
    private var steps: [(input: Grant.Input, state: Grant.State, effects: [Grant.Effect])] = []
    private(set) var starts = 0

    // The engine, and the clock.
    private var isPlaying = false
    private var now: UInt64 = 1
    private var startTime: UInt64?
    private var isLingering = false

    // The daemon, and the messages to it and from it.
    private var calls: [Call] = []
    private var news: [News] = []
    private var atDaemon = SessionState.inactive
    private var isDaemonThere = true
    private var refuses = false

    // What the plugin's client knows: the daemon's last message, and its own deactivations since.
    private var isGranted = false
    /// The plugin played when it was interrupted, or was asked to play since, and the user did not change it.
    private var mayResume = false

    init(seed: UInt64, resumesOnReplug: Bool) {
        grant = Grant(resumesOnReplug: resumesOnReplug)
        dice = SplitMix64(seed: seed)
    }

    /// The last inputs and their effects.
    var trace: String { steps.suffix(30).map { "\($0.input) → \($0.state) \($0.effects)" }.joined(separator: "\n") }

    mutating func run(steps: Int) {
        for _ in 0..<steps where complaints.isEmpty { step() }
        settle()
    }

    private mutating func complain(_ text: String) { complaints.append(text) }

    // MARK: Events

    private mutating func step() {
        // Most of the time, messages arrive before the next event.
        if Bool.random(using: &dice) {
            deliverCall()
            deliverNews()
        }
        switch Int.random(in: 0..<24, using: &dice) {
        case 0, 1, 2: touch(.wants(at: Bool.random(using: &dice) ? nil : now + 3), mayResume: mayResume)
        case 3, 4: touch(.paused)
        case 5:
            isPlaying = false
            touch(.stopped)
        case 6:
            isPlaying = false
            touch(.replaced)
        case 7:
            if grant.sounds { take(.goesOn) } else { isPlaying = isPlaying && grant.sounds }
        case 8:
            guard isPlaying else { break }
            isPlaying = false
            touch(.finished)
        case 9: now += 2
        case 10, 11, 12, 13: deliverCall()
        case 14, 15, 16, 17: deliverNews()
        case 18: interrupt()
        case 19, 20: endInterruption()
        case 21: unplug()
        case 22: refuses.toggle()
        default: serverOrDaemon()
        }
        tick()
        check()
    }

    private mutating func tick() {
        if let time = startTime, time <= now {
            startTime = nil
            take(.due)
        }
        if isLingering, Int.random(in: 0..<4, using: &dice) == 0 {
            isLingering = false
            take(.lingered)
        }
    }

    private mutating func interrupt() {
        guard isDaemonThere, atDaemon == .active else { return }
        atDaemon = .interrupted
        news.append(.told(.began(.default), .interrupted))
    }

    private mutating func endInterruption() {
        guard isDaemonThere, atDaemon == .interrupted else { return }
        atDaemon = .inactive
        news.append(
            .told(.ended(shouldResume: Bool.random(using: &dice), canResume: true), .inactive))
    }

    private mutating func unplug() {
        guard isDaemonThere, atDaemon == .active else { return }
        guard Bool.random(using: &dice) else {
            news.append(.told(.deviceGone, nil))
            return
        }
        atDaemon = .interrupted
        news.append(.told(.began(.routeDisconnected), .interrupted))
    }

    private mutating func serverOrDaemon() {
        switch Int.random(in: 0..<4, using: &dice) {
        case 0:
            isPlaying = false
            touch(.engineLost)
        case 1: news.append(.told(.servicesLost, nil))
        case 2: news.append(.told(.servicesReset, nil))
        default:
            while !news.isEmpty { deliverNews() }
            // The daemon is away for too long, and comes back without its state. Open requests fail.
            let asked = calls.compactMap { call -> News? in
                if case .activate(let order) = call { .answered(.refused(order: order), nil) } else { nil }
            }
            (calls, news, atDaemon) = ([], [], .inactive)
            take(.daemonLost)
            news = asked
            if grant.sounds || startTime != nil || isLingering {
                // The client activates again.
                if refuses {
                    news.append(.told(.expelled, .inactive))
                    news.append(.told(.began(.default), .inactive))
                } else {
                    atDaemon = .active
                }
            }
        }
    }

    private mutating func deliverCall() {
        guard !calls.isEmpty else { return }
        switch calls.removeFirst() {
        case .activate(let order):
            // An active session is not refused.
            if refuses, atDaemon != .active {
                news.append(.answered(.refused(order: order), nil))
            } else {
                atDaemon = .active
                news.append(.answered(.granted(order: order, now: now), .active))
            }
        case .deactivate: atDaemon = .inactive
        }
    }

    private mutating func deliverNews() {
        guard !news.isEmpty else { return }
        switch news.removeFirst() {
        case .answered(let answer, let state):
            if state == .active, !calls.contains(where: { if case .deactivate = $0 { true } else { false } }) {
                isGranted = true
            }
            take(timed(answer))
        case .told(let input, let state):
            if let state { isGranted = state == .active }
            take(input)
        }
    }

    private func timed(_ answer: Grant.Input) -> Grant.Input {
        if case .granted(let order, _) = answer { .granted(order: order, now: now) } else { answer }
    }

    // MARK: The plugin

    private mutating func touch(_ input: Grant.Input, mayResume: Bool = false) {
        self.mayResume = mayResume
        take(input)
    }

    private mutating func take(_ input: Grant.Input) {
        let wasHeard = isPlaying || startTime != nil
        let (wasInterrupted, order) = (grant.interruption != nil, grant.order)
        let effects = grant.handle(input)
        steps.append((input, grant.state, effects))
        switch input {
        case .began(.routeDisconnected): mayResume = grant.resumesOnReplug && (wasHeard || mayResume)
        case .began: mayResume = wasHeard || grant.state == .interrupted(.init(resumes: true)) || mayResume
        case .deviceGone: mayResume = wasHeard && grant.resumesOnReplug
        case .refused(let answered): if answered == order, wasInterrupted { mayResume = true }
        case .ended(let shouldResume, _):
            if effects.contains(where: { if case .activate = $0 { true } else { false } }), !shouldResume || !mayResume
            {
                complain("it activates after an interruption without a should-resume hint")
            }
        case .granted(let answered, _):
            if answered != order, effects.contains(.start) { complain("a reply to an older request starts it") }
        default: break
        }
        carry(effects)
        if case .due = grant.state {} else { startTime = nil }
        if grant.state != .lingering { isLingering = false }
    }

    private mutating func carry(_ effects: [Grant.Effect]) {
        for effect in effects {
            switch effect {
            case .activate(let order): calls.append(.activate(order: order))
            case .deactivate:
                isGranted = false
                calls.append(.deactivate)
            case .start:
                starts += 1
                if !isGranted { complain("it starts without a grant") }
                isPlaying = Int.random(in: 0..<16, using: &dice) != 0
                if !isPlaying { take(.startFailed) }
            case .silence: isPlaying = false
            case .wait(let time): startTime = time
            case .linger: isLingering = true
            }
        }
    }

    // MARK: Checks

    private mutating func check() {
        if isPlaying, !isGranted { complain("it plays without a grant") }
        if isPlaying, !grant.sounds { complain("it plays, but its grant is \(grant.state)") }
    }

    /// Delivers everything. Then the daemon and the plugin must agree.
    private mutating func settle() {
        while complaints.isEmpty, !calls.isEmpty || !news.isEmpty || startTime != nil || isLingering {
            if !calls.isEmpty { deliverCall() }
            if !news.isEmpty { deliverNews() }
            if calls.isEmpty, news.isEmpty {
                now += 4
                tick()
            }
            check()
        }
        guard complaints.isEmpty else { return }
        if isPlaying, atDaemon != .active { complain("it plays, but at the daemon it is \(atDaemon)") }
        if !isPlaying, atDaemon == .active { complain("it is silent, \(grant.state), but still active at the daemon") }
        if case .asking = grant.state { complain("it waits for a reply that will not come") }
    }
}
