import Glibc
import SessionKit

/// Plays an episode of a podcast while it is fetched, and keeps it: the next time, it plays without the network.
@main
enum Episode {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else {
            say("usage: example-episode URL")
            exit(64)
        }
        let asset = CachedAsset(CommandLine.arguments[1])
        let events = asset.events
        let address = try await asset.open()
        let isHere = address.hasPrefix("file:")
        say(isHere ? "it is here" : "it plays while it is fetched")
        let session = try await AudioSession(name: "Episode", category: .playback, mode: .spokenAudio)
        let player = try await AudioPlayer(contentsOf: address, session: session)
        let finishes = player.finishes
        try await player.play()
        async let end: Void = follow(events, isHere)
        for await _ in finishes { break }
        say("played")
        // The events end when all of it is here, or cannot be fetched.
        await end
        await asset.close()
    }

    private static func follow(_ events: AsyncStream<CachedAsset.Event>, _ isHere: Bool) async {
        guard !isHere else { return }
        for await event in events {
            switch event {
            case .progressed(let ranges, let size) where size > 0:
                let here = ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
                say("\(here * 100 / size) % is here")
            case .progressed: break
            case .stalled(let isLoading): say(isLoading ? "loading" : "going on")
            case .completed(let path): return say("kept as \(path)")
            case .failed(let error): return say("not all of it can be fetched: \(error.message)")
            }
        }
    }

    /// Prints a line immediately, also to a pipe.
    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
