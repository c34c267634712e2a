import DBus
import PluginAPI

/// Other software that mutes, ducks or pauses by its own rules. It is detected and shown, but not changed.
final class Neighbours {
    private static let kdeConnect = "org.kde.kdeconnect"

    private var policies: Set<ServerPolicy> = []
    private var hasKDEConnect = false
    private var subscription: Subscription?
    private let onChange: () -> Void

    /// `onChange` is called when ``list`` changes. Players are paused only on a session bus.
    init(_ connection: Connection, isSessionBus: Bool, onChange: @escaping () -> Void) {
        self.onChange = onChange
        guard isSessionBus else { return }
        subscription = connection.watchOwner(of: Neighbours.kdeConnect) { [weak self] owner in
            self?.setKDEConnect(owner != "")
        }
        // Asked after the match rule is added, so that no change is missed.
        connection.askBus("NameHasOwner", [.string(Neighbours.kdeConnect)]) { [weak self] answer in
            if (try? answer.get())?.first?.boolValue == true { self?.setKDEConnect(true) }
        }
    }

    func update(_ policies: Set<ServerPolicy>) {
        guard policies != self.policies else { return }
        self.policies = policies
        onChange()
    }

    private func setKDEConnect(_ isThere: Bool) {
        guard isThere != hasKDEConnect else { return }
        hasKDEConnect = isThere
        onChange()
    }

    /// Each with its `name` and what it `does`; always in the same order.
    var list: [(name: String, does: String)] {
        var list = ServerPolicy.allCases.filter(policies.contains).map { ($0.rawValue, $0.does) }
        if hasKDEConnect { list.append(("kdeconnect", "may pause players while the phone rings")) }
        return list
    }
}

extension ServerPolicy {
    fileprivate var does: String {
        switch self {
        case .roleCork: "mutes and pauses streams by their role: music during a call"
        case .roleDucking: "ducks streams by their role: music during a call"
        case .wirePlumberRoles: "pauses and ducks streams by their role"
        case .wirePlumberPause:
            "pauses players whose device is removed, unless linking.pause-playback is off in its settings"
        }
    }
}
