import DBus
import Foundation
import PluginAPI
import SessionKit
import TestSupport

/// The real daemon, a sound server and a recording of its speaker, for an app of SessionKit that plays or records.
final class KitStage {
    let pulse: any PrivateServer
    let daemon: DaemonStage
    let ear: Ear
    let media: PrivateFolder

    var bus: BusAddress { .custom(daemon.bus.address) }

    init(sinks: [String] = ["speaker"]) throws {
        pulse = try ServerKind.standard.server(sinks: sinks)
        ear = try Ear(pulse, sink: sinks[0])
        media = try PrivateFolder()
        daemon = try DaemonStage(pulse: pulse)
        guard daemon.waitForServer() else { throw SupportError("sessiond does not find the sound server") }
    }

    /// What the plugins of the app need to find the sound server, and what they would find in PATH.
    var environment: [String: String] {
        let folder = (try? builtProduct(named: "sessiond-player")).map { ($0 as NSString).deletingLastPathComponent }
        let own = ["GST_REGISTRY": PlayerStage.registry, "PATH": (folder ?? "") + ":/usr/bin:/bin"]
        return pulse.environment.merging(own) { $1 }
    }

    func session(_ category: AudioSession.Category = .playback) async throws(SessionError) -> AudioSession {
        try await AudioSession(name: "Notes", category: category, bus: bus)
    }

    func player(_ url: String, in session: AudioSession) async throws(SessionError) -> AudioPlayer {
        try await AudioPlayer(contentsOf: url, session: session, environment: environment)
    }

    func queue(_ urls: [String], in session: AudioSession) -> QueuePlayer {
        QueuePlayer(urls.map { PlayerItem(url: $0) }, session, removesPlayed: true, environment: environment)
    }

    func sine(_ hertz: Double, seconds: Double) throws -> String {
        try DaemonTests.sine(hertz, seconds: seconds, in: media)
    }

    /// The sessions as "name state", in order.
    func sessions() throws -> [String] {
        try daemon.sessions().values.map { "\($0["Name"]?.stringValue ?? "") \($0["State"]?.stringValue ?? "")" }
            .sorted()
    }

    /// The process that owns a name below that one; 0: none.
    func process(_ namespace: String) throws -> Int32 {
        let names = try daemon.observer.askBusAndWait("ListNames", timeout: 5).first?.stringsValue ?? []
        guard let name = names.first(where: { $0.hasPrefix(namespace) }) else { return 0 }
        return Int32((try? daemon.observer.credentialsAndWait(of: name, timeout: 5).processID) ?? 0)
    }
}

/// Whether the condition becomes true within thirty seconds. Other tasks run in between.
func eventuallyAsync(_ condition: () async -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < deadline {
        if await condition() { return true }
        try? await Task.sleep(for: .milliseconds(10))
    }
    return false
}
