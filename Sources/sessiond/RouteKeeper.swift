import Logging
import PluginAPI
import SessionManager

/// Has the server's route follow what the active sessions want, and asks only where that changes: what a person or the
/// server itself chose meanwhile stays until then, and nothing is fought over.
final class RouteKeeper {
    private let backend: any AudioBackend
    private let log: Logger
    /// What was wanted last; nil while there is no server.
    private var wanted: RouteChoice?
    /// What was asked for and is not seen to be the route yet.
    private var asked: (output: String?, input: String?) = (nil, nil)

    init(_ backend: any AudioBackend, log: Logger) {
        self.backend = backend
        self.log = log
    }

    /// `idle` is what is wanted with nobody active: where a server is found, its route counts as chosen so.
    func follow(_ choice: RouteChoice, idle: () -> RouteChoice, reason: RouteChangeReason) {
        backend.outputWish = choice.wish
        guard backend.snapshot.isConnected else {
            wanted = nil
            asked = (nil, nil)
            return
        }
        seeWhatBecame(reason)
        let isFirst = wanted == nil
        // Who is active when the server is found wants it by its category.
        let cause = isFirst ? choice.reason : reason
        var before = wanted ?? idle()
        if backend.snapshot.isEnumerating {
            // Likewise with devices that came together: which of them it is was chosen earlier, and is not ours to say.
            let (idle, together) = (idle(), backend.snapshot.enumerated)
            if let output = idle.output, together.contains(output) { before.output = output }
            if let input = idle.input, together.contains(input) { before.input = input }
        }
        wanted = choice
        guard choice != before else { return }
        if choice.handsFree != before.handsFree {
            // Whoever talks already when the server is found has asked for that before.
            backend.setHandsFree(
                choice.handsFree, takesOver: isFirst, reason: cause,
                completion: answer("cannot change the profile of the headset", choice.handsFree, \.wanted?.handsFree))
        }
        let route = backend.snapshot.route
        // Where the server went by itself when a device did, nothing goes when we go on from there.
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

    /// Whether the route is on its way to where it was asked to go.
    var isMoving: Bool {
        let route = backend.snapshot.route
        return asked.output.map { $0 != route.outputs.first?.uid } ?? false
            || asked.input.map { $0 != route.inputs.first?.uid } ?? false
    }

    /// What was asked for has come about, cannot any more, or somebody chose otherwise.
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

    /// A refusal of what is no longer wanted is worth no word. `wanted`: where that is written.
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
    /// What a change of the route is called that such an event brings about.
    func routeReason(_ choice: RouteChoice) -> RouteChangeReason {
        switch self {
        case .routeChanged(let reason, _): reason
        // Both put a port that a session chose in the place of the one by the rules.
        case .overrideOutput, .setPreferredInput: .override
        // What comes is told of as a change of the route: here something went that was not the route yet.
        case .portsChanged: .oldDeviceUnavailable
        case .create, .setCategory, .activate, .deactivate, .setPreferences, .close, .setForeground, .setSilentMode,
            .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .soundingChanged, .microphoneMuted,
            .settingsChanged, .interruptionIgnored, .timePassed:
            choice.reason
        }
    }
}

extension RouteChoice {
    /// What a change is called that the sessions alone bring about.
    fileprivate var reason: RouteChangeReason { isOverridden ? .override : .categoryChange }
}
