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
            isServerAway = true
            if engine.state == .playing || start != nil { servicesLost("the sound server went away") }
            interruption?.resumes = false
        case .servicesReset: isServerAway = false
        // Nobody arbitrates, and nobody would end the interruption or say that the sound server is back.
        case .daemonLost: (interruption, isServerAway) = (nil, false)
        // A new daemon does not let it go on: nobody will say when it may, so it waits for a hand.
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
            // Nothing ends by itself what a device that was taken away began: that is a pause, until it is back.
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
            // Those who wait behind it need not wait for the claim to run out.
            return giveBack(notifyOthers: true)
        }
        order(sound: true)
        let mine = orders
        session.activate { [weak self] result in
            guard let self else { return }
            changing {
                // Taken away again before it could come back: that is no interruption of what sounded, but a pause.
                if case .failure = result, mine == orders { interruption = nil }
                _ = answered(result, to: mine, was.start)
            }
        }
    }

    /// What only one person heard must not go on aloud.
    private func outputsChanged(_ previous: Route, _ current: Route) {
        let gone = previous.outputs.filter { port in !current.outputs.contains { $0.uid == port.uid } }
        guard gone.contains(where: \.type.isWorn) else { return }
        interruption?.resumes = false
        guard engine.state == .playing || start != nil else { return }
        order(sound: false)
        engine.pause()
        resumesOnReplug = true
        // The daemon interrupts the session that is now playing, which keeps its claim; others it leaves to themselves.
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
        // Where the daemon has none either, it says when one comes; until then nothing is tried in vain.
        session.readManager("ServerConnected") { [weak self] in if $0.boolValue == false { self?.isServerAway = true } }
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
