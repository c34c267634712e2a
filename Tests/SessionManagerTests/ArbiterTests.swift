import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Limits, numbers, refusals, repetition, the history and the explanations.
@Suite struct ArbiterTests {
    // MARK: Limits and numbers

    @Test func tooManySessions_areRefused() {
        var settings = Arbiter.Settings()
        settings.maxSessions = 3
        settings.maxSessionsPerClient = 2
        var world = World(settings: settings)
        func new(_ client: UInt64) -> Event { .create(NewSession(name: "n", client: ClientID(client))) }
        let first = world.create("first", client: 1)
        world.send(new(1))
        #expect(world.send(new(1)).refusal?.code == .resourceNotAvailable)
        world.send(new(2))
        #expect(world.send(new(3)).refusal?.code == .resourceNotAvailable)
        world.send(.close(first))
        #expect(world.send(new(1)).refusal == nil)
    }

    @Test func numbers_areNeverReused() {
        var world = World()
        var seen: Set<SessionID> = []
        for round in 0..<50 {
            let id = world.create("n", client: 1)
            #expect(seen.insert(id).inserted)
            if round.isMultiple(of: 3) { world.send(.close(id)) }
            if round.isMultiple(of: 7) { world.send(.clientVanished(ClientID(1))) }
        }
    }

    @Test func closedSession_everyRequestIsRefused() {
        var world = World()
        let id = world.player("music")
        world.send(.close(id))
        #expect(world.arbiter.isExpired(id))
        #expect(!world.arbiter.isExpired(SessionID(99)) && !world.arbiter.isExpired(SessionID(0)))
        let requests: [Event] = [
            .setCategory(id, .mixing), .activate(id), .deactivate(id, notifyOthers: true),
            .overrideOutput(id, .speaker), .setPreferredInput(id, uid: ""), .setPreferences(id, Preferences()),
            .close(id), .setForeground(id, false),
        ]
        for request in requests { #expect(world.send(request).refusal?.code == .expiredSession) }
    }

    // MARK: Refusals and repetition

    @Test func refusals_changeNothing() {
        var world = World()
        let call = world.create("call", .call, .voice)
        let music = world.player("music")
        let recorder = world.create("recorder", .app, .recording)
        world.activate(call)
        let before = world.arbiter
        let refused: [Event] = [
            .activate(recorder), .overrideOutput(music, .speaker), .overrideOutput(call, .speaker),
            .setPreferredInput(recorder, uid: "none such"), .setPreferredInput(music, uid: "microphone"),
            .activate(SessionID(77)),
        ]
        for event in refused {
            #expect(world.send(event).refusal != nil, "\(shortText(event))")
        }
        #expect(EffectChecker.observablyEqual(before, world.arbiter))
        #expect(world.arbiter.sequence == before.sequence + UInt64(refused.count))
    }

    @Test func overrideOutput_needsPlayAndRecordAndAServer() {
        var world = World()
        let music = world.create("music", .app, .music)
        let voice = world.create("voice", .app, .voice)
        #expect(world.send(.overrideOutput(music, .speaker)).refusal?.code == .incompatibleCategory)
        #expect(world.send(.overrideOutput(voice, .speaker)).refusal?.code == .mediaServicesFailed)
        world.send(.servicesReset(Hardware.plugged))
        #expect(world.send(.overrideOutput(voice, .speaker)).refusal == nil)
        #expect(world.arbiter.session(voice)?.override == .speaker)
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(world.arbiter.session(voice)?.override == OutputOverride.none)
    }

    @Test func preferredInput_isEmptyAfterItsPortIsRemoved() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let recorder = world.create("recorder", .app, .recording)
        #expect(world.send(.setPreferredInput(recorder, uid: "none such")).refusal?.code == .badParameter)
        #expect(world.send(.setPreferredInput(recorder, uid: "headset")).refusal == nil)
        #expect(world.arbiter.session(recorder)?.preferredInput == "headset")
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(world.arbiter.session(recorder)?.preferredInput == "")
    }

