import Glibc
import Processes
import Supervision
import Testing

@testable import ReferenceModel

@Suite struct PluginLifeTests {
    private static let own: Int32 = 7
    private static let place = PluginLife.Registration(busName: ":1.7", path: "/plugin", isBusy: false)
    private static let busy = PluginLife.Registration(busName: ":1.7", path: "/plugin", isBusy: true)
    private static let second: UInt64 = 1_000_000

    private typealias Input = @Sendable (inout PluginLife) -> [PluginLife.Action]

    private static let states: [(letter: Character, inputs: [Input])] = [
        ("E", []),
        ("S", [start]),
        ("R", [start, register]),
        ("B", [start, registerBusy]),
        ("F", [register]),
        ("A", [start, register, leave]),
        ("W", [start, registerBusy, leave]),
        ("X", [start, expire]),
        ("T", [start, register, leave, open]),
        ("K", [start, register, leave, open, expire]),
        ("G", [start, register, leave, open, exit]),
        ("C", [start, crash]),
    ]

    private static let start: Input = { $0.started(own, at: 0) }
    private static let register: Input = { $0.registered(place, at: 0) }
    private static let registerBusy: Input = { $0.registered(busy, at: 0) }
    private static let leave: Input = { $0.leftBus() }
    private static let exit: Input = { $0.exited(.exited(code: 0), at: 0) }
    private static let crash: Input = { $0.exited(.killed(signal: SIGSEGV), at: 0) }
    private static let expire: Input = { $0.timePassed(at: 60 * second, isBusy: false) }
    private static let open: Input = { life in
        if case .wait(let actions) = life.open(at: 0) { actions } else { [] }
    }

    private static let inputs: [(name: String, input: Input)] = [
        ("opened", open),
        ("registers", register),
        ("registers as busy", registerBusy),
        ("wrong version", { $0.registeredWrongly(version: 7) }),
        ("leaves the bus", leave),
        ("exits", exit),
        ("fails", { $0.exited(.exited(code: 1), at: 0) }),
        ("crashes", crash),
        ("is killed", { $0.exited(.killed(signal: SIGKILL), at: 0) }),
        ("is suspended", { $0.exited(.stopped(signal: SIGSTOP), at: 0) }),
        ("group ended", { $0.groupEnded(own) }),
        ("another group", { $0.groupEnded(9) }),
        ("time passed", expire),
    ]

    /// Ended, Starting, Running, Busy, Foreign (not started here), Astray, astray and Was busy, astray because it did not
    /// register (X), asked To end, Killed, its Group remains, Crashed. Actions: announce (a), serve (s), refuse (r), end (e),
    /// kill (k), end the group (g; h: which was asked), start soon (b), start if awaited (w). A dot means that nothing
    /// changes. A client that opens it must start it, is served, or waits. A registration to which there is an objection is refused (!).
    private static let table = """
                          | E     S     R     B     F     A     W     X     T     K     G     C
        opened            | start wait  serve serve serve Tea   Tea   Tea   wait  wait  wait  start
        registers         | Fas   Ras   .     R     .     Ras   Ras   Ras   !     !     !     Fas
        registers as busy | Fas   Bas   B     .     .     Bas   Bas   Bas   !     !     !     Fas
        wrong version     | .     Xear  .     .     .     .     .     .     .     .     .     .
        leaves the bus    | .     .     Aa    Wa    Ea    .     .     .     .     .     .     .
        exits             | .     Egar  Egar  Egar  .     Egr   Egr   Cg    Gh    Gh    .     .
        fails             | .     Cgar  Cgar  Cgarb .     Cgar  Cgarb Cg    Gh    Gh    .     .
        crashes           | .     Cgar  Cgar  Cgarb .     Cgar  Cgarb Cg    Gh    Gh    .     .
        is killed         | .     Cgar  Cgar  Cgarb .     Cgar  Cgarb Cg    Gh    Gh    .     .
        is suspended      | .     .     .     .     .     .     .     .     .     .     .     .
        group ended       | .     .     .     .     .     .     .     .     .     .     Eaw   .
        another group     | .     .     .     .     .     .     .     .     .     .     .     .
        time passed       | .     Xkar  Tea   .     .     .     .     .     Kk    .     .     .
        """

    private static func letter(_ life: PluginLife) -> Character {
        let deadline = life.nextDeadline != nil
        switch life.state {
        case .starting: return "S"
        case .running where life.process == nil: return "F"
        case .running: return life.registration?.isBusy == true ? "B" : "R"
        case .stopping: return life.process == nil ? "G" : deadline ? "T" : "K"
        case .crashed: return life.process == nil ? "C" : "X"
        case .stopped where life.process == nil: return "E"
        case .stopped:
            // Only its crash shows whether it was busy.
            var later = life
            return later.exited(.killed(signal: SIGKILL), at: 0).contains(.startSoon) ? "W" : "A"
        }
    }

    private static func letter(_ action: PluginLife.Action) -> Character {
        switch action {
        case .announce: "a"
        case .serve: "s"
        case .refuse: "r"
        case .end: "e"
        case .kill: "k"
        case .endGroup(_, let wasAsked): wasAsked ? "h" : "g"
        case .startSoon: "b"
        case .startIfAwaited: "w"
        }
    }

