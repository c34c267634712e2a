import PluginAPI
import Routing
import SessionManager
import Testing

@testable import Decider
@testable import ReferenceModel

/// Random devices, a server that obeys late or not at all, a user who chooses devices, and clients. The sessions agree with
/// the second model of the rules, what is requested is what that model wants, and each loss of the route's output is
/// reported once, in time.
@Suite struct RandomRouteTests {
    @Test func randomDevices_routeIsTheModels_andEachLossIsReportedOnce() {
        var (losses, postponed, asked) = (0, 0, 0)
        for seed in 1...400 as ClosedRange<UInt64> {
            var run = RouteRun(seed: seed)
            if let fault = run.play(steps: 60) {
                Issue.record("seed \(seed): \(fault)")
                return
            }
            losses += run.lossCount
            postponed += run.postponedCount
            asked += run.askCount
        }
        // All losses, those that are reported later, and requests.
        #expect(losses > 1_000)
        #expect(postponed > 100)
        #expect(asked > 1_000)
    }
}

/// The outputs of a simulated server. It carries out a request some time later, or refuses it then. A new request replaces
/// the one before.
struct SimulatedOutputs {
    struct Request {
        let uid: String
        let reason: RouteChangeReason
        let due: Instant
        let isRefused: Bool
    }

    static let microphone = PluginAPI.Port(type: .microphoneBuiltIn, name: "Microphone", uid: "microphone", channels: 1)
    /// Oldest first: in the order in which they appeared or were chosen by the user.
    var ports: [PluginAPI.Port] = []
    var output: PluginAPI.Port? {
        didSet { if request?.uid == output?.uid { request = nil } }
    }
    var request: Request?
    var isGuarded = false
    /// Since when sound is held.
    var heldSince: Instant?
    var pauseDelay = 0.0

    var route: Route { Route(inputs: [Self.microphone], outputs: output.map { [$0] } ?? []) }
    var audio: Audio { Audio(route: route, inputs: [Self.microphone], outputs: ports) }
    var view: Routing.View {
        var view = Routing.View()
        view.isConnected = true
        view.audio = audio
        view.isOutputHeld = heldSince != nil
        view.pauseDelay = pauseDelay
        view.formerOutput = former
        return view
    }
    /// The default before sessions needed another one.
    var former: String?
    /// The output that is the route when the request is carried out.
    var outputToBe: String? { request?.uid ?? output?.uid }

    /// This replaces what was requested before.
    mutating func choose(_ uid: String) {
        guard let place = ports.firstIndex(where: { $0.uid == uid }) else { return }
        ports.append(ports.remove(at: place))
        output = ports.last
        (request, former) = (nil, nil)
    }
}

/// One history of devices and clients.
struct RouteRun {
    private var decider = Decider(Settings())
    private var model = ReferenceModel()
    private var server = SimulatedOutputs()
    private var random: SplitMix64
    private var now = Instant(microseconds: 1_000_000)
    private var clients: [SessionID] = []
    private var faults: [String] = []
    /// The last request, also if its output was unplugged.
    private var lastAsked: String?
    /// The output that the model wanted last.
    private var wanted: String?
    /// The route's output is gone, and that was not reported yet.
    private var loss: (left: Route, since: Instant)?
    private(set) var lossCount = 0
    /// Losses that were not reported at once.
    private(set) var postponedCount = 0
    private(set) var askCount = 0

    /// Speaker and receiver are built in; the others are plugged and unplugged.
    private static let builtIn = [port("speaker", .speaker), port("receiver", .receiver)]
    private static let devices = [port("phones", .headphones), port("usb", .usbAudio), port("hdmi", .hdmi)]

