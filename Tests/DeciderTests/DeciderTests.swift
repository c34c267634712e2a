import Enforcement
import MediaControl
import PluginAPI
import Routing
import SessionManager
import Testing

@testable import Decider
@testable import Scenario

/// Tests what scenarios cannot show: the order of actions, and what the history keeps of them.
@Suite struct DeciderTests {
    private static func configuration(_ category: PluginAPI.Category) throws -> Configuration {
        try Configuration(category: category)
    }

    private static func session(_ name: String, _ sessionClass: SessionClass = .app) throws -> Event {
        .create(try new(name, sessionClass))
    }

    private static func new(_ name: String, _ sessionClass: SessionClass = .app) throws -> NewSession {
        NewSession(
            name: name, client: ClientID(1), sessionClass: sessionClass, configuration: try configuration(.playback),
            notifiesOnExit: true)
    }

    private static func port(_ uid: String, _ type: PortType) -> PluginAPI.Port {
        PluginAPI.Port(type: type, name: uid, uid: uid, channels: 2)
    }

    private static func actions(_ decider: inout Decider, _ fact: Fact, _ view: Routing.View = Routing.View())
        -> [Action]
    {
        decider.submit(fact)
        var actions: [Action] = []
        while let action = decider.next(at: Instant(microseconds: 1_000_000), view: { view }) { actions.append(action) }
        return actions
    }

    /// The server needs time for the first hold, so it is prepared before the session becomes active.
    @Test(arguments: SessionClass.allCases, [Settings.Enforcement.Mode.full, .cooperative])
    func sessionMayInterruptAll_holdIsPreparedIfStreamsAreHeld(
        _ sessionClass: SessionClass, _ mode: Settings.Enforcement.Mode
    ) throws {
        var settings = Settings()
        settings.enforcement.mode = mode
        var decider = Decider(settings)
        let member = Member(process: 100, user: nil, desktopEntry: "")
        let actions = Self.actions(&decider, .create(try Self.new("new", sessionClass), member))
        let isPrepared = if case .prepareHold? = actions.dropFirst().first { true } else { false }
        #expect(isPrepared == (sessionClass != .app && mode == .full))
    }

    /// A history with the times of the facts alone can be replayed.
    @Test func actionsTakeTime_allDecisionsOfAFactHaveItsTime() throws {
        var decider = Decider(Settings())
        let player = Program(key: .process(70), name: "Player", names: ["player"])
        var seen = StreamsSeen()
        seen.isConnected = true
        seen.streams = [
            StreamFacts(
                stream: AudioStream(
                    id: AudioStream.ID(.playback, 1), processID: 70, isProcessVouched: true,
                    applicationName: "Player", deviceName: "output", portUID: "output", portName: "",
                    volume: [AudioStream.fullVolume]),
                ancestry: [70], sandbox: nil, program: player)
        ]
        func decisions(_ fact: Fact, from start: UInt64) -> [Decision] {
            decider.submit(fact)
            var now = start
            var decisions: [Decision] = []
            while let action = decider.next(at: Instant(microseconds: now), view: { Routing.View() }) {
                if case .decided(let decision) = action { decisions.append(decision) }
                now += 300_000
            }
            return decisions
        }
        let first = decisions(.streams(seen), from: 1_000_000)
        #expect(first.map(\.event.name).starts(with: ["create", "activate"]), "\(first.map(\.event.name))")
        #expect(first.allSatisfy { $0.time == Instant(microseconds: 1_000_000) })
        let second = decisions(.request(try Self.session("new")), from: 9_000_000)
        #expect(!second.isEmpty && second.allSatisfy { $0.time == Instant(microseconds: 9_000_000) })
    }

