import PluginAPI

/// What is another than it was.
extension PulseBackend {
    /// Whether the server has just put the guard in the place of the route's output, and that is gone.
    func hasFallenBack(_ previous: AudioSnapshot, _ current: AudioSnapshot) -> Bool {
        guard model.isOnGuard, let output = previous.route.outputs.first else { return false }
        return !current.availableOutputs.contains { $0.uid == output.uid }
    }

    func differs(_ one: AudioSnapshot, _ other: AudioSnapshot) -> Bool {
        one.route != other.route || one.availableInputs != other.availableInputs
            || one.availableOutputs != other.availableOutputs
    }

    /// Which of the devices that came together the server took: somebody chose it, some time. Where the route's device went
    /// for good, it took what was left.
    func foundChosen(_ previous: AudioSnapshot, _ current: AudioSnapshot) -> (output: Port?, input: Port?) {
        func found(_ before: [Port], _ after: [Port], of available: [Port], isInput: Bool) -> Port? {
            guard before.allSatisfy({ old in available.contains { $0.uid == old.uid } }) else { return nil }
            return model.losers(after, isInput: isInput).first { requested[$0.uid] == nil }
        }
        let (old, new) = (previous.route, current.route)
        return (
            found(old.outputs, new.outputs, of: current.availableOutputs, isInput: false),
            found(old.inputs, new.inputs, of: current.availableInputs, isInput: true)
        )
    }

    /// Ports of the told route whose device went because its card has another profile now.
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

    /// Ports of the told route whose device is another of the same name than the one that was told.
    func returned() -> Set<String> {
        let gone = toldDevices.filter { ($0.isInput ? model.sources : model.sinks)[$0.index] == nil }
        return Set(
            gone.compactMap { old in
                old.active.flatMap { model.find($0.uid, isInput: old.isInput) == nil ? nil : $0.uid }
            })
    }
}
