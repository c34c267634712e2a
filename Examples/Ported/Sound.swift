import AVNames
import Foundation

extension URL: MediaAddress {}

/// The sound of the app: records notes, plays them, and plays music behind them. The lock screen controls the note.
@MainActor
final class Sound {
    private(set) var player: AVAudioPlayer?
    private(set) var recorder: AVAudioRecorder?
    private(set) var log: [String] = []
    private let music = MPMusicPlayerController.applicationMusicPlayer
    private var observers: [Task<Void, Never>] = []
    private let session: AVAudioSession

    init() async throws {
        session = try await AVAudioSession.sharedInstance()
        watchSession()
        offerCommands()
    }

    // MARK: Recording

    func record(to url: URL, seconds: Double) async throws {
        try await session.setCategory(.playAndRecord, mode: .default, options: [.defaultToSpeaker])
        try await session.setActive(true)
        let recorder = try AVAudioRecorder(
            url: url,
            settings: RecordingSettings(format: .wav, sampleRate: 44_100, channels: 1))
        watch(recorder)
        recorder.isMeteringEnabled = true
        try await recorder.record(forDuration: seconds)
        self.recorder = recorder
        say("recording with \(try await session.currentRoute.inputs.first?.portName ?? "nothing")")
    }

    func recordedLevel() async -> Double {
        await recorder?.updateMeters()
        return recorder?.averagePower(forChannel: 0) ?? -160
    }

    func stopRecording() async {
        await recorder?.stop()
    }

    // MARK: Playing

    func play(_ url: URL) async throws {
        try await session.setCategory(.playback, mode: .spokenAudio)
        try await session.setActive(true)
        let player = try await AVAudioPlayer(contentsOf: url)
        watch(player)
        player.volume = 0.8
        player.pan = 0
        player.numberOfLoops = 0
        player.enableRate = true
        player.rate = 1
        await player.prepareToPlay()
        self.player = player
        try await player.play()
        show()
        say("playing \(Int(player.duration.rounded())) s")
    }

    func skip(_ seconds: Double) {
        guard let player else { return }
        player.currentTime = min(max(0, player.currentTime + seconds), player.duration)
        show()
    }

    func playMusic(_ songs: MPMediaItemCollection) async throws {
        try await music.setQueue(with: songs)
        try await music.setShuffleMode(.songs)
        try await music.setRepeatMode(.all)
        try await music.play()
    }

    private func finish() async {
        player = nil
        MPNowPlayingInfoCenter.default().nowPlayingInfo = nil
        try? await session.setActive(false, options: .notifyOthersOnDeactivation)
    }

    // MARK: Lock screen

    private func offerCommands() {
        let center = MPRemoteCommandCenter.shared()
        center.playCommand.addTarget { [weak self] _ in
            guard let player = await self?.player, (try? await player.play()) != nil else { return .commandFailed }
            await self?.show()
            return .success
        }
        center.pauseCommand.addTarget { [weak self] _ in
            await self?.player?.pause()
            await self?.show()
            return .success
        }
        center.skipForwardCommand.preferredIntervals = [15]
        center.skipForwardCommand.addTarget { [weak self] _ in
            await self?.skip(15)
            return .success
        }
        center.skipBackwardCommand.preferredIntervals = [15]
        center.skipBackwardCommand.addTarget { [weak self] _ in
            await self?.skip(-15)
            return .success
        }
        center.changePlaybackPositionCommand.addTarget { [weak self] event in
            await self?.player?.currentTime = event.positionTime
            await self?.show()
            return .success
        }
    }

    private func show() {
        guard let player else { return }
        let center = MPNowPlayingInfoCenter.default()
        center.nowPlayingInfo = [
            MPMediaItemPropertyTitle: player.url.flatMap(URL.init)?.deletingPathExtension().lastPathComponent ?? "Note",
            MPMediaItemPropertyArtist: "Voice notes",
            MPMediaItemPropertyPlaybackDuration: player.duration,
            MPNowPlayingInfoPropertyElapsedPlaybackTime: player.currentTime,
            MPNowPlayingInfoPropertyPlaybackRate: player.isPlaying ? 1.0 : 0.0,
        ]
        center.playbackState = player.isPlaying ? .playing : .paused
    }

    // MARK: Session

    private func watchSession() {
        let (interruptions, changes) = (session.interruptions, session.routeChanges)
        observers = [
            Task { [weak self] in
                for await interruption in interruptions { await self?.interrupted(interruption) }
            },
            Task { [weak self] in
                for await change in changes { self?.routeChanged(change) }
            },
        ]
    }

    private func interrupted(_ interruption: AVAudioSession.Interruption) async {
        switch interruption {
        case .began:
            say("interrupted")
            show()
        case .ended(let options):
            guard options.contains(.shouldResume) else { return }
            try? await session.setActive(true)
            try? await player?.play()
            say("playing on")
            show()
        }
    }

    private func routeChanged(_ change: AVAudioSession.RouteChange) {
        guard change.reason == .oldDeviceUnavailable else { return }
        say("headphones are gone")
    }

    private func say(_ line: String) {
        log.append(line)
        print(line)
        fflush(nil)
    }
}

extension Sound {
    func watch(_ player: AVAudioPlayer) {
        let (finishes, errors) = (player.finishes, player.decodeErrors)
        observers.append(
            Task {
                for await flag in finishes {
                    say(flag ? "finished" : "not finished")
                    await finish()
                }
            })
        observers.append(Task { for await _ in errors { say("error") } })
    }

    func watch(_ recorder: AVAudioRecorder) {
        let finishes = recorder.finishes
        observers.append(
            Task {
                for await flag in finishes {
                    say(flag ? "recorded" : "the end is missing")
                    try? await session.setActive(false, options: .notifyOthersOnDeactivation)
                }
            })
    }
}

extension Sound {
    func pickMusic() -> MPMediaPickerController {
        var picker = MPMediaPickerController(mediaTypes: [.music])
        picker.allowsPickingMultipleItems = true
        picker.prompt = "Music behind the notes"
        return picker
    }

    func pickAndPlayMusic() async throws {
        guard let songs = try await pickMusic().pick() else { return }
        try await playMusic(songs)
    }
}
