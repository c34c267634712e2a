import PluginAPI

/// Finds the reason of a route change from the state before and after.
struct RouteJudge {
    /// The reported change.
    struct Verdict: Equatable {
        let reason: RouteChangeReason
        let previous: Route
        let current: Route
    }

    let previous: AudioSnapshot
    let current: AudioSnapshot
    /// Ports that appeared so recently that they become the route because of that.
    var recent: Set<String> = []
    /// The requested ports, by uid, with the reason to report.
    var requested: [String: RouteChangeReason] = [:]
    /// Ports of the previous route whose card switched to another profile: the name is gone, but the device is not.
    var reprofiled: Set<String> = []
    /// Ports of the previous route whose device was removed and is back: the name is the same, but it was gone.
    var returned: Set<String> = []

    /// Nil if nothing must be reported. One cause has one reason; a removed device has priority over a new one, because
    /// the pause that follows from it must not be missed.
    var verdict: Verdict? {
        let before = Set((previous.availableInputs + previous.availableOutputs).map(\.uid))
        let after = Set((current.availableInputs + current.availableOutputs).map(\.uid))
        let appeared = after.subtracting(before)
        func tell(_ reason: RouteChangeReason) -> Verdict {
            Verdict(reason: reason, previous: previous.route, current: current.route)
        }
        if previous.route == current.route { return appeared.isEmpty ? nil : tell(.newDeviceAvailable) }
        let used = (previous.route.inputs + previous.route.outputs).filter(\.isAvailable).map(\.uid)
        let uses = (current.route.inputs + current.route.outputs).map(\.uid)
        let left = after.subtracting(returned.subtracting(uses))
        let went = Set(used).subtracting(left).subtracting(reprofiled).subtracting(headsets)
        if !went.isEmpty { return tell(.oldDeviceUnavailable) }
        let asked = (current.route.outputs + current.route.inputs).compactMap { requested[$0.uid] }
        if let reason = asked.first, reprofiled.isEmpty == false || !headsets.isEmpty { return tell(reason) }
        if !reprofiled.isEmpty || !headsets.isEmpty { return tell(.routeConfigurationChange) }
        if used == uses { return tell(appeared.isEmpty ? .routeConfigurationChange : .newDeviceAvailable) }
        let added = Set(uses).subtracting(used)
        for uid in uses where added.contains(uid) {
            if let reason = requested[uid] { return tell(reason) }
        }
        if !added.isDisjoint(with: appeared.union(recent)) { return tell(.newDeviceAvailable) }
        // While the server switches to a requested port, there may be none for a moment.
        if uses.isEmpty, let reason = requested.values.first { return tell(reason) }
        // The user chose another device that existed before. AVAudioSession has no number for this.
        return tell(.unknown)
    }

    /// The output that the user or another program selected although the previous one still exists; nil: none was.
    var chosenOutput: Port? {
        chosen(previous.route.outputs, current.route.outputs, of: current.availableOutputs)
    }

    var chosenInput: Port? { chosen(previous.route.inputs, current.route.inputs, of: current.availableInputs) }

    private func chosen(_ before: [Port], _ after: [Port], of available: [Port]) -> Port? {
        guard let old = before.first, let new = after.first, old.uid != new.uid, requested[new.uid] == nil,
            available.contains(where: { $0.uid == old.uid }), old.isAvailable, !returned.contains(old.uid),
            available.contains(where: { $0.uid == new.uid })
        else { return nil }
        return new
    }

    /// Ports of the previous route whose headset uses another profile now.
    private var headsets: Set<String> {
        let present = Set((current.availableOutputs + current.availableInputs).map(\.uid))
        let used = (previous.route.inputs + previous.route.outputs).filter { port in
            guard port.type == .bluetoothA2DP || port.type == .bluetoothHFP, !present.contains(port.uid) else {
                return false
            }
            return current.availableOutputs.contains {
                ($0.type == .bluetoothA2DP || $0.type == .bluetoothHFP) && $0.device == port.device
            }
        }
        return Set(used.map(\.uid))
    }
}