    @Test func processOfASessionIsRead_isAFactThatIsHandledInItsTurn() throws {
        var decider = Decider(Settings())
        _ = Self.actions(
            &decider, .create(try Self.new("new"), Member(process: 100, user: nil, desktopEntry: "")))
        let id = try #require(decider.arbiter.sessions.first?.id)
        decider.submit(.application(id, "org.example.App"))
        #expect(decider.members[id]?.application == nil)
        let actions = Self.actions(&decider, .ancestry(id, [100, 1]))
        #expect(actions.isEmpty)
        #expect(decider.members[id]?.application == "org.example.App")
        #expect(decider.members[id]?.ancestry == [100, 1])
        _ = Self.actions(&decider, .processEnded(id))
        #expect(decider.members[id]?.process == 0)
        // The session closed while its process was read.
        _ = Self.actions(&decider, .request(.close(id)))
        _ = Self.actions(&decider, .application(id, "org.example.App"))
        #expect(decider.members[id] == nil)
    }

    @Test func requestDuringAnUnfinishedRouteChange_theChangeIsDecidedFirst() throws {
        var decider = Decider(Settings())
        var view = Routing.View()
        view.isConnected = true
        let (phones, speaker, usb) = (
            Self.port("phones", .headphones), Self.port("speaker", .speaker), Self.port("usb", .usbAudio)
        )
        view.audio = Audio(route: Route(inputs: [], outputs: [phones]), inputs: [], outputs: [speaker, usb, phones])
        _ = Self.actions(&decider, .server(.servicesReset), view)
        view.audio = Audio(route: Route(inputs: [], outputs: [speaker]), inputs: [], outputs: [speaker, usb])
        let lost = Self.actions(
            &decider,
            .server(.routeChanged(.oldDeviceUnavailable, previous: Route(inputs: [], outputs: [phones]))), view)
        // The server selected the speaker by itself, and the decider asks for the newer device. The change is not final
        // yet.
        #expect(lost.contains { if case .ask(.output("usb", _), _) = $0 { true } else { false } })
        #expect(!lost.contains { if case .decided = $0 { true } else { false } })
        let events = Self.actions(&decider, .request(try Self.session("app")), view).compactMap { action -> String? in
            if case .decided(let decision) = action { decision.event.name } else { nil }
        }
        #expect(events == ["route-changed", "create"])
    }

    /// The server has not carried out the request for the other output yet.
    @Test func outputIsBackBeforeItsLossIsReported_isRequestedAgain() {
        var decider = Decider(Settings())
        let (speaker, usb, phones) = (
            Self.port("speaker", .speaker), Self.port("usb", .usbAudio), Self.port("phones", .headphones)
        )
        var view = Routing.View()
        view.isConnected = true
        func route(_ port: PluginAPI.Port, of outputs: [PluginAPI.Port]) -> Route {
            let before = view.audio.route
            view.audio = Audio(route: Route(inputs: [], outputs: [port]), inputs: [], outputs: outputs)
            return before
        }
        func asked(_ fact: Routing.Fact) -> [String] {
            Self.actions(&decider, .server(fact), view).compactMap { action in
                if case .ask(.output(let uid, _), _) = action { uid } else { nil }
            }
        }
        _ = route(phones, of: [speaker, usb, phones])
        #expect(asked(.servicesReset) == [])
        let lost = route(speaker, of: [speaker, usb])
        #expect(asked(.routeChanged(.oldDeviceUnavailable, previous: lost)) == ["usb"])
        let back = route(phones, of: [speaker, usb, phones])
        #expect(asked(.routeChanged(.newDeviceAvailable, previous: back)) == ["phones"])
    }

    @Test func facts_areHandledInTheirOrder() throws {
        var decider = Decider(Settings())
        decider.submit(.event(try Self.session("one")))
        decider.submit(.event(.setSilentMode(true)))
        decider.submit(.event(.activate(SessionID(1))))
        var events: [String] = []
        while let action = decider.next(at: Instant(microseconds: 1), view: { Routing.View() }) {
            if case .decided(let decision) = action { events.append(decision.event.name) }
        }
        #expect(events == ["create", "set-silent-mode", "activate"])
    }

