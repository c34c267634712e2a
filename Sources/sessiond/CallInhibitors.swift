import DBus
import EventLoop

/// Programs that have reported to the desktop that they are in a call.
///
/// Chromium and programs based on it take an inhibitor against suspending, with the reason below, while they are
/// connected to another peer (`PeerConnection`). GNOME's session manager and KDE's power management list inhibitors
/// with reasons; others (Xfce) list no reasons.
final class CallInhibitors {
    /// The reason that Chromium gives (`content/browser/webrtc/webrtc_internals.cc`).
    private static let reason = "WebRTC has active PeerConnections"
    /// A limit: any program of the user may take as many inhibitors as it likes.
    private static let limit = 64

    private let connection: Connection
    private var subscriptions: [Subscription] = []
    /// Names or paths of executables, as the programs have given them; by desktop service.
    private var programs: [String: Set<String>] = [:]
    /// Increases with each query, so that late answers to earlier ones are ignored.
    private var readings: [String: Int] = [:]

    /// A program took or released such an inhibitor.
    var onChanged: (() -> Void)?

    init(_ connection: Connection) {
        self.connection = connection
        watch(GNOME.name) { [weak self] in self?.readGNOME() }
        watch(KDE.name) { [weak self] in self?.readKDE() }
        for member in ["InhibitorAdded", "InhibitorRemoved"] {
            subscriptions.append(
                connection.subscribe(path: GNOME.path, interface: GNOME.name, member: member, sender: GNOME.name) {
                    [weak self] _ in self?.readGNOME()
                })
        }
        subscriptions.append(
            connection.subscribe(path: KDE.path, interface: KDE.name, member: "InhibitionsChanged", sender: KDE.name) {
                [weak self] _ in self?.readKDE()
            })
    }

    /// Whether the program with that executable or sandbox id has reported a call by an inhibitor.
    func hasCall(_ program: String) -> Bool {
        let file = program.split(separator: "/").last.map(String.init) ?? program
        return programs.values.contains { names in
            names.contains { name in name == program || name.split(separator: "/").last.map { $0 == file } ?? false }
        }
    }

    private enum GNOME {
        static let name = "org.gnome.SessionManager"
        static let path = "/org/gnome/SessionManager"
    }

    private enum KDE {
        static let name = "org.kde.Solid.PowerManagement.PolicyAgent"
        static let path = "/org/kde/Solid/PowerManagement/PolicyAgent"
    }

    private func watch(_ name: String, _ read: @escaping () -> Void) {
        subscriptions.append(
            connection.watchOwner(of: name) { [weak self] owner in
                if owner.isEmpty { self?.take([], from: name) } else { read() }
            })
        connection.askBus("NameHasOwner", [.string(name)]) { answer in
            if (try? answer.get())?.first?.boolValue == true { read() }
        }
    }

    private func readGNOME() {
        let reading = begin(GNOME.name)
        call(GNOME.name, GNOME.path, GNOME.name, "GetInhibitors") { [weak self] values in
            guard let self, readings[GNOME.name] == reading else { return }
            let paths = (values?.first?.objectPathsValue ?? []).prefix(CallInhibitors.limit)
            var found: Set<String> = []
            var left = paths.count
            if left == 0 { take([], from: GNOME.name) }
            for path in paths {
                ask(path, "GetReason") { [weak self] reason in
                    guard let self, readings[GNOME.name] == reading else { return }
                    let end = { [weak self] in
                        left -= 1
                        if left == 0 { self?.take(found, from: GNOME.name) }
                    }
                    guard reason == CallInhibitors.reason else { return end() }
                    ask(path, "GetAppId") { name in
                        if let name { found.insert(name) }
                        end()
                    }
                }
            }
        }
    }

    private func ask(_ path: String, _ member: String, _ reply: @escaping (String?) -> Void) {
        call(GNOME.name, path, GNOME.name + ".Inhibitor", member) { reply($0?.first?.stringValue) }
    }

    private func readKDE() {
        let reading = begin(KDE.name)
        call(KDE.name, KDE.path, KDE.name, "ListInhibitions") { [weak self] values in
            guard let self, readings[KDE.name] == reading else { return }
            var found: Set<String> = []
            for entry in (values?.first?.arrayValue ?? []).prefix(CallInhibitors.limit) {
                guard let fields = entry.structureValue, fields.count == 2, let name = fields[0].stringValue,
                    fields[1].stringValue == CallInhibitors.reason
                else { continue }
                found.insert(name)
            }
            take(found, from: KDE.name)
        }
    }

    private func begin(_ keeper: String) -> Int {
        readings[keeper, default: 0] += 1
        return readings[keeper] ?? 0
    }

    private func take(_ found: Set<String>, from keeper: String) {
        guard programs[keeper, default: []] != found else { return }
        programs[keeper] = found.isEmpty ? nil : found
        onChanged?()
    }

    /// Nil if there was no answer. Nothing waits for it.
    private func call(
        _ name: String, _ path: String, _ interface: String, _ member: String, _ reply: @escaping ([Value]?) -> Void
    ) {
        guard
            let message = try? Message.methodCall(destination: name, path: path, interface: interface, member: member)
        else { return reply(nil) }
        message.autoStart = false
        connection.call(message, timeout: 5) { reply(try? $0.get()) }
    }
}
