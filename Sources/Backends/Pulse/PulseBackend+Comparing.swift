import EventLoop
import PluginAPI

/// Differences between two snapshots.
extension PulseBackend {
    /// Whether the route's output is gone and the server has just replaced it by the guard.
    private func hasFallenBack(_ previous: AudioSnapshot, _ current: AudioSnapshot) -> Bool {
        guard model.isOnGuard, let output = previous.route.outputs.first else { return false }
        return !current.availableOutputs.contains { $0.uid == output.uid }
    }

    /// Whether the change from the reported state is complete.
    func change(_ previous: AudioSnapshot, _ current: AudioSnapshot) -> SettleTime.Change {
        let differs = differs(previous, current)
        // Also if the guard is the output meanwhile: a headset that changes its profile is not gone.
        if differs, isIncomplete { return .incomplete }
        // The guard replaces an output only if that is gone.
        guard model.isPipeWire, !hasFallenBack(previous, current) else { return .complete }
        return differs || model.isOnGuard && !previous.isOutputHeld ? .step : .complete
    }

    /// Whether a requested change is known only in part. PulseAudio may answer several requests before it sends the events
    /// that they cause; PipeWire's session manager creates the devices of a headset after its card has changed the profile.
    private var isIncomplete: Bool {
        let now = MonotonicClock.now()
        return model.isDefaultUnknown
            || model.cards.values.contains { requests.isChanging($0, at: now) && model.lacksOutput(of: $0) }
    }

    func differs(_ one: AudioSnapshot, _ other: AudioSnapshot) -> Bool {
        one.route != other.route || one.availableInputs != other.availableInputs
            || one.availableOutputs != other.availableOutputs
    }

    /// If the server uses one of several devices that appeared together, the user chose that one at some time: it gets
    /// priority over devices that were there before, but not over devices that have appeared separately since. This
    /// does not apply if the route's device is gone: then the server had to use another one.
    func preferWhatTheServerFound(_ previous: AudioSnapshot, _ current: AudioSnapshot) -> Bool {
        guard current.isEnumerating else { return false }
        func prefer(_ before: [Port], _ after: [Port], was: [Port], of available: [Port], isInput: Bool) -> Bool {
            guard before.allSatisfy({ old in available.contains { $0.uid == old.uid } }),
                let port = model.losers(after, isInput: isInput).first, requests.ports[port.uid] == nil
            else { return false }
            model.prefer(port, isInput: isInput)
            for newcomer in available where !was.contains(where: { $0.uid == newcomer.uid }) {
                if model.losers([newcomer], isInput: isInput).isEmpty, newcomer.uid != port.uid {
                    model.prefer(newcomer, isInput: isInput)
                }
            }
            return true
        }
        let (old, new) = (previous.route, current.route)
        let output = prefer(
            old.outputs, new.outputs, was: previous.availableOutputs, of: current.availableOutputs, isInput: false)
        let input = prefer(
            old.inputs, new.inputs, was: previous.availableInputs, of: current.availableInputs, isInput: true)
        return output || input
    }

    /// Ports of the reported route whose device is gone because its card uses another profile now.
    func reprofiled() -> Set<String> {
        let devices = [model.output, model.input].compactMap { $0 }
        let cards = toldDevices.filter { old in
            let isGone = (old.isInput ? model.sources : model.sinks)[old.index] == nil
            return isGone && old.card != noIndex && old.activePort != nil
                && devices.contains {
                    $0.card == old.card && $0.isInput == old.isInput && $0.activePort == old.activePort
                }
        }
        .map(\.card)
        return Set(toldDevices.filter { cards.contains($0.card) }.compactMap { $0.active?.uid })
    }

    /// Ports of the reported route whose device was replaced by another one of the same name.
    func returned() -> Set<String> {
        let gone = toldDevices.filter { ($0.isInput ? model.sources : model.sinks)[$0.index] == nil }
        return Set(
            gone.compactMap { old in
                old.active.flatMap { model.find($0.uid, isInput: old.isInput) == nil ? nil : $0.uid }
            })
    }
}
