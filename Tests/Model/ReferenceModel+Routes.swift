import PluginAPI
import SessionManager

/// A second, independent implementation of rules §7 and of the options of §2 that concern ports. It follows the
/// text sentence by sentence, and eliminates ports.
extension ReferenceModel {
    /// Whether the category and the options allow a port.
    private func accepts(_ person: Person, _ port: Port, asInput: Bool) -> Bool {
        if asInput {
            guard person.inputs else { return false }
            if port.type == .bluetoothHFP { return person.configuration.options.contains(.allowBluetoothHFP) }
            return true
        }
        guard person.outputs else { return false }
        guard person.category == .playAndRecord else { return true }
        switch port.type {
        case .bluetoothA2DP: return person.configuration.options.contains(.allowBluetoothA2DP)
        case .bluetoothHFP: return person.configuration.options.contains(.allowBluetoothHFP)
        case .airPlay: return person.configuration.options.contains(.allowAirPlay)
        default: return true
        }
    }

    func availableInputs(of person: Person) -> [Port] {
        (audio?.inputs ?? []).filter { accepts(person, $0, asInput: true) }
    }

    /// "The category needs an input (or output) and there is none."
    func lacks(_ person: Person) -> Bool {
        guard person.isPlaying, let audio else { return false }
        if person.inputs, availableInputs(of: person).isEmpty { return true }
        return person.outputs && !audio.outputs.contains { accepts(person, $0, asInput: false) }
    }

    /// "The latest active non-mixable one decides, else the latest active one."
    private func decider(_ needs: (Person) -> Bool) -> Person? {
        let candidates = people.filter { $0.isPlaying && needs($0) }.sorted { $0.lastActive < $1.lastActive }
        return candidates.last { $0.isNonMixable } ?? candidates.last
    }

    /// "Last in wins: the newest eligible device becomes the route."
    var wantedInput: Port? {
        guard let audio else { return nil }
        guard let person = decider(\.inputs) else { return audio.inputs.last { $0.type != .bluetoothHFP } }
        return availableInputs(of: person).last
    }

    var wantedOutput: Port? {
        guard let audio else { return nil }
        var rest = audio.outputs
        let person = decider(\.outputs)
        if let person {
            let headset = wantedInput.flatMap { $0.type == .bluetoothHFP ? $0.device : nil }
            rest.removeAll { port in
                // The headset that the session records from changes to the allowed profile.
                if port.type == .bluetoothA2DP, port.device == headset { return false }
                return !accepts(person, port, asInput: false)
            }
        }
        let hasSpeaker = rest.contains { $0.type == .speaker }
        if let person, person.category == .playAndRecord {
            // "play-and-record goes to the receiver (earpiece) by default, else to the speaker", unless another port is
            // newer.
            guard !person.configuration.options.contains(.defaultToSpeaker) else {
                return rest.last { $0.type != .receiver } ?? rest.last
            }
            let receivers = rest.filter { $0.type == .receiver }
            let newest = hasSpeaker ? rest.last { $0.type != .receiver } : rest.last
            if newest?.type == .speaker, let receiver = receivers.last { return receiver }
            return newest
        }
        return rest.last { $0.type != .receiver } ?? rest.last
    }

    private func own(_ person: Person) -> Route {
        Route(
            inputs: person.inputs ? audio?.route.inputs ?? [] : [],
            outputs: person.outputs ? audio?.route.outputs ?? [] : [])
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
                for person in people {
                    let isWoken = reason == .wakeFromSleep && before.person(person.id)?.isPlaying == true
                    if before.own(person) != own(person) || isWoken { result.insert(.routed(person.id, reason)) }
                }
            }
        }
        if case .setCategory(let id, let configuration) = event, let old = before.person(id), old.isPlaying,
            old.configuration != configuration
        {
            result.formUnion([.routed(id, .categoryChange), .routed(nil, .categoryChange)])
        }
        for person in people where lacks(person) {
            if let old = before.person(person.id), before.lacks(old) { continue }
            // A missing port is not announced when the daemon first sees the server.
            if case .portsChanged = event, before.audio == nil { continue }
            result.formUnion([
                .routed(person.id, .noSuitableRouteForCategory), .routed(nil, .noSuitableRouteForCategory),
            ])
        }
        return result
    }
}