    /// "The same event twice yields no effects."
    @Test func sameEventTwice_secondHasNoEffects() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.create("music", .app, .music)
        let voice = world.create("voice", .app, .voice)
        var preferences = Preferences()
        preferences.sampleRate = 48_000
        let events: [Event] = [
            .setCategory(music, .podcast), .activate(music), .setForeground(music, false), .setSilentMode(true),
            .setScreenLocked(true), .overrideOutput(voice, .speaker), .setPreferredInput(voice, uid: "microphone"),
            .setPreferences(voice, preferences), .soundingChanged(Sounding(sessions: [music], others: true)),
            .microphoneMuted(true), .portsChanged(Hardware.unplugged), .servicesReset(Hardware.unplugged),
            .routeChanged(.newDeviceAvailable, Hardware.plugged), .deactivate(music, notifyOthers: true),
            .servicesLost, .clientVanished(ClientID(100)), .timePassed,
        ]
        for event in events {
            world.send(event)
            let sequence = world.arbiter.sequence
            let second = world.send(event)
            #expect(second.effects.isEmpty && second.refusal == nil, "\(shortText(event)) again: \(second.effects)")
            #expect(world.arbiter.sequence == sequence)
        }
    }

    /// Only §4 decides which session has the sound, not the devices. A microphone may be plugged in later.
    @Test func recorderWithoutInputHardware_becomesActive() {
        var world = World()
        world.send(.servicesReset(Audio(route: .none, inputs: [], outputs: [Hardware.speaker])))
        let recorder = world.create("recorder", .app, .recording)
        #expect(world.activate(recorder).refusal == nil)
    }

    @Test func servicesLostAndReset_nothingStartsByItself() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        #expect(world.send(.servicesLost).effects.first == .servicesLost)
        #expect(world.state(music) == .active)
        let decision = world.send(.servicesReset(Hardware.unplugged))
        #expect(decision.effects.first == .servicesReset)
        #expect(World.interruptions(decision).isEmpty)
    }

    @Test func serverChangesBetweenTwoDaemons_lossAndReturnAreReportedOnce() throws {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        func restarted(_ core: Arbiter) throws -> Arbiter {
            var memory = core.memory
            // The next daemon has not read the server yet.
            memory.audio = nil
            return try Arbiter(memory)
        }
        func tells(_ core: inout Arbiter, _ event: Event) -> [Effect] {
            core.handle(event, at: world.now).effects.filter { [.servicesLost, .servicesReset].contains($0) }
        }
        var same = try restarted(world.arbiter)
        #expect(tells(&same, .portsChanged(Hardware.plugged)) == [])
        var gone = try restarted(world.arbiter)
        #expect(tells(&gone, .servicesLost) == [.servicesLost])
        var still = try restarted(gone)
        #expect(tells(&still, .servicesLost) == [])
        #expect(tells(&still, .servicesReset(Hardware.plugged)) == [.servicesReset])
        var back = try restarted(gone)
        #expect(tells(&back, .portsChanged(Hardware.plugged)) == [.servicesReset])
        var absent = Arbiter()
        #expect(tells(&absent, .servicesLost) == [])
        back = try restarted(absent)
        #expect(tells(&back, .portsChanged(Hardware.plugged)) == [.servicesReset])
    }

    // MARK: History

    @Test func history_keepsTheNewestInOrder() {
        var world = World()
        var history = History(capacity: 4)
        let music = world.create("music", .app, .music)
        var sequences: [UInt64] = []
        for _ in 0..<5 {
            for decision in [world.activate(music), world.activate(music), world.leave(music)] {
                history.append(decision)
                if decision.isNoteworthy { sequences.append(decision.sequence) }
            }
        }
        #expect(history.latest(100).map(\.decision.sequence) == sequences.suffix(4))
        #expect(history.latest(2).map(\.decision.sequence) == sequences.suffix(2))
        #expect(history.latest(0).isEmpty && history.latest(-1).isEmpty)
        #expect(history.latest(1).first?.decision.event.name == "deactivate")
    }

    @Test func history_keepsRefusalsButNoEventsWithoutEffects() {
        var world = World()
        var history = History(capacity: 0)
        #expect(history.capacity == 1 && history.latest(1).isEmpty)
        history.append(world.send(.activate(SessionID(5))))
        history.append(world.send(.timePassed))
        #expect(history.latest(9).map(\.decision.refusal?.code) == [.expiredSession])
    }

    @Test func decision_hasItsSessionEvenWhenItCloses() {
        var world = World()
        let music = world.player("music")
        let decision = world.send(.close(music))
        #expect(decision.session == music && decision.name == "music")
    }

    // MARK: Explanations

    @Test func explain_namesTheRootCause() {
        var world = World()
        let a = world.player("first")
        let b = world.player("second")
        let call = world.create("mother", .call, .voice)
        world.pass(1)
        world.activate(call)
        let chain = world.arbiter.explain(a)
        #expect(chain.first?.cause == "interrupted")
        #expect(chain.first?.text.contains("second") == true)
        #expect(chain.contains { $0.text.contains("mother") })
        #expect(world.arbiter.explain(b).first?.since == world.now)
        #expect(world.arbiter.explain(call).first?.cause == "active")
        #expect(world.arbiter.explain(SessionID(99)).isEmpty)
    }

    @Test func explain_givesEachStateItsCause() {
        var world = World()
        let idle = world.create("idle")
        let music = world.player("music")
        world.player("ducker", .ducker)
        world.send(.setSilentMode(true))
        func causes(_ id: SessionID) -> [String] { world.arbiter.explain(id).map(\.cause) }
        #expect(causes(idle) == ["inactive", "muted"])
        #expect(causes(music) == ["active", "ducked"])
        let call = world.create("call", .call, .voice)
        world.activate(call)
        #expect(world.activate(idle).refusal != nil)
        #expect(causes(idle).contains("refused"))
        world.leave(call)
        #expect(causes(music) == ["claim"])
    }

    /// Random sessions: the explanation always ends, begins with the present state, and names every session that is
    /// waited for.
    @Test func explain_namesEverySessionThatIsWaitedFor() {
        var random = SplitMix64(seed: 42)
        var world = World()
        let configurations: [Configuration] = [.music, .podcast, .prompt, .mixing, .recording]
        let ids = (0..<12).map { number in
            world.create(
                "name \(number)!", number < 2 ? .call : .app, configurations.randomElement(using: &random)!)
        }
        for _ in 0..<400 {
            let id = ids.randomElement(using: &random)!
            if Int.random(in: 0..<3, using: &random) > 0 { world.activate(id) } else { world.leave(id) }
            world.pass(0.2)
            if let deadline = world.arbiter.nextDeadline, deadline <= world.now { world.send(.timePassed) }
            for session in world.arbiter.sessions where session.state == .interrupted {
                let chain = world.arbiter.explain(session.id)
                #expect(chain.first?.cause == "interrupted")
                #expect(chain.count <= 3 * ids.count)
                let texts = chain.filter { $0.cause == "waits-for" }.map(\.text)
                for owner in session.waitingFor {
                    let name = world.arbiter.session(owner)!.name
                    #expect(texts.contains { $0.contains(name) })
                }
            }
        }
    }
}
