import DBus
import PluginAPI
import PluginKitTesting
import SessionBus
import SessionKit
import TestSupport
import Testing

/// ``AudioSessionClient`` with a daemon that goes away and comes back.
@Suite struct SessionClientTests {
    private final class App {
        private let bus: PrivateBus
        let daemon: FakeDaemon
        private(set) var client: AudioSessionClient!
        private(set) var events: [String] = []

        init() throws {
            bus = try PrivateBus()
            daemon = try FakeDaemon(on: .custom(bus.address))
            client = AudioSessionClient(.init(name: "App", category: .playback), on: daemon.client) {
                [unowned self] event in events.append(App.describe(event))
            }
            client.activate { _ in }
            guard daemon.comes({ client.state == .active }) else { throw SupportError("it is not active") }
            events = []
        }

        private static func describe(_ event: AudioSessionClient.Event) -> String {
            switch event {
            case .registered: "registered"
            case .daemonLost: "lost"
            case .servicesLost: "services lost"
            case .servicesReset: "services reset"
            case .refused: "refused"
            case .session(.interruptionBegan): "began"
            case .session(.interruptionEnded(let shouldResume, _, _)): shouldResume ? "ended, resume" : "ended"
            case .session: "other"
            }
        }

        func lose() {
            daemon.stop()
            #expect(daemon.comes { events.last == "lost" })
            #expect(client.state == .inactive)
        }
    }

    @Test(arguments: [SessionState.active, .interrupted, .inactive])
    func lostDaemonReturnsWithItsState_isReportedOnce(then: SessionState) throws {
        let app = try App()
        app.lose()
        app.daemon.state = then
        try app.daemon.start()
        #expect(app.daemon.comes { app.events.contains("registered") && app.client.state == then })
        app.daemon.pass(0.2)
        #expect(app.events == ["lost", "registered"] + (then == .interrupted ? ["began"] : []))
        #expect(app.daemon.count == 1)
    }

    @Test(arguments: [SessionState.interrupted, .inactive])
    func daemonIsLostDuringAnInterruption_beginsOnlyOnce(then: SessionState) throws {
        let app = try App()
        app.daemon.begin()
        #expect(app.daemon.comes { app.client.state == .interrupted })
        app.lose()
        app.daemon.state = then
        try app.daemon.start()
        #expect(app.daemon.comes { app.events.contains("registered") && app.client.state == then })
        app.daemon.pass(0.2)
        #expect(app.events == ["began", "lost", "registered"] + (then == .inactive ? ["ended"] : []))
        guard then == .interrupted else { return }
        app.daemon.end(resume: true)
        #expect(app.daemon.comes { app.events.last == "ended, resume" })
    }

    @Test func daemonDiesBeforeItAnswers_sessionIsNotCreatedAgain() throws {
        let app = try App()
        app.daemon.stop()
        app.daemon.isDeaf = true
        try app.daemon.start()
        #expect(app.daemon.comes { app.daemon.isAsked })
        app.daemon.stop()
        app.daemon.isDeaf = false
        try app.daemon.start()
        app.daemon.pass(0.5)
        #expect(app.daemon.count == 1 && !app.daemon.calls.dropFirst().contains("CreateSession"))
        #expect(app.events == [] && app.client.state == .active, "\(app.events)")
    }

    /// The same after it was lost: the loss is reported once.
    @Test func lostDaemonDiesAgainBeforeItAnswers_isLostOnlyOnce() throws {
        let app = try App()
        app.lose()
        app.daemon.isDeaf = true
        try app.daemon.start()
        #expect(app.daemon.comes { app.daemon.isAsked })
        app.daemon.stop()
        app.daemon.pass(3.5)
        app.daemon.isDeaf = false
        try app.daemon.start()
        #expect(app.daemon.comes { app.client.state == .active })
        #expect(app.events == ["lost", "registered"] && app.daemon.count == 1, "\(app.events)")
    }
}
