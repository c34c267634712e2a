import Glibc
import SessionKit

/// Voice notes: records a note, plays it, and is a player of the desktop meanwhile.
///
///     example-voice-notes record FILE SECONDS
///     example-voice-notes play FILE
@main
enum VoiceNotes {
    static func main() async throws {
        let words = CommandLine.arguments
        if words.count == 4, words[1] == "record", let seconds = Double(words[3]) {
            try await record(words[2], seconds)
        } else if words.count == 3, words[1] == "play" {
            try await play(words[2])
        } else {
            say("Usage: \(words[0]) record FILE SECONDS | play FILE")
            exit(64)
        }
    }

    private static func record(_ file: String, _ seconds: Double) async throws {
        let session = try await AudioSession(name: "Voice notes", category: .record)
        try await session.setActive(true)
        let recorder = try AudioRecorder(url: file, settings: RecordingSettings(channels: 1), session: session)
        let finishes = recorder.finishes
        try await recorder.record(forDuration: seconds)
        say("recording")
        for await isWhole in finishes {
            say(isWhole ? "recorded \(file)" : "the end is missing")
            break
        }
        try await session.setActive(false, options: .notifyOthersOnDeactivation)
    }

    private static func play(_ file: String) async throws {
        let session = try await AudioSession(name: "Voice notes", category: .playback, mode: .spokenAudio)
        let interruptions = session.interruptions
        try await session.setActive(true)
        let player = try await AudioPlayer(contentsOf: file, session: session)
        let finishes = player.finishes
        offerCommands(player)
        try await player.play()
        show(file, player)
        say("playing")
        let watch = Task {
            for await interruption in interruptions {
                switch interruption {
                case .began(_, let name): say("silent: \(name) has the sound")
                case .ended(let options) where options.contains(.shouldResume):
                    try await session.setActive(true)
                    try await player.play()
                    say("playing on")
                case .ended: say("paused")
                }
                show(file, player)
            }
        }
        for await _ in finishes { break }
        watch.cancel()
        NowPlayingInfoCenter.default().nowPlayingInfo = nil
        try await session.setActive(false, options: .notifyOthersOnDeactivation)
        say("finished")
    }

    private static func offerCommands(_ player: AudioPlayer) {
        let center = RemoteCommandCenter.shared()
        center.playCommand.addTarget { _ in
            do {
                try await player.play()
            } catch {
                return .commandFailed
            }
            say("play")
            NowPlayingInfoCenter.default().playbackState = .playing
            return .success
        }
        center.pauseCommand.addTarget { _ in
            await player.pause()
            say("pause")
            NowPlayingInfoCenter.default().playbackState = .paused
            return .success
        }
        center.changePlaybackPositionCommand.addTarget { event in
            player.currentTime = event.positionTime
            say("position \(Int(event.positionTime))")
            return .success
        }
    }

    private static func show(_ file: String, _ player: AudioPlayer) {
        let center = NowPlayingInfoCenter.default()
        center.nowPlayingInfo = [
            NowPlayingInfo.title: file.split(separator: "/").last.map(String.init) ?? file,
            NowPlayingInfo.playbackDuration: player.duration,
            NowPlayingInfo.elapsedPlaybackTime: player.currentTime,
        ]
        center.playbackState = player.isPlaying ? .playing : .paused
    }

    /// Prints a line immediately, also to a pipe.
    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
