import DBus
import EventLoop
import PluginAPI
import SessionBus

/// A plugin that plays or records for this program alone, in this program's session. Its process starts at the first
/// request, and again after it has crashed.
actor HostedPlugin {
    nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    private let kind: PluginKind
    private let given: AudioSession?
    private let environment: [String: String]
    private var session: AudioSession?
    private var client: PluginClient?
    private var guest: SessionGuest?
    /// The number of reasons to keep the session although the plugin is silent: sound follows soon.
    private var holds = 0
    /// Whether the plugin sounds in the session, or is about to.
    private var isAdmitted = false
    private var tell: (@Sendable (PluginClient.News) -> Void)?
    private var silenced: (@Sendable () -> Void)?

    /// - Parameter session: nil: that of ``AudioSession/sharedInstance(bus:)`` when it is first needed.
    init(_ kind: PluginKind, in session: AudioSession?, environment: [String: String]) {
        (self.kind, given, self.environment) = (kind, session, environment)
    }

    /// Reports the events of the plugin, on the thread of the loop. `silenced`: the session was interrupted or
    /// deactivated, and the plugin is being paused.
    func follow(
        _ tell: @escaping @Sendable (PluginClient.News) -> Void, silenced: @escaping @Sendable () -> Void
    ) { (self.tell, self.silenced) = (tell, silenced) }

    /// The client of the plugin, for requests that change nothing about whether it sounds.
    var requests: PluginClient { get async throws(SessionError) { try await find().client } }

    /// Ends the process. A later request starts a new one.
    func close() async {
        fellSilent()
        await client?.close()
    }

    private func find() async throws(SessionError) -> (client: PluginClient, session: AudioSession) {
        if let client, let session { return (client, session) }
        let session: AudioSession
        if let given { session = given } else { session = try await OwnSessions.all.shared(on: .session) }
        // Another request may have been faster.
        if let client, let known = self.session { return (client, known) }
        let client = PluginClient(
            kind, on: session.bus,
            .own(arguments: [PluginClient.hosted, "--name", session.name], environment: environment))
        (self.session, self.client) = (session, client)
        guest = SessionGuest { [weak self] in self?.assumeIsolated { $0.silence() } }
        await client.follow { [weak self] news in self?.assumeIsolated { $0.heard(news) } }
        return (client, session)
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .lost: fellSilent()
        case .changed(_, let properties):
            let sounding: Set = ["playing", "recording"]
            guard let state = properties["State"]?.stringValue, holds == 0 else { break }
            if !sounding.contains(state) { fellSilent() } else if !isAdmitted { admitAgain() }
        case .signal, .found: break
        }
        tell?(news)
    }

    /// The user made it sound, such as by a key in its window. If the session may not be active, it is paused again.
    private func admitAgain() {
        guard let guest, let session else { return }
        isAdmitted = true
        Task {
            do throws(SessionError) {
                try await session.admit(guest)
            } catch {
                await session.dismiss(guest)
                // It may be silent again, or have been asked to sound.
                if isAdmitted, holds == 0 { silence() }
            }
        }
    }

    private func silence() {
        isAdmitted = false
        silenced?()
        // A movie player is paused as a player.
        let interface = kind.interfaces.contains(BusName.player) ? BusName.player : kind.interface
        if let client { Task { try? await client.ask("Pause", of: interface) } }
    }

    private func fellSilent() {
        isAdmitted = false
        if let guest, let session { session.assumeIsolated { $0.dismiss(guest) } }
    }

    // MARK: Requests

    /// - Parameter interface: nil: the one that only its kind has.
    @discardableResult
    func ask(
        _ member: String, _ arguments: [Value] = [], of interface: String? = nil
    ) async throws(SessionError) -> [Value] {
        try await find().client.ask(member, arguments, of: interface)
    }

    func set(_ property: String, _ value: Value, of interface: String? = nil) async throws(SessionError) {
        try await find().client.set(property, value, of: interface)
    }

    func properties(of interface: String? = nil) async throws(SessionError) -> [String: Value] {
        try await find().client.properties(of: interface)
    }

    /// Activates the session, then makes the request that lets it sound.
    /// - Throws: the reason why the session may not be active, or why the plugin cannot sound.
    func sound(_ member: String, _ arguments: [Value] = [], of interface: String? = nil) async throws(SessionError) {
        let (client, session) = try await find()
        guard let guest else { return }
        hold()
        defer { release() }
        do throws(SessionError) {
            try await session.admit(guest)
            isAdmitted = true
            try await client.ask(member, arguments, of: interface)
        } catch {
            isAdmitted = false
            await session.dismiss(guest)
            throw error
        }
    }

    /// Keeps the session while the plugin changes what it plays.
    func hold() { holds += 1 }

    /// - Parameter isSilent: no sound follows.
    func release(isSilent: Bool = false) {
        holds -= 1
        if isSilent { fellSilent() }
    }

    /// Makes a request after which it is silent. Without a process, it is silent already.
    func fallSilent(_ member: String, of interface: String? = nil) async {
        guard let client else { return }
        _ = try? await client.ask(member, of: interface)
        fellSilent()
    }
}