    @Test func requestToTheServer_isInTheHistoryWithItsDecision_andExplained() throws {
        var run = Run(
            try Scenario(
                """
                program player "Music player"
                session phone "Phone" playback class=call
                stream music of player
                activate phone
                wait 1
                expect stream music held
                """, file: "test"))
        run.perform()
        #expect(run.failures == [])
        let entries = run.decider.history.latest(100)
        let held = try #require(entries.first { !$0.requests.isEmpty && $0.decision.event.name == "activate" })
        #expect(held.requests.map(\.name) == ["hold-stream"])
        let player = try #require(run.core.sessions.first { $0.name == "Music player" })
        #expect(held.requests.first?.session == player.id)
        #expect(held.requests.first?.fields.first == .init("program", .text("Music player")))
        let causes = run.decider.explain(player.id, at: Instant(microseconds: 1_000_000)).map(\.cause)
        #expect(causes.contains("stream-silenced") && causes.contains("adopted"))
    }

    @Test func refusedActivationOfAnAdoptedProgram_isTriedOnce() throws {
        var decider = Decider(Settings())
        _ = Self.actions(&decider, .event(try Self.session("alarm", .alert)))
        _ = Self.actions(&decider, .event(.activate(SessionID(1))))
        var server = SimulatedServer()
        server.add("player", SimulatedServer.App(name: "player", process: 7, executable: "", sandbox: ""))
        server.begin(
            "music", SimulatedServer.Beginning(program: "player", isRecording: false, role: nil, title: ""))
        _ = Self.actions(&decider, .streams(server.seen))
        server.begin(
            "more", SimulatedServer.Beginning(program: "player", isRecording: false, role: nil, title: ""))
        let refused = Self.actions(&decider, .streams(server.seen)).count { action in
            if case .decided(let decision) = action { decision.refusal != nil } else { false }
        }
        #expect(refused <= 1)
    }

    /// It is tried again when there are fewer sessions.
    @Test func refusedAdoption_isTriedOnce() throws {
        var settings = Settings()
        settings.limits.sessions = 1
        settings.adoption.streams = .all
        var decider = Decider(settings)
        _ = Self.actions(&decider, .settings(settings))
        _ = Self.actions(&decider, .create(try Self.new("app"), Member(process: 5, user: 0, desktopEntry: "")))
        var server = SimulatedServer()
        func decisions(_ stream: String?) -> [Decision] {
            if let stream {
                server.add(stream, SimulatedServer.App(name: stream, process: 7, executable: "", sandbox: ""))
                server.begin(
                    stream, SimulatedServer.Beginning(program: stream, isRecording: false, role: nil, title: ""))
            }
            return Self.actions(&decider, .streams(server.seen)).compactMap { action in
                if case .decided(let decision) = action { decision } else { nil }
            }
        }
        #expect(decisions("music").filter { $0.event.name == "create" }.count == 1)
        #expect(decisions(nil).isEmpty)
        _ = Self.actions(&decider, .event(.close(SessionID(1))))
        let after = decisions(nil)
        #expect(after.filter { $0.created != nil }.count == 1)
        #expect(decisions(nil).isEmpty)
    }

    /// The numbers of streams belong to one run of the server.
    @Test func serverIsLost_noStreamIsExplainedAsSilenced() throws {
        var decider = Decider(Settings())
        var server = SimulatedServer()
        server.add("player", SimulatedServer.App(name: "player", process: 7, executable: "", sandbox: ""))
        let music = SimulatedServer.Beginning(program: "player", isRecording: false, role: nil, title: "")
        server.begin("music", music)
        _ = Self.actions(&decider, .streams(server.seen))
        let player = try #require(decider.members.keys.first)
        func isSilenced() -> Bool {
            decider.explain(player, at: Instant(microseconds: 1_000_000)).map(\.cause).contains("stream-silenced")
        }
        _ = Self.actions(&decider, .event(try Self.session("call", .call)))
        let call = try #require(decider.arbiter.sessions.first { $0.sessionClass == .call }?.id)
        _ = Self.actions(&decider, .event(.activate(call)))
        _ = Self.actions(&decider, .streams(server.seen))
        #expect(isSilenced())
        _ = Self.actions(&decider, .streamsForgotten)
        _ = Self.actions(&decider, .event(.deactivate(call, notifyOthers: true)))
        _ = Self.actions(&decider, .streams(server.seen))
        #expect(!isSilenced())
    }

    @Test func closedSession_leavesNothingBehind() throws {
        var decider = Decider(Settings())
        _ = Self.actions(&decider, .create(try Self.new("app"), Member(process: 5, user: 0, desktopEntry: "")))
        _ = Self.actions(&decider, .event(.close(SessionID(1))))
        #expect(decider.members.isEmpty)
    }

