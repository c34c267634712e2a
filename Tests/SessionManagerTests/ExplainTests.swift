import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Explains the state of a session from what was recorded when the state began.
@Suite struct ExplainTests {
    private func text(_ world: World, _ id: SessionID, _ cause: String) -> String {
        world.arbiter.explain(id, at: world.now).filter { $0.cause == cause }.map(\.text).joined(separator: " | ")
    }

    private func first(_ world: World, _ id: SessionID) -> Explanation? {
        world.arbiter.explain(id, at: world.now).first
    }

    @Test func interruptedByACall_explainsThatItWillResume_andWaitsForOthers() {
        var world = World()
        let music = world.player("Music")
        world.pass(1)
        let message = world.player("Message")
        let began = world.now
        world.pass(1)
        let phone = world.create("Phone", .call, .voice)
        world.activate(phone)
        let cause = first(world, music)
        #expect(cause?.rule == .matrix && cause?.since == began && cause?.by == message)
        #expect(
            cause?.text
                == "interrupted by Message; will be asked to resume when they end, if Message then "
                + "deactivates with notify-others; waits also for Phone (call)")
        #expect(first(world, message)?.text == "interrupted by Phone (call); will be asked to resume when it ends")
        #expect(first(world, message)?.rule == .classes)
        let chain = world.arbiter.explain(music)
        #expect(chain.map(\.cause) == ["interrupted", "waits-for", "interrupted", "waits-for"])
        #expect(chain.map(\.rule) == [.matrix, .matrix, .classes, .classes])
        #expect(chain.map(\.session) == [music, music, message, message])
    }

    @Test func sessionThatEndsWithoutNotify_isNamed() {
        var world = World()
        let music = world.player("Music")
        let message = world.player("Message")
        let phone = world.create("Phone", .call, .voice)
        world.activate(phone)
        world.pass(2)
        world.leave(message, notify: false)
        let left = world.now
        world.pass(2)
        #expect(
            first(world, music)?.text
                == "interrupted by Message, which has left; will not be asked to resume: Message left without "
                + "notify-others; waits for Phone (call)")
        let cause = world.arbiter.explain(music).first { $0.cause == "will-not-resume" }
        #expect(cause?.rule == .leftWhileWaiting && cause?.since == left && cause?.by == message)
        world.leave(phone)
        let claim = first(world, music)
        #expect(claim?.cause == "claim" && claim?.rule == .callEnded && claim?.since == world.now)
        #expect(claim?.until == world.now.advanced(bySeconds: 5))
        #expect(claim?.text.contains("not asked to resume: Message left without notify-others") == true)
    }

    @Test func expiredClaim_isNamed() {
        var world = World()
        let music = world.player("Music")
        let phone = world.create("Phone", .call, .voice)
        world.activate(phone)
        world.leave(phone)
        #expect(first(world, music)?.text.contains("it was asked to resume") == true)
        world.pass(9)
        world.expire()
        #expect(first(world, music)?.rule == .grace && first(world, music)?.since == world.now)
        #expect(text(world, music, "inactive") == "it did not come back within 5 s after its interruption ended")
    }

    @Test func disconnectedSession_isNamed() {
        var world = World()
        let music = world.player("Music")
        let phone = world.create("Phone", .call, .voice)
        let gone = world.create("Gone", .app, .music, client: 77)
        world.activate(gone)
        world.activate(phone)
        world.send(.clientVanished(ClientID(77)))
        #expect(text(world, music, "will-not-resume").contains("Gone disconnected without notify-on-exit"))
        #expect(world.arbiter.explain(music).first { $0.cause == "will-not-resume" }?.rule == .vanished)
    }

    @Test func longInterruption_namesMaxAge() {
        var settings = Arbiter.Settings()
        settings.maxAge = 10
        var world = World(settings: settings)
        let music = world.player("Music")
        let phone = world.create("Phone", .call, .voice)
        world.activate(phone)
        #expect(first(world, music)?.text.hasSuffix("when it ends and it lasts no longer than 10 s") == true)
        world.pass(11)
        #expect(first(world, music)?.text.contains("it lasted longer than 10 s (max-age)") == true)
        world.leave(phone)
        #expect(text(world, music, "claim").contains("it lasted longer than 10 s (max-age)"))
    }

    @Test func duckedSession_namesTheDuckersAndTheTime() {
        var world = World()
        let music = world.player("Music", .mixing)
        world.pass(1)
        let first = world.player("First", .ducker)
        let lowered = world.now
        world.pass(1)
        world.player("Second", .ducker)
        var cause = world.arbiter.explain(music).first { $0.cause == "ducked" }
        #expect(cause?.since == lowered && cause?.by == first && cause?.rule == .matrix)
        #expect(cause?.text == "ducked by 12 dB while First, Second plays")
        world.pass(1)
        world.leave(first)
        cause = world.arbiter.explain(music).first { $0.cause == "ducked" }
        #expect(cause?.since == lowered)
        #expect(cause?.text == "ducked by 12 dB while Second plays; First ducked it first")
    }

    @Test func silentSwitchAndLock_haveTheTimeOfTheFirst() {
        var world = World()
        let game = world.player("Game", .ambient)
        world.pass(1)
        world.send(.setScreenLocked(true))
        let muted = world.now
        world.pass(1)
        world.send(.setSilentMode(true))
        let cause = world.arbiter.explain(game).first { $0.cause == "muted" }
        #expect(cause?.since == muted && cause?.rule == .silentSwitch)
        #expect(cause?.text == "muted: the silent switch is on and the screen is locked, and 'ambient' is affected")
    }

    @Test func missingPort_isNamedWithItsTime_alsoAfterARestart() throws {
        var world = RouteTests.world([Hardware.speaker], [Hardware.microphone])
        let memo = world.player("Memo", .recording)
        #expect(text(world, memo, "lacks-route") == "")
        world.pass(1)
        world.send(.routeChanged(.oldDeviceUnavailable, RouteTests.audio([Hardware.speaker])))
        let gone = world.now
        world.pass(1)
        world.send(.portsChanged(RouteTests.audio([Hardware.speaker, Hardware.headphones])))
        let cause = world.arbiter.explain(memo).first { $0.cause == "lacks-route" }
        #expect(cause?.since == gone && cause?.rule == .route)
        #expect(cause?.text == "there is no input that 'record' may use; connect one")
        #expect(try Arbiter(world.arbiter.memory).explain(memo).contains { $0 == cause })
        world.send(.routeChanged(.newDeviceAvailable, RouteTests.audio([Hardware.speaker], [Hardware.microphone])))
        #expect(text(world, memo, "lacks-route") == "")
        world.send(.routeChanged(.oldDeviceUnavailable, RouteTests.audio([], [])))
        world.send(.setCategory(memo, .voice))
        #expect(
            text(world, memo, "lacks-route")
                == "there is no input and no output that 'play-and-record' may use; connect one")
        world.leave(memo)
        #expect(text(world, memo, "lacks-route") == "")
    }

    @Test func refusal_isExplainedUntilARequestSucceeds() {
        var world = World()
        let phone = world.create("Phone", .call, .voice)
        let memo = world.create("Memo", .app, .recording)
        world.activate(phone)
        world.pass(3)
        let decision = world.activate(memo)
        #expect(decision.rule == .matrix)
        world.send(.overrideOutput(memo, .speaker))
        var cause = world.arbiter.explain(memo).first { $0.cause == "refused" }
        #expect(cause?.error?.code == .incompatibleCategory && cause?.rule == .route)
        world.activate(memo)
        cause = world.arbiter.explain(memo).first { $0.cause == "refused" }
        #expect(cause?.error?.code == .insufficientPriority && cause?.since == world.now && cause?.by == phone)
        #expect(cause?.text.hasPrefix("its last Activate was refused with InsufficientPriority: ") == true)
        world.leave(phone)
        world.activate(memo)
        #expect(text(world, memo, "refused") == "")
    }

    @Test func mutedMicrophone_isNamedWithItsRemedy() {
        var world = World()
        let memo = world.player("Memo", .recording)
        world.send(.microphoneMuted(true))
        #expect(
            text(world, memo, "interrupted")
                == "paused: the microphone is muted; will be asked to resume when it is unmuted")
        #expect(first(world, memo)?.rule == .microphone)
    }

    @Test func takingBack_isR9ForBothSessions() {
        var world = World()
        let a = world.player("A")
        let b = world.player("B")
        let decision = world.activate(a)
        #expect(decision.rule == .takesBack)
        #expect(first(world, b)?.rule == .takesBack && first(world, a)?.rule == .takesBack)
    }

    @Test func givingUpTheClaim_isR12() {
        var world = World()
        let a = world.player("A")
        let b = world.player("B")
        let decision = world.leave(a)
        #expect(decision.effects.contains(.claimDropped(a, rule: .givesUp)))
        #expect(first(world, a)?.rule == .givesUp && first(world, a)?.text == "it gave up its claim")
        #expect(first(world, b)?.cause == "active")
    }

    /// In every state, exactly one cause comes first, and it is as old as the state.
    @Test func everyTransition_hasItsCause() {
        var random = SplitMix64(seed: 7)
        var world = World()
        let configurations: [Configuration] = [.music, .podcast, .prompt, .mixing, .recording, .ducker, .ambient]
        let ids = (0..<8).map { number in
            world.create("n\(number)", number < 2 ? .call : .app, configurations.randomElement(using: &random)!)
        }
        let states = ["active", "interrupted", "claim", "inactive"]
        for _ in 0..<1500 {
            let id = ids.randomElement(using: &random)!
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<4: world.activate(id)
            case 4, 5: world.leave(id, notify: Bool.random(using: &random))
            case 6: world.send(.setSilentMode(Bool.random(using: &random)))
            default: world.send(.setCategory(id, configurations.randomElement(using: &random)!))
            }
            world.pass(Double.random(in: 0...3, using: &random))
            if let deadline = world.arbiter.nextDeadline, deadline <= world.now { world.send(.timePassed) }
            for session in world.arbiter.sessions {
                let chain = world.arbiter.explain(session.id, at: world.now)
                #expect(states.contains(chain.first?.cause ?? ""))
                #expect(chain.filter { $0.session == session.id && states.contains($0.cause) }.count == 1)
                #expect(chain.contains { $0.cause == "ducked" } == session.isDucked)
                #expect(chain.contains { $0.cause == "muted" } == session.isMuted)
                if session.claimExpires == nil || session.state != .inactive {
                    #expect(chain.first?.cause == "inactive" || chain.first?.since == session.since)
                }
                #expect(!chain.contains { $0.text.contains("somebody") })
            }
        }
    }

    /// The explanation of an adopted program does not say that the program asked for anything.
    @Test func adoptedProgram_playsAndStopsInsteadOfRequesting() {
        var world = World()
        let music = world.player("Music")
        var chain = world.arbiter.explain(music, adopted: "why")
        #expect(chain.map(\.cause) == ["active", "adopted"])
        #expect(chain.map(\.text) == ["its program began to play", "why"])
        world.leave(music)
        chain = world.arbiter.explain(music, adopted: "why")
        #expect(chain.map(\.cause) == ["inactive", "adopted"])
        #expect(chain.first?.text == "its program stopped playing")
        #expect(world.arbiter.explain(music).map(\.text) == ["it deactivated itself"])
    }
}
