import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus
import SessionKit

// What the session is told, and what the sound does then.
extension PlayerPlugin {
    func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        case .servicesLost:
            let effects = decide(.servicesLost)
            carry(out: effects)
            if !effects.isEmpty { onServicesLost?("the sound server went away") }
        case .servicesReset: _ = take(.servicesReset)
        case .daemonLost: _ = take(.daemonLost)
        // A new daemon does not let it go on: nobody will say when it may, so it waits for a hand.
        case .refused: if session.path != nil { _ = take(.expelled) }
        case .registered: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, _, _): _ = take(.began(reason))
        case .interruptionEnded(let shouldResume, _, _):
            _ = take(.ended(shouldResume: shouldResume, canResume: !hasFailed))
        case .duckingChanged(true, let gain):
            hold.disarm()
            engine.duck(to: gain, over: session.ducking.attack)
        case .duckingChanged(false, _): hold.arm(after: session.ducking.hold)
        case .mutedChanged(let muted): engine.isMuted = muted
        case .routeChanged(.oldDeviceUnavailable, let previous, let current): outputsChanged(previous, current)
        case .routeChanged, .silenceSecondaryAudioHint: break
        }
    }

    /// What only one person heard must not go on aloud.
    private func outputsChanged(_ previous: Route, _ current: Route) {
        let gone = previous.outputs.filter { port in !current.outputs.contains { $0.uid == port.uid } }
        guard gone.contains(where: \.type.isWorn) else { return }
        // The daemon interrupts the session that is now playing, which keeps its claim; others it leaves to themselves.
        let mixes = session.description.options.contains(.mixWithOthers) || session.description.category == .ambient
        _ = take(.deviceGone(givesBack: mixes))
    }

    func servicesLost(_ message: String) {
        _ = take(.engineLost)
        onServicesLost?(message)
        guard !grant.isServerAway else { return }
        // Where the daemon has none either, it says when one comes; until then nothing is tried in vain.
        session.readManager("ServerConnected") { [weak self] in
            if let self, $0.boolValue == false { _ = take(.serverIsAway) }
        }
    }
}

extension PortType {
    /// Whether it is heard by its wearer alone.
    fileprivate var isWorn: Bool {
        switch self {
        case .headphones, .bluetoothA2DP, .bluetoothHFP, .usbAudio: true
        case .lineIn, .microphoneBuiltIn, .microphoneWired, .lineOut, .receiver, .speaker, .hdmi, .airPlay,
            .displayPort, .carAudio, .virtual, .pci:
            false
        }
    }
}