    @Test func everyInputInEveryState_agreesWithTheTable() {
        var table = TransitionTable(Self.states.map(\.letter), nameWidth: 17, cellWidth: 6)
        for (name, input) in Self.inputs {
            let cells = Self.states.map { state -> String in
                var life = PluginLife()
                life.idleTimeout = 1
                for input in state.inputs { _ = input(&life) }
                #expect(Self.letter(life) == state.letter)
                if name == "opened" {
                    switch life.open(at: 0) {
                    case .start: return "start"
                    case .served: return "serve"
                    case .wait(let actions):
                        return actions.isEmpty ? "wait" : String(Self.letter(life)) + String(actions.map(Self.letter))
                    }
                }
                if name.hasPrefix("registers"), life.objection(to: Self.place.busName) != nil { return "!" }
                let actions = input(&life)
                let isNothing = actions.isEmpty && Self.letter(life) == state.letter
                return isNothing ? "." : String(Self.letter(life)) + String(actions.map(Self.letter))
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\(table.text)")
    }

    @Test func idlePlugin_isEndedAfterItsTime() {
        var life = PluginLife()
        life.idleTimeout = 2
        _ = Self.start(&life)
        _ = life.registered(Self.place, at: 0)
        life.used(by: ":1.9", at: 0)
        #expect(life.nextDeadline == nil)
        life.left(by: ":1.9", at: Self.second)
        #expect(life.nextDeadline == 3 * Self.second)
        // Another client comes and goes: the time begins again.
        life.used(by: ":1.8", at: 2 * Self.second)
        life.left(by: ":1.8", at: 2 * Self.second)
        #expect(life.nextDeadline == 4 * Self.second)
        #expect(life.timePassed(at: 3 * Self.second, isBusy: false) == [])
        // One of its sessions is active.
        #expect(life.timePassed(at: 4 * Self.second, isBusy: true) == [])
        #expect(life.nextDeadline == 6 * Self.second)
        #expect(life.registered(Self.busy, at: 5 * Self.second) == [])
        #expect(life.nextDeadline == nil)
        #expect(life.registered(Self.place, at: 6 * Self.second) == [])
        let ended = life.timePassed(at: 8 * Self.second, isBusy: false)
        #expect(ended == [.end(Self.own, "is idle"), .announce(.stopping, "")])
    }

    @Test func pluginThatWasNotStartedHere_isNeverEnded() {
        var life = PluginLife()
        life.idleTimeout = 2
        _ = life.registered(Self.place, at: 0)
        life.used(by: ":1.9", at: 0)
        life.left(by: ":1.9", at: 0)
        #expect(life.nextDeadline == nil)
        #expect(life.objection(to: ":1.8") == .isTaken(by: ":1.7"))
        #expect(life.leftBus() == [.announce(.stopped, "")])
        #expect(life.isBlank)
    }

    @Test func threeCrashesInHalfAMinute_areTooMany() {
        var life = PluginLife()
        for crash in 0..<3 as Range<UInt64> {
            #expect(life.crashCount(at: crash) == nil)
            _ = life.started(Self.own, at: crash)
            let failed = life.exited(.exited(code: 1), at: crash)
            #expect(failed.last == .refuse("exited with 1"))
        }
        #expect(life.crashCount(at: 3) == 3)
        #expect(life.crashCount(at: 30 * Self.second + 1) == nil)
        #expect(!life.isBlank, "two of them still count")
    }

    /// A program that does not register is one crash, whether it ends before the plugin is opened again or later.
    @Test func programThatDoesNotRegister_isOneCrash() {
        for isOpened in [true, false] {
            var life = PluginLife()
            _ = Self.start(&life)
            let failed = life.timePassed(at: 10 * Self.second, isBusy: false)
            #expect(failed.contains(.announce(.crashed, "did not register within 10.0 s")))
            if isOpened { _ = Self.open(&life) }
            _ = life.exited(.killed(signal: SIGKILL), at: 11 * Self.second)
            _ = life.groupEnded(Self.own)
            for _ in 0..<2 {
                #expect(life.crashCount(at: 12 * Self.second) == nil)
                _ = Self.start(&life)
                _ = life.exited(.exited(code: 1), at: 12 * Self.second)
            }
            #expect(life.crashCount(at: 12 * Self.second) == 3)
        }
    }

    @Test func randomRuns_haveOneProcess_andAnswerEverybody() {
        var starts = 0
        for seed in 1...400 as ClosedRange<UInt64> {
            var world = PluginWorld(seed: seed)
            world.run(steps: 200)
            starts += world.startCount
            guard world.faults.isEmpty else {
                Issue.record("seed \(seed): \(world.faults.joined(separator: "; "))")
                return
            }
        }
        #expect(starts > 3_000, "the runs hardly ever start the program")
    }
}

/// A program that registers late or not at all, leaves the bus, crashes, or does not react to SIGTERM, and its clients.
private struct PluginWorld {
    private var random: SplitMix64
    private var life = PluginLife()
    private var now: UInt64 = 0
    private var nextProcess: Int32 = 1
    /// The process that runs.
    private var process: Int32?
    private var isOnBus = false
    private var wasAsked = false
    /// Since when clients wait.
    private var waiting: [UInt64] = []
    private var users: Set<String> = []
    private var groups: [Int32] = []
    private var announced: PluginLife.Action?
    private(set) var startCount = 0
    private(set) var faults: [String] = []

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        life.idleTimeout = 3
    }

    mutating func run(steps: Int) {
        for _ in 0..<steps where faults.isEmpty {
            act()
            check()
        }
        // Everybody leaves; whatever runs is busy no more.
        for _ in 0..<40 where faults.isEmpty {
            for user in users { life.left(by: user, at: now) }
            users = []
            register(isBusy: false)
            if let process, !wasAsked, !isOnBus { exit(process, .exited(code: 0)) }
            pass(2)
            check()
        }
        if process != nil { faults.append("an idle program is not ended") }
        if !waiting.isEmpty { faults.append("a client is not answered") }
    }

    private mutating func act() {
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: open()
        case 2:
            if let user = users.randomElement(using: &random) {
                users.remove(user)
                life.left(by: user, at: now)
            }
        case 3, 4: register(isBusy: Int.random(in: 0..<4, using: &random) == 0)
        case 5:
            guard isOnBus else { return }
            isOnBus = false
            perform(life.leftBus())
        case 6:
            guard let process else { return }
            let code = Int32.random(in: 0...1, using: &random)
            exit(process, Bool.random(using: &random) ? .exited(code: code) : .killed(signal: SIGSEGV))
        case 7:
            // A program that was asked to end does so.
            if let process, wasAsked { exit(process, .killed(signal: SIGTERM)) }
        case 8: endGroups()
        default: pass(Double.random(in: 0...12, using: &random))
        }
    }

