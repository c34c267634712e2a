import DBus
package import EventLoop
import SessionBus

/// The state of the machine that matters to uploads and the cache: whether its network is metered or missing (NetworkManager), and
/// whether it goes to sleep (login1). Without these services, none of this is assumed.
package final class MachineWatch {
    /// Whether the network is metered (`Metered`: yes, or guessed yes). True until NetworkManager has answered once, so
    /// that nothing is sent or fetched too early.
    package private(set) var isMetered = true
    /// Whether NetworkManager has answered, or does not run.
    package private(set) var isKnown = false
    /// Whether there is no network at all.
    package private(set) var isOffline = false
    package private(set) var isFallingAsleep = false
    /// Called when one of these values has changed.
    package var onChanged: () -> Void = {}
    /// Called when the network has changed or is back, or when the machine has woken up.
    package var onNetworkChanged: () -> Void = {}
    package let system: SystemBus

    private static let manager = "org.freedesktop.NetworkManager"
    private static let path = "/org/freedesktop/NetworkManager"
    private var subscriptions: [Subscription] = []

    package init(on loop: EventLoop) {
        system = SystemBus(on: loop)
        system.whenKnown { [weak self] bus in
            if let bus { self?.listen(to: bus) } else { self?.learn(metered: 0, state: 0) }
        }
    }

    private func listen(to bus: Connection) {
        bus.onDisconnect = { [unowned self] in learn(metered: 0, state: 0) }
        subscriptions = [
            bus.subscribe(
                path: Self.path, interface: StandardName.properties, member: "PropertiesChanged", sender: Self.manager,
                arg0: Self.manager
            ) { [unowned self] message in
                guard let values = try? message.arguments(), values.count == 3, let changed = values[1].asProperties
                else {
                    return
                }
                learn(metered: changed["Metered"]?.uint32Value, state: changed["State"]?.uint32Value)
            },
            bus.watchOwner(of: Self.manager) { [unowned self] owner in
                if owner.isEmpty { learn(metered: 0, state: 0) } else { ask() }
            },
            bus.subscribe(
                path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager",
                member: "PrepareForSleep", sender: "org.freedesktop.login1"
            ) { [unowned self] message in
                guard let falls = (try? message.arguments())?.first?.boolValue else { return }
                isFallingAsleep = falls
                onChanged()
                if !falls { onNetworkChanged() }
            },
        ]
        ask()
    }

    private func ask() {
        system.connection?.call(
            Self.manager, Self.path, StandardName.properties, "GetAll", [.string(Self.manager)], timeout: 5
        ) { [weak self] answer in
            let known = (try? answer.get())?.first?.asProperties
            self?.learn(metered: known?["Metered"]?.uint32Value ?? 0, state: known?["State"]?.uint32Value ?? 0)
        }
    }

    /// `NMMetered` and `NMState`; nil: unchanged.
    private func learn(metered: UInt32?, state: UInt32?) {
        let before = (isMetered, isOffline)
        isKnown = true
        // 1: yes, 3: guessed yes.
        if let metered { isMetered = metered == 1 || metered == 3 }
        // 10 to 40: asleep, disconnected, disconnecting, connecting; 0: unknown.
        if let state { isOffline = (10..<50).contains(state) }
        guard before != (isMetered, isOffline) || state != nil else { return }
        onChanged()
        if state != nil, !isOffline { onNetworkChanged() }
    }
}
