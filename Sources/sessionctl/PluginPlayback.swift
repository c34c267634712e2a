import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// Plays one URI with the plugin of another author that serves its scheme, such as `tone:440`.
///
/// The daemon starts the plugin. It has a session of its own, so other sessions interrupt it as they interrupt ours.
final class PluginPlayback: PluginPlace {
    private let uri: String
    private var subscriptions: [Subscription] = []
    private var signals: [SignalWatch] = []
    private var keyboard: Keyboard?
    private var state = ""
    private var hasPlayed = false

    /// The URI to play this way; nil: our own player plays all items.
    /// - Throws: if such a URI is not the only item: only our own player has a queue.
    static func uri(among items: [String], _ query: String?, _ service: Service) throws -> String? {
        // The most frequent arguments need no question to the daemon.
        let others = items.compactMap { item in item.firstIndex(of: ":").map { (item, item[..<$0].lowercased()) } }
            .filter { !["file", "http", "https"].contains($0.1) && !$0.1.contains("/") }
        guard !others.isEmpty else { return nil }
        let plugins = try service.ask("List", interface: BusName.plugins).first?.arrayValue?.compactMap(\.asProperties)
        let players = (plugins ?? []).filter { $0["kind"]?.stringValue == PluginKind.player.word }
        guard
            let found = others.first(where: { _, scheme in
                players.contains { $0["schemes"]?.stringsValue?.contains(scheme) == true }
            })
        else { return nil }
        guard items.count == 1, query == nil else {
            throw Complaint(
                code: 64, message: "'\(found.0.escaped)' is played by a plugin without a queue: play it alone")
        }
        return found.0
    }

    init(_ uri: String, _ service: Service) throws {
        self.uri = uri
        try super.init(.player, for: uri, "'\(uri.escaped)'", service)
        let connection = service.connection
        subscriptions = [
            connection.subscribe(path: objectPath, sender: place) { [unowned self] in heard($0) },
            connection.watchName(place) { [unowned self] in
                end("the plugin for '\(self.uri.escaped)' ended unexpectedly")
            },
        ]
        connection.onDisconnect = { [unowned self] in end("the bus connection was lost") }
        signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            service.loop.watch(signal: number) { [unowned self] in stop(128 + number) }
        }
    }

    /// Plays until the plugin has stopped; never returns.
    func run() throws -> Never {
        _ = try ask("Load", [.string(uri)])
        _ = try ask("Play", [])
        if tcgetpgrp(STDOUT_FILENO) == getpgrp() {
            keyboard = Keyboard(service.loop) { [unowned self] in pressed($0) }
            if keyboard != nil { Output.line("space pause · q quit") }
        }
        hasPlayed = true
        // The state may have changed before the subscription.
        service.connection.call(
            place, objectPath, StandardName.properties, "Get", [.string(kind.interface), .string("State")],
            timeout: Service.timeout
        ) { [weak self] answer in self?.learn((try? answer.get())?.first?.unwrapped.stringValue) }
        Output.end(service.loop.run(), keeping: self)
    }

    private func heard(_ message: Message) {
        guard let values = try? message.arguments() else { return }
        switch message.member {
        case "Finished" where message.interface == kind.interface:
            service.loop.quit(values.first?.boolValue == false ? 1 : 0)
        case "Failed" where message.interface == kind.interface: end(values.first?.stringValue?.escaped ?? "it failed")
        case "PropertiesChanged" where values.first?.stringValue == kind.interface:
            service.connection.readChanges(message) { [weak self] _, changes in
                self?.learn(changes["State"]?.stringValue)
            }
        default: break
        }
    }

    private func learn(_ new: String?) {
        guard hasPlayed, let new, new != state else { return }
        let wasHeard = !state.isEmpty
        state = new
        switch new {
        case "playing": Output.line(wasHeard ? "resumed" : "playing \(uri.escaped)")
        case "paused", "interrupted": Output.line(new)
        case "stopped": service.loop.quit(0)
        case "failed": end("'\(uri.escaped)' cannot be played")
        case _: break
        }
    }

    private func pressed(_ key: Keyboard.Key) {
        switch key {
        case .space: call(state == "playing" || state == "interrupted" ? "Pause" : "Play")
        case .letter("q"): stop(0)
        case .letter, .left, .right, .up, .down, .editing: break
        }
    }

    private func call(_ member: String) {
        service.connection.call(place, objectPath, kind.interface, member, []) { [weak self] answer in
            guard let self, case .failure(let failure) = answer else { return }
            Output.complain(service.complaint(failure).message)
        }
    }

    /// Stops the plugin, and ends with that code.
    private func stop(_ code: Int32) {
        hasPlayed = false
        service.connection.call(place, objectPath, kind.interface, "Stop", [], timeout: Service.timeout) {
            [service] _ in service.loop.quit(code)
        }
    }

    private func end(_ complaint: String) {
        Output.complain(complaint)
        service.loop.quit(1)
    }
}
