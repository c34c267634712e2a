import AVNames
import Foundation

/// The sound of the app: records notes, plays them, and plays music behind them. The lock screen controls the note.
@MainActor
final class Sound: NSObject {
    private(set) var player: AVAudioPlayer?
    private(set) var recorder: AVAudioRecorder?
    private(set) var log: [String] = []
    private let music = MPMusicPlayerController.applicationMusicPlayer
    private var observers: [NSObjectProtocol] = []
    private let session = AVAudioSession.sharedInstance()

    override init() {
        super.init()
        watchSession()
        offerCommands()
    }

    // MARK: Recording

    func record(to url: URL, seconds: Double) throws {
        try session.setCategory(.playAndRecord, mode: .default, options: [.defaultToSpeaker])
        try session.setActive(true)
        let recorder = try AVAudioRecorder(
            url: url,
            settings: [AVFormatIDKey: kAudioFormatLinearPCM, AVSampleRateKey: 44_100, AVNumberOfChannelsKey: 1])
        recorder.delegate = self
        recorder.isMeteringEnabled = true
        recorder.record(forDuration: seconds)
        self.recorder = recorder
        say("recording with \(session.currentRoute.inputs.first?.portName ?? "nothing")")
    }

    var recordedLevel: Float {
        recorder?.updateMeters()
        return recorder?.averagePower(forChannel: 0) ?? -160
    }

    func stopRecording() {
        recorder?.stop()
    }

    // MARK: Playing

    func play(_ url: URL) throws {
        try session.setCategory(.playback, mode: .spokenAudio)
        try session.setActive(true)
        let player = try AVAudioPlayer(contentsOf: url)
        player.delegate = self
        player.volume = 0.8
        player.pan = 0
        player.numberOfLoops = 0
        player.enableRate = true
        player.rate = 1
        player.prepareToPlay()
        self.player = player
        player.play()
        show()
        say("playing \(Int(player.duration.rounded())) s")
    }

    func skip(_ seconds: Double) {
        guard let player else { return }
        player.currentTime = min(max(0, player.currentTime + seconds), player.duration)
        show()
    }

    func playMusic(_ songs: MPMediaItemCollection) {
        music.setQueue(with: songs)
        music.shuffleMode = .songs
        music.repeatMode = .all
        music.play()
    }

    private func finish() {
        player = nil
        MPNowPlayingInfoCenter.default().nowPlayingInfo = nil
        try? session.setActive(false, options: .notifyOthersOnDeactivation)
    }

    // MARK: Lock screen

    private func offerCommands() {
        let center = MPRemoteCommandCenter.shared()
        center.playCommand.addTarget { [weak self] _ in
            guard let player = self?.player, player.play() else { return .commandFailed }
            self?.show()
            return .success
        }
        center.pauseCommand.addTarget { [weak self] _ in
            self?.player?.pause()
            self?.show()
            return .success
        }
        center.skipForwardCommand.preferredIntervals = [15]
        center.skipForwardCommand.addTarget { [weak self] _ in
            self?.skip(15)
            return .success
        }
        center.skipBackwardCommand.preferredIntervals = [15]
        center.skipBackwardCommand.addTarget { [weak self] _ in
            self?.skip(-15)
            return .success
        }
        center.changePlaybackPositionCommand.addTarget { [weak self] event in
            guard let event = event as? MPChangePlaybackPositionCommandEvent else { return .commandFailed }
            self?.player?.currentTime = event.positionTime
            self?.show()
            return .success
        }
    }

    private func show() {
        guard let player else { return }
        let center = MPNowPlayingInfoCenter.default()
        center.nowPlayingInfo = [
            MPMediaItemPropertyTitle: player.url?.deletingPathExtension().lastPathComponent ?? "Note",
            MPMediaItemPropertyArtist: "Voice notes",
            MPMediaItemPropertyPlaybackDuration: player.duration,
            MPNowPlayingInfoPropertyElapsedPlaybackTime: player.currentTime,
            MPNowPlayingInfoPropertyPlaybackRate: player.isPlaying ? 1.0 : 0.0,
        ]
        center.playbackState = player.isPlaying ? .playing : .paused
    }

    // MARK: Session

    private func watchSession() {
        let center = NotificationCenter.default
        observers = [
            center.addObserver(forName: AVAudioSession.interruptionNotification, object: session, queue: .main) {
                [weak self] note in
                nonisolated(unsafe) let note = note
                MainActor.assumeIsolated { self?.interrupted(note) }
            },
            center.addObserver(forName: AVAudioSession.routeChangeNotification, object: session, queue: .main) {
                [weak self] note in
                nonisolated(unsafe) let note = note
                MainActor.assumeIsolated { self?.routeChanged(note) }
            },
        ]
    }

    private func interrupted(_ note: Notification) {
        guard let value = note.userInfo?[AVAudioSessionInterruptionTypeKey] as? UInt,
            let type = AVAudioSession.InterruptionType(rawValue: value)
        else { return }
        switch type {
        case .began:
            say("interrupted")
            show()
        case .ended:
            let value = note.userInfo?[AVAudioSessionInterruptionOptionKey] as? UInt ?? 0
            guard AVAudioSession.InterruptionOptions(rawValue: value).contains(.shouldResume) else { return }
            try? session.setActive(true)
            player?.play()
            say("playing on")
            show()
        @unknown default: break
        }
    }

    private func routeChanged(_ note: Notification) {
        guard let value = note.userInfo?[AVAudioSessionRouteChangeReasonKey] as? UInt,
            AVAudioSession.RouteChangeReason(rawValue: value) == .oldDeviceUnavailable
        else { return }
        say("headphones are gone")
    }

    private func say(_ line: String) {
        log.append(line)
        print(line)
        fflush(nil)
    }
}

extension Sound: AVAudioPlayerDelegate, AVAudioRecorderDelegate {
    nonisolated func audioPlayerDidFinishPlaying(_ player: AVAudioPlayer, successfully flag: Bool) {
        Task { @MainActor in
            say(flag ? "finished" : "not finished")
            finish()
        }
    }

    nonisolated func audioPlayerDecodeErrorDidOccur(_ player: AVAudioPlayer, error: (any Error)?) {
        Task { @MainActor in say("error") }
    }

    nonisolated func audioRecorderDidFinishRecording(_ recorder: AVAudioRecorder, successfully flag: Bool) {
        Task { @MainActor in
            say(flag ? "recorded" : "the end is missing")
            try? session.setActive(false, options: .notifyOthersOnDeactivation)
        }
    }
}

extension Sound: MPMediaPickerControllerDelegate {
    func pickMusic() -> MPMediaPickerController {
        let picker = MPMediaPickerController(mediaTypes: .music)
        picker.allowsPickingMultipleItems = true
        picker.prompt = "Music behind the notes"
        picker.delegate = self
        return picker
    }

    nonisolated func mediaPicker(_ picker: MPMediaPickerController, didPickMediaItems songs: MPMediaItemCollection) {
        Task { @MainActor in
            picker.dismiss(animated: true)
            playMusic(songs)
        }
    }

    nonisolated func mediaPickerDidCancel(_ picker: MPMediaPickerController) {
        Task { @MainActor in picker.dismiss(animated: true) }
    }
}
