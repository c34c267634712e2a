import PluginAPI

/// Tells why a route changed from what was there before and after.
struct RouteJudge {
    /// What is told of a change.
    struct Verdict: Equatable {
        let reason: RouteChangeReason
        let previous: Route
        let current: Route
    }

    let previous: AudioSnapshot
    let current: AudioSnapshot
    /// Ports that appeared so lately that their becoming the route is that appearance's doing.
    var recent: Set<String> = []
    /// The port somebody asked for through us, and what that is called.
    var requested: (uid: String, reason: RouteChangeReason)?
    /// Ports of the previous route whose card goes on under another profile: gone by name, not in fact.
    var reprofiled: Set<String> = []

    /// Nil where nobody needs to hear of it. One cause has one reason; what went weighs more than what came, because
    /// what follows from it (a pause) must not be missed.
    var verdict: Verdict? {
        let before = Set((previous.availableInputs + previous.availableOutputs).map(\.uid))
        let after = Set((current.availableInputs + current.availableOutputs).map(\.uid))
        let appeared = after.subtracting(before)
        func tell(_ reason: RouteChangeReason) -> Verdict {
            Verdict(reason: reason, previous: previous.route, current: current.route)
        }
        if previous.route == current.route { return appeared.isEmpty ? nil : tell(.newDeviceAvailable) }
        let used = (previous.route.inputs + previous.route.outputs).filter(\.isAvailable).map(\.uid)
        let went = Set(used).subtracting(after).subtracting(reprofiled)
        if !went.isEmpty { return tell(.oldDeviceUnavailable) }
        if !reprofiled.isEmpty { return tell(.routeConfigurationChange) }
        let uses = (current.route.inputs + current.route.outputs).map(\.uid)
        if used == uses { return tell(appeared.isEmpty ? .routeConfigurationChange : .newDeviceAvailable) }
        let added = Set(uses).subtracting(used)
        if let requested, added.contains(requested.uid) { return tell(requested.reason) }
        if !added.isDisjoint(with: appeared.union(recent)) { return tell(.newDeviceAvailable) }
        // Somebody chose another device that was there already: the platform has no number for it.
        return tell(.unknown)
    }
}
