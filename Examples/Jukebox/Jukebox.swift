import Glibc
import SessionKit

/// A jukebox: plays an album of the music library, or with --pick what a person picks, and says what it plays. Without a name, it
/// lists the albums.
@main
enum Jukebox {
    static func main() async throws {
        guard CommandLine.arguments.count > 1 else {
            for album in try await MediaQuery.albums.collections {
                say("\(album.title), \(album.artist): \(album.count) songs")
            }
            return
        }
        // A player of its own, in the session of the jukebox: it ends with the jukebox.
        let player = MusicPlayer.applicationMusicPlayer
        let changes = player.changes
        if CommandLine.arguments[1] == "--pick" {
            var picker = MediaPicker(mediaTypes: [.music])
            picker.allowsPickingMultipleItems = true
            picker.prompt = "Music for the jukebox"
            guard let songs = try await picker.pick() else { return say("cancelled") }
            try await player.setQueue(with: songs)
        } else {
            try await player.setQueue(with: .albums.filter(.albumTitle, is: CommandLine.arguments[1]))
        }
        try await player.play()
        for await change in changes {
            switch change {
            case .nowPlayingItem:
                guard let item = try await player.nowPlayingItem else { continue }
                say("\(item.albumTrackNumber). \(item.title) (\(Int(item.playbackDuration)) s)")
            case .playbackState(let state):
                say(state.rawValue)
                // All songs were played.
                if state == .stopped { return }
            case .itemFailed(let reason): say("not played: \(reason)")
            case .volume, .isPreparedToPlay, .queue: break
            }
        }
    }

    /// Prints a line immediately, also to a pipe.
    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
