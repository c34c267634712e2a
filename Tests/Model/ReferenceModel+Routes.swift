import PluginAPI
import SessionManager

/// A second, independent implementation of rules §7 and of the options of §2 that concern ports. It follows the
/// text sentence by sentence, and eliminates ports.
extension ReferenceModel {
    /// Whether the category and the options allow a port.
    private func accepts(_ session: ModelSession, _ port: Port, asInput: Bool) -> Bool {
        if asInput {
            guard session.inputs else { return false }
            if port.type == .bluetoothHFP { return session.configuration.options.contains(.allowBluetoothHFP) }
            return true
        }
        guard session.outputs else { return false }
        guard session.category == .playAndRecord else { return true }
        switch port.type {
        case .bluetoothA2DP: return session.configuration.options.contains(.allowBluetoothA2DP)
        case .bluetoothHFP: return session.configuration.options.contains(.allowBluetoothHFP)
        case .airPlay: return session.configuration.options.contains(.allowAirPlay)
        default: return true
        }
    }

    func availableInputs(of session: ModelSession) -> [Port] {
        (audio?.inputs ?? []).filter { accepts(session, $0, asInput: true) }
    }

    /// "The category needs an input (or output) and there is none."
    func lacks(_ session: ModelSession) -> Bool {
        guard session.isPlaying, let audio else { return false }
        if session.inputs, availableInputs(of: session).isEmpty { return true }
        return session.outputs && !audio.outputs.contains { accepts(session, $0, asInput: false) }
    }

    /// "The latest active non-mixable one decides, else the latest active one."
    private func decider(_ needs: (ModelSession) -> Bool) -> ModelSession? {
        let candidates = sessions.filter { $0.isPlaying && needs($0) }.sorted { $0.lastActive < $1.lastActive }
        return candidates.last { $0.isNonMixable } ?? candidates.last
    }

    /// "Last in wins: the newest eligible device becomes the route."
    var wantedInput: Port? {
        guard let audio else { return nil }
        guard let session = decider(\.inputs) else { return audio.inputs.last { $0.type != .bluetoothHFP } }
        return availableInputs(of: session).last
    }

    var wantedOutput: Port? {
        guard let audio else { return nil }
        var rest = audio.outputs
        let session = decider(\.outputs)
        if let session {
            let headset = wantedInput.flatMap { $0.type == .bluetoothHFP ? $0.device : nil }
            rest.removeAll { port in
                // The headset that the session records from changes to the allowed profile.
                if port.type == .bluetoothA2DP, port.device == headset { return false }
                return !accepts(session, port, asInput: false)
            }
        }
        let hasSpeaker = rest.contains { $0.type == .speaker }
        if let session, session.category == .playAndRecord {
            // "play-and-record goes to the receiver (earpiece) by default, else to the speaker", unless another port is
            // newer.
            guard !session.configuration.options.contains(.defaultToSpeaker) else {
                return rest.last { $0.type != .receiver } ?? rest.last
            }
            let receivers = rest.filter { $0.type == .receiver }
            let newest = hasSpeaker ? rest.last { $0.type != .receiver } : rest.last
            if newest?.type == .speaker, let receiver = receivers.last { return receiver }
            return newest
        }
        return rest.last { $0.type != .receiver } ?? rest.last
    }

    private func own(_ session: ModelSession) -> Route {
        Route(
            inputs: session.inputs ? audio?.route.inputs ?? [] : [],
            outputs: session.outputs ? audio?.route.outputs ?? [] : [])
    }

    /// The announcements about routes because of that event.
    func routesTold(_ event: Event, since before: ReferenceModel) -> Set<Told> {
        var result: Set<Told> = []
        if case .routeChanged(let reason, let new) = event, let old = before.audio,
            old != new || reason == .wakeFromSleep
        {
            // A new port that will become the route is announced when it is the route.
            let known = Set((old.inputs + old.outputs + new.route.inputs + new.route.outputs).map(\.uid))
            let isComing = [wantedInput, wantedOutput].contains { $0.map { !known.contains($0.uid) } ?? false }
            // An unplugged port that is still the route is announced when the sound has left it.
            let isLeaving =
                reason == .oldDeviceUnavailable
                && [(wantedInput, new.route.inputs.first), (wantedOutput, new.route.outputs.first)].contains {
                    wanted, used in
                    used?.isAvailable == false && wanted != nil && wanted?.uid != used?.uid
                }
            let isQuiet =
                reason == .oldDeviceUnavailable
                ? isLeaving : reason != .wakeFromSleep && old.route == new.route && isComing
            if !isQuiet {
                result.insert(.routed(nil, reason))
                for session in sessions {
                    // A session that the sleep interrupted was active as well.
                    let old = before.session(session.id)
                    let isWoken =
                        reason == .wakeFromSleep
                        && (old?.isPlaying == true || old?.interruption?.reason == .appWasSuspended)
                    if before.own(session) != own(session) || isWoken { result.insert(.routed(session.id, reason)) }
                }
            }
        }
        if case .setCategory(let id, let configuration) = event, let old = before.session(id), old.isPlaying,
            old.configuration != configuration
        {
            result.formUnion([.routed(id, .categoryChange), .routed(nil, .categoryChange)])
        }
        for session in sessions where lacks(session) {
            if let old = before.session(session.id), before.lacks(old) { continue }
            // A missing port is not announced when the daemon first sees the server.
            if case .portsChanged = event, before.audio == nil { continue }
            result.formUnion([
                .routed(session.id, .noSuitableRouteForCategory), .routed(nil, .noSuitableRouteForCategory),
            ])
        }
        return result
    }
}
