import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus
import SessionKit

// Events of the session and their consequences for the sound.
extension PlayerPlugin {
    func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        case .servicesLost:
            let effects = driver.decide(.servicesLost)
            driver.carry(out: effects)
            if !effects.isEmpty { onServicesLost?("the sound server is disconnected") }
        case .servicesReset: driver.take(.servicesReset)
        case .daemonLost: driver.take(.daemonLost)
        // A new daemon does not know this interruption and would never end it: the player waits for the user.
        case .refused: if session.path != nil { driver.take(.expelled) }
        case .registered: driver.registered()
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, _, _): driver.take(.began(reason))
        case .interruptionEnded(let shouldResume, _, _):
            driver.take(.ended(shouldResume: shouldResume, canResume: !hasFailed))
        case .duckingChanged(true, let gain):
            hold.disarm()
            engine.duck(to: gain, over: session.ducking.attack)
        case .duckingChanged(false, _): hold.arm(after: session.ducking.hold)
        case .mutedChanged: muteEngine()
        case .routeChanged(.oldDeviceUnavailable, let previous, let current): outputsChanged(previous, current)
        case .routeChanged, .silenceSecondaryAudioHint: break
        }
    }

    /// Private sound must not continue on a speaker. The daemon interrupts the now-playing session for that. Sessions that
    /// mix cannot be it, and pause by themselves. An alarm, or the voice of a call, continues: it must be heard.
    private func outputsChanged(_ previous: Route, _ current: Route) {
        let description = session.description
        let mixes = description.options.contains(.mixWithOthers) || description.category == .ambient
        let gone = previous.outputs.filter { port in !current.outputs.contains { $0.uid == port.uid } }
        if mixes, description.sessionClass == .app, gone.contains(where: \.type.isWorn) { driver.take(.deviceGone) }
    }

    func servicesLost(_ message: String) {
        driver.take(.engineLost)
        onServicesLost?(message)
        guard !grant.isServerAway else { return }
        // If the daemon has no sound server either, it reports when one starts; until then no attempt is useful.
        session.readManager("ServerConnected") { [weak self] in
            if let self, $0.boolValue == false { driver.take(.serverIsAway) }
        }
    }
}

extension PortType {
    /// Whether only the user can hear it.
    fileprivate var isWorn: Bool {
        switch self {
        case .headphones, .bluetoothA2DP, .bluetoothHFP, .usbAudio: true
        case .lineIn, .microphoneBuiltIn, .microphoneWired, .lineOut, .receiver, .speaker, .hdmi, .airPlay,
            .displayPort, .carAudio, .virtual, .pci:
            false
        }
    }
}
