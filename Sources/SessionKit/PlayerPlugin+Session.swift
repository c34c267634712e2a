import DBus
import EventLoop
import PluginAPI
import SessionBus

// Events of the session, and how the sound reacts.
extension PlayerPlugin {
    func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .session(let event): heard(event)
        case .servicesLost:
            isServerAway = true
            if engine.state == .playing || start != nil { servicesLost("the sound server is disconnected") }
            interruption?.resumes = false
        case .servicesReset: isServerAway = false
        // Without a daemon nobody would end the interruption, or report that the sound server is back.
        case .daemonLost: (interruption, isServerAway) = (nil, false)
        // A new daemon does not know this interruption and would never end it: the player waits for the user.
        case .refused:
            guard session.path != nil else { break }
            order(sound: false)
            engine.pause()
        case .registered: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan(let reason, _, _, _):
            let wasPlaying = engine.state == .playing || start != nil
            engine.pause()
            lull.disarm()
            starter.disarm()
            // An interruption by an unplugged device does not end by itself: it is a pause, until the device is back.
            if reason == .routeDisconnected, wasPlaying { resumesOnReplug = true }
            interruption =
                reason == .routeDisconnected ? nil : Interruption(resumes: wasPlaying, start: start)
            start = nil
        case .interruptionEnded(let shouldResume, _, _): interruptionEnded(shouldResume)
        case .duckingChanged(true, let gain):
            hold.disarm()
            engine.duck(to: gain, over: session.ducking.attack)
        case .duckingChanged(false, _): hold.arm(after: session.ducking.hold)
        case .mutedChanged(let muted): engine.isMuted = muted
        case .routeChanged(.oldDeviceUnavailable, let previous, let current): outputsChanged(previous, current)
        case .routeChanged, .silenceSecondaryAudioHint: break
        }
    }

    private func interruptionEnded(_ shouldResume: Bool) {
        guard let was = interruption ?? (resumesOnReplug ? Interruption(resumes: true) : nil) else { return }
        guard shouldResume, was.resumes, !hasFailed else {
            interruption = nil
            // Sessions that wait for this one need not wait until its claim expires.
            return giveBack(notifyOthers: true)
        }
        order(sound: true)
        let mine = orders
        session.activate { [weak self] result in
            guard let self else { return }
            changing {
                // Interrupted again before it could resume: the sound was not interrupted a second time, it stays
                // paused.
                if case .failure = result, mine == orders { interruption = nil }
                _ = answered(result, to: mine, was.start)
            }
        }
    }

    /// Private sound must not continue on a speaker.
    private func outputsChanged(_ previous: Route, _ current: Route) {
        let gone = previous.outputs.filter { port in !current.outputs.contains { $0.uid == port.uid } }
        guard gone.contains(where: \.type.isWorn) else { return }
        interruption?.resumes = false
        guard engine.state == .playing || start != nil else { return }
        order(sound: false)
        engine.pause()
        resumesOnReplug = true
        // The daemon interrupts only the now-playing session, which keeps its claim.
        let mixes = session.description.options.contains(.mixWithOthers) || session.description.category == .ambient
        if mixes { giveBack(notifyOthers: false) }
    }

    func servicesLost(_ message: String) {
        order(sound: false)
        engine.pause()
        interruption?.resumes = false
        giveBack(notifyOthers: false)
        onServicesLost?(message)
        guard !isServerAway else { return }
        // If the daemon has no sound server either, it reports when one starts; until then no attempt is useful.
        session.readManager("ServerConnected") { [weak self] in if $0.boolValue == false { self?.isServerAway = true } }
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