    private mutating func open() {
        switch life.open(at: now) {
        case .served:
            if !isOnBus { faults.append("served by nobody") }
            use()
        case .start: if life.crashCount(at: now) == nil { start(isAwaited: true) }
        case .wait(let actions):
            waiting.append(now)
            perform(actions)
        }
    }

    private mutating func use() {
        let user = ":\(Int.random(in: 0..<5, using: &random))"
        users.insert(user)
        life.used(by: user, at: now)
    }

    private mutating func start(isAwaited: Bool) {
        if process != nil { faults.append("there are two processes") }
        startCount += 1
        process = nextProcess
        (isOnBus, wasAsked) = (false, false)
        nextProcess += 1
        if isAwaited { waiting.append(now) }
        perform(life.started(nextProcess - 1, at: now))
    }

    private mutating func register(isBusy: Bool) {
        guard process != nil, life.objection(to: ":own") == nil else { return }
        isOnBus = true
        perform(
            life.registered(PluginLife.Registration(busName: ":own", path: "/", isBusy: isBusy), at: now))
    }

    private mutating func exit(_ process: Int32, _ change: ChildChange) {
        self.process = nil
        isOnBus = false
        perform(life.exited(change, at: now))
    }

    private mutating func pass(_ seconds: Double) {
        let end = now + UInt64(seconds * 1_000_000)
        for _ in 0..<100 {
            guard let due = life.nextDeadline, due <= end else {
                now = end
                endGroups()
                return
            }
            now = max(now, due)
            perform(life.timePassed(at: now, isBusy: Int.random(in: 0..<4, using: &random) == 0))
        }
        faults.append("there is always another deadline")
    }

    private mutating func endGroups() {
        let ended = groups
        groups = []
        for group in ended { perform(life.groupEnded(group)) }
    }

    private mutating func perform(_ actions: [PluginLife.Action]) {
        for action in actions {
            switch action {
            case .announce(let state, let message):
                if announced == action { faults.append("\(state) is announced twice") }
                announced = action
                if (state == .crashed) == message.isEmpty { faults.append("\(state) with the message '\(message)'") }
            case .serve:
                if !isOnBus { faults.append("served by nobody") }
                for _ in waiting { use() }
                waiting = []
            case .refuse: waiting = []
            case .end(let process, _):
                if process != self.process { faults.append("another process is ended") }
                (wasAsked, isOnBus) = (true, false)
            case .kill(let process):
                guard process == self.process else {
                    faults.append("another process is killed")
                    continue
                }
                exit(process, .killed(signal: SIGKILL))
            case .endGroup(let group, _): groups.append(group)
            case .startSoon: if life.process == nil, life.crashCount(at: now) == nil { start(isAwaited: false) }
            case .startIfAwaited:
                guard !waiting.isEmpty else { continue }
                if life.crashCount(at: now) == nil { start(isAwaited: false) } else { waiting = [] }
            }
        }
    }

    private mutating func check() {
        if life.process != process { faults.append("process \(String(describing: process)) is unknown") }
        if (life.registration != nil) != isOnBus { faults.append("on the bus: \(isOnBus)") }
        // Five seconds to end and ten to register, and as long as a step for the programs of a script.
        if let oldest = waiting.first, now > oldest + 40_000_000 { faults.append("a client waits") }
    }
}
