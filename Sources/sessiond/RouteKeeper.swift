import Logging
import PluginAPI
import SessionManager

/// Requests the route that the active sessions want, but only when the wish changes. A later choice of the user or of
/// the server stays until then, so there is no conflict.
final class RouteKeeper {
    private let backend: any AudioBackend
    private let log: Logger
    /// The last wish; nil while there is no server.
    private var wanted: RouteChoice?
    /// What was requested and is not yet the route.
    private var asked: (output: String?, input: String?) = (nil, nil)

    init(_ backend: any AudioBackend, log: Logger) {
        self.backend = backend
        self.log = log
    }

    /// `idle`: the wish with no active session. The route of a new server counts as chosen.
    func follow(_ choice: RouteChoice, idle: () -> RouteChoice, reason: RouteChangeReason) {
        backend.outputWish = choice.wish
        guard backend.snapshot.isConnected else {
            wanted = nil
            asked = (nil, nil)
            return
        }
        seeWhatBecame(reason)
        let isFirst = wanted == nil
        // Sessions that are already active have their wishes by their category.
        let cause = isFirst ? choice.reason : reason
        var before = wanted ?? idle()
        if backend.snapshot.isEnumerating {
            // With devices found together, the server's choice stays: it was made earlier.
            let (idle, together) = (idle(), backend.snapshot.enumerated)
            if let output = idle.output, together.contains(output) { before.output = output }
            if let input = idle.input, together.contains(input) { before.input = input }
        }
        wanted = choice
        guard choice != before else { return }
        if choice.handsFree != before.handsFree {
            // Sessions that already record with a headset have requested it before.
            backend.setHandsFree(
                choice.handsFree, takesOver: isFirst, reason: cause,
                completion: answer("cannot change the profile of the headset", choice.handsFree, \.wanted?.handsFree))
        }
        let route = backend.snapshot.route
        // The server has already switched because a device went; switching on is not caused by that.
        let hasMoved = cause == .oldDeviceUnavailable && route.outputs.first?.isAvailable == true
        let reason = hasMoved ? .unknown : cause
        if let uid = choice.output, uid != before.output, uid != asked.output ?? route.outputs.first?.uid {
            asked.output = uid
            backend.selectOutput(
                uid, reason: reason, completion: answer("cannot change the output", uid, \.asked.output))
        }
        if let uid = choice.input, uid != before.input, uid != asked.input ?? route.inputs.first?.uid {
            asked.input = uid
            backend.selectInput(
                uid, reason: reason, completion: answer("cannot change the input", uid, \.asked.input))
        }
    }

    /// Whether the server has not yet switched to the requested route.
    var isMoving: Bool {
        let route = backend.snapshot.route
        return asked.output.map { $0 != route.outputs.first?.uid } ?? false
            || asked.input.map { $0 != route.inputs.first?.uid } ?? false
    }

    /// The request was carried out, is impossible now, or the user chose otherwise.
    private func seeWhatBecame(_ reason: RouteChangeReason) {
        let snapshot = backend.snapshot
        let isOver = reason == .unknown
        if isOver || asked.output == snapshot.route.outputs.first?.uid
            || !snapshot.availableOutputs.contains(where: { $0.uid == asked.output })
        {
            asked.output = nil
        }
        if isOver || asked.input == snapshot.route.inputs.first?.uid
            || !snapshot.availableInputs.contains(where: { $0.uid == asked.input })
        {
            asked.input = nil
        }
    }

    /// Logs a refusal, unless the request is outdated. `wanted`: where the wish is stored.
    private func answer(
        _ what: String, _ uid: String?, _ wanted: KeyPath<RouteKeeper, String?>
    ) -> AudioBackend.Completion {
        { [weak self] result in
            guard let self, case .failure(let error) = result, self[keyPath: wanted] == uid else { return }
            log.warning("\(what): \(error)")
            if asked.output == uid { asked.output = nil }
            if asked.input == uid { asked.input = nil }
        }
    }
}

extension Event {
    /// The reason of a route change that such an event causes.
    func routeReason(_ choice: RouteChoice) -> RouteChangeReason {
        switch self {
        case .routeChanged(let reason, _): reason
        // In both cases a session replaced the port of the rules.
        case .overrideOutput, .setPreferredInput: .override
        // The new device is reported as a route change; here a device went that was not the route yet.
        case .portsChanged: .oldDeviceUnavailable
        case .create, .setCategory, .activate, .deactivate, .setPreferences, .close, .setForeground, .setSilentMode,
            .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .soundingChanged, .microphoneMuted,
            .settingsChanged, .interruptionIgnored, .timePassed:
            choice.reason
        }
    }
}

extension RouteChoice {
    /// The reason of a change that only the sessions cause.
    fileprivate var reason: RouteChangeReason { isOverridden ? .override : .categoryChange }
}