    private static func port(_ uid: String, _ type: PortType) -> PluginAPI.Port {
        PluginAPI.Port(type: type, name: uid, uid: uid, channels: 2)
    }

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        server.ports = Self.builtIn.filter { _ in Bool.random(using: &random) }
        server.output = server.ports.last
        server.pauseDelay = Bool.random(using: &random) ? 0.1 : 0
        submit(.server(.servicesReset))
        // The route that the server has at first counts as chosen.
        wanted = model.wantedOutput?.uid
    }

    /// Returns the first fault, or nil.
    mutating func play(steps: Int) -> String? {
        for step in 1...steps {
            let what = act()
            if let fault = faults.first ?? contradiction() { return "step \(step), \(what): \(fault)" }
            if Int.random(in: 0..<3, using: &random) == 0 { pass(Double.random(in: 0...1.5, using: &random)) }
            if let fault = faults.first ?? contradiction() { return "after step \(step), \(what): \(fault)" }
        }
        pass(5)
        if let fault = faults.first ?? contradiction() { return "at the end: \(fault)" }
        if decider.arbiter.audio != server.audio { return "at the end, the sessions have another route" }
        for client in clients { submit(.request(.close(client))) }
        pass(5)
        if server.former != nil { return "at the end, no session needs an output, and the default is still temporary" }
        if server.heldSince != nil { return "at the end, sound is held" }
        return nil
    }

    // MARK: What happens

    private mutating func act() -> String {
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: return plug()
        case 2, 3: return unplug()
        case 4:
            guard let port = server.ports.randomElement(using: &random), port.uid != server.output?.uid else {
                return "nothing"
            }
            let previous = server.route
            server.choose(port.uid)
            tell(.unknown, previous)
            return "the user chooses \(port.uid)"
        case 5: return createClient()
        default:
            guard let id = clients.randomElement(using: &random) else { return "nothing" }
            if Int.random(in: 0..<4, using: &random) == 0 {
                var preferences = Preferences()
                preferences.interruptsOnRouteDisconnect = Bool.random(using: &random)
                submit(.request(.setPreferences(id, preferences)))
                return "\(id) prefers to be paused by an unplug: \(preferences.interruptsOnRouteDisconnect)"
            }
            let isOn = Int.random(in: 0..<3, using: &random) > 0
            submit(.request(isOn ? .activate(id) : .deactivate(id, notifyOthers: true)))
            return "\(isOn ? "activate" : "deactivate") \(id)"
        }
    }

    private mutating func plug() -> String {
        let absent = Self.devices.filter { !server.ports.contains($0) }
        guard let port = absent.randomElement(using: &random) else { return "nothing" }
        let previous = server.route
        server.ports.append(port)
        // As module-switch-on-connect; or nothing was there.
        if server.output == nil || Bool.random(using: &random) { server.output = port }
        tell(.newDeviceAvailable, previous)
        return "\(port.uid) is plugged in"
    }

    private mutating func unplug() -> String {
        let plugged = server.ports.filter(Self.devices.contains)
        guard let port = plugged.randomElement(using: &random) else { return "nothing" }
        let previous = server.route
        server.ports.removeAll { $0 == port }
        let isRefused = server.request?.uid == port.uid
        if isRefused { server.request = nil }
        defer { if isRefused { refuse(port.uid) } }
        guard port == server.output else {
            submit(.server(.portsChanged))
            return "\(port.uid), which is not used, is unplugged"
        }
        server.output = server.ports.randomElement(using: &random)
        if server.isGuarded { server.heldSince = now }
        let pauses = pausesNow
        if loss == nil { loss = (previous, now) }
        lossCount += 1
        tell(.oldDeviceUnavailable, previous)
        if pauses, loss != nil { faults.append("a session must pause, and the loss is not reported at once") }
        if loss != nil { postponedCount += 1 }
        return "\(port.uid) is unplugged"
    }

    /// Whether the loss of the output pauses a session.
    private var pausesNow: Bool {
        guard let id = model.nowPlaying, let session = model.session(id) else { return false }
        return session.isPlaying && session.preferences.interruptsOnRouteDisconnect
    }

    private mutating func createClient() -> String {
        guard clients.count < 4,
            let category = [PluginAPI.Category.playback, .ambient, .playAndRecord].randomElement(using: &random),
            let sessionClass = [SessionClass.app, .app, .app, .call].randomElement(using: &random),
            let configuration = try? Configuration(category: category)
        else { return "nothing" }
        let client = decider.freeClientID
        submit(.client(client))
        submit(
            .create(
                NewSession(
                    name: "client", client: client, sessionClass: sessionClass, configuration: configuration,
                    notifiesOnExit: true),
                Member(process: 1, user: nil, desktopEntry: "")))
        if let id = decider.arbiter.sessions.last?.id { clients.append(id) }
        return "a client's \(sessionClass) with \(category)"
    }

    private mutating func tell(_ reason: RouteChangeReason, _ previous: Route) {
        submit(.server(.routeChanged(reason, previous: previous)))
        submit(.server(.portsChanged))
    }

    /// Lets time pass. Everything that is due meanwhile happens at its time.
    private mutating func pass(_ seconds: Double) {
        let end = now.advanced(bySeconds: seconds)
        for _ in 0..<1_000 {
            let deadline = decider.nextDeadline
            let request = server.request
            guard let next = [deadline, request?.due].compactMap({ $0 }).min(), next <= end else {
                now = end
                return
            }
            now = max(now, next)
            if let request, request.due <= now { carryOut(request) } else { submit(.timePassed) }
            if let fault = contradiction() { faults.append(fault) }
            if !faults.isEmpty { return }
        }
        faults.append("there is always another deadline")
    }

    private mutating func carryOut(_ request: SimulatedOutputs.Request) {
        server.request = nil
        guard !request.isRefused, let port = server.ports.first(where: { $0.uid == request.uid }) else {
            return refuse(request.uid)
        }
        guard port != server.output else { return }
        let previous = server.route
        server.output = port
        tell(request.reason, previous)
    }

    private mutating func refuse(_ uid: String) {
        submit(.server(.refused(.output(uid, isTemporary: true), SessionError(.mediaServicesFailed, "no"))))
    }

    private mutating func submit(_ fact: Fact) {
        decider.submit(fact)
        var count = 0
        while let action = decider.next(at: now, view: { [server] in server.view }) {
            count += 1
            guard count < 500 else { return faults.append("endless actions: \(action)") }
            switch action {
            case .decided(let decision): note(decision)
            case .ask(.output(let uid, let isTemporary), let reason):
                let isSettled = server.former == nil
                if isTemporary, isSettled { server.former = server.output?.uid ?? "" }
                if !isTemporary { server.former = nil }
                ask(uid, reason, mayRepeat: !isTemporary && !isSettled)
            case .ask(.formerOutput, let reason):
                let former = server.former ?? ""
                server.former = nil
                ask(former, reason, mayRepeat: true)
            case .guardOutput(let isGuarded): server.isGuarded = isGuarded
            case .releaseOutput: server.heldSince = nil
            case .ping(let client): decider.submit(.pingAnswered(client))
            case .ask, .wish, .move, .prepareHold, .measure, .streams, .look, .checkPlayers, .keepPauses, .player,
                .showPlayer, .delaySleep, .warn, .notice:
                break
            }
        }
    }

    // MARK: What must be true

    /// `mayRepeat`: the output was requested temporarily before.
    private mutating func ask(_ uid: String, _ reason: RouteChangeReason, mayRepeat: Bool) {
        askCount += 1
        var model = model
        model.audio = server.audio
        if uid != model.wantedOutput?.uid {
            faults.append("\(uid) is requested, and the sessions want \(model.wantedOutput?.uid ?? "none")")
        }
        if uid == server.outputToBe, uid == lastAsked, !mayRepeat {
            faults.append("\(uid) is requested, and is the output or about to be")
        }
        lastAsked = uid
        server.request = nil
        guard uid != server.output?.uid else { return }
        server.request = SimulatedOutputs.Request(
            uid: uid, reason: reason, due: now.advanced(bySeconds: Double.random(in: 0...1.4, using: &random)),
            isRefused: Int.random(in: 0..<8, using: &random) == 0)
    }

    private mutating func note(_ decision: Decision) {
        switch decision.event {
        // The model has no microphone.
        case .microphoneMuted: return
        case .routeChanged(let reason, let audio):
            if audio != server.audio { faults.append("an outdated route is reported") }
            switch reason {
            case .oldDeviceUnavailable:
                if loss == nil { faults.append("a loss is reported that did not happen, or twice") }
                loss = nil
            case .routeConfigurationChange: loss = nil
            default: if loss != nil { faults.append("\(reason) is reported before the loss") }
            }
        case .portsChanged(let audio): if audio.route == loss?.left { loss = nil }
        default: break
        }
        let outcome = model.handle(decision.event, at: decision.time)
        if decision.refusal?.code != outcome.refusal {
            faults.append("\(decision.event.name): refused with \(String(describing: decision.refusal))")
        }
        for session in decider.arbiter.sessions {
            let isPlaying = model.session(session.id)?.isPlaying
            if isPlaying != (session.state == .active) {
                faults.append("\(decision.event.name): session \(session.id) is \(session.state)")
            }
        }
    }

    private mutating func contradiction() -> String? {
        if let loss, now > loss.since.advanced(bySeconds: 1) { return "a loss was not reported for a second" }
        if let held = server.heldSince, now > held.advanced(bySeconds: 2) { return "sound is held for two seconds" }
        if loss == nil, decider.arbiter.audio != server.audio { return "a change is not reported" }
        var model = model
        model.audio = server.audio
        let wanted = model.wantedOutput?.uid
        defer { self.wanted = wanted }
        guard let wanted, wanted != self.wanted, wanted != server.outputToBe else { return nil }
        return "the sessions want \(wanted) now, and nobody has requested it"
    }
}