    @Test func nextDeadline_isTheEarliestOfAllParts() throws {
        var decider = Decider(Settings())
        #expect(decider.nextDeadline == nil)
        for name in ["music", "speech"] { _ = Self.actions(&decider, .event(try Self.session(name))) }
        _ = Self.actions(&decider, .event(.activate(SessionID(1))))
        _ = Self.actions(&decider, .event(.activate(SessionID(2))))
        _ = Self.actions(&decider, .event(.deactivate(SessionID(2), notifyOthers: true)))
        let due = try #require(decider.nextDeadline)
        decider.submit(.timePassed)
        var names: [String] = []
        while let action = decider.next(at: due, view: { Routing.View() }) {
            if case .decided(let decision) = action { names.append(decision.event.name) }
        }
        #expect(names == ["claim-expired"])
        #expect(decider.nextDeadline == nil)
    }

    @Test func playerIsPaused_theNextDaemonKnowsBeforeTheRequestIsSent_andItIsRecordedAndExplained() throws {
        var decider = Decider(Settings())
        let owner = Member(process: 7, user: nil, desktopEntry: "")
        _ = Self.actions(&decider, .create(try Self.new("player"), owner))
        _ = Self.actions(&decider, .event(try Self.session("phone", .call)))
        _ = Self.actions(&decider, .event(.activate(SessionID(1))))
        let origin = PlayerOrigin(name: "vlc", process: 7, ancestry: [7, 1])
        _ = Self.actions(&decider, .player(":1.7", .appeared(origin)))
        let front = Self.actions(&decider, .player(":1.7", .told(PlayerFacts(.playing), order: 1)))
        #expect(front.contains { if case .showPlayer(":1.7") = $0 { true } else { false } })
        // A client is paused by the daemon only if it plays on although it was interrupted.
        let interrupted = Self.actions(&decider, .event(.activate(SessionID(2))))
        #expect(interrupted.filter { if case .checkPlayers = $0 { true } else { false } }.count == 1)
        let before = Self.actions(&decider, .players)
        #expect(before.isEmpty)
        _ = Self.actions(&decider, .event(.interruptionIgnored(SessionID(1))))
        let asked = Self.actions(&decider, .players)
        #expect(asked.contains { if case .player(":1.7", .ask) = $0 { true } else { false } })
        let paused = Self.actions(&decider, .player(":1.7", .answered(PlayerFacts(.playing))))
        let steps = paused.map { action in
            switch action {
            case .keepPauses(let pauses): "kept \(pauses.map(\.player).joined())"
            case .player(let id, let request): "\(request) \(id)"
            default: "other"
            }
        }
        #expect(steps == ["kept :1.7", "pause :1.7"])
        _ = Self.actions(&decider, .player(":1.7", .told(PlayerFacts(.paused), order: 2)))
        _ = Self.actions(&decider, .player(":1.7", .pauseEnded(succeeded: true)))
        let requests = decider.history.latest(100).flatMap(\.requests)
        #expect(requests.map(\.name) == ["pause-player"])
        #expect(requests.first?.session == SessionID(1))
        let causes = decider.explain(SessionID(1), at: Instant(microseconds: 1_000_000))
        #expect(causes.contains { $0.cause == "player-paused" && $0.text.contains("vlc") })
    }

    @Test func playersOfAdoptedPrograms_arePausedAndResumed_unlessUserUsesThem() throws {
        var run = Run(
            try Scenario(
                """
                program music "Music player"
                stream song of music
                player vlc of song
                session call "Phone" playback class=call
                expect player vlc playing
                activate call
                expect player vlc paused
                deactivate call notify
                expect player vlc playing
                # The user starts it during the call. It takes the sound back if the rules allow it; during a call they
                # do not.
                activate call
                play vlc
                expect music interrupted by call
                expect stream song held
                deactivate call
                wait 1
                expect stream song untouched
                exit music
                expect music gone
                """, file: "players"))
        run.perform()
        #expect(run.failures == [])
    }
}
