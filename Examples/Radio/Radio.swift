import Glibc
import SessionKit

/// An app with a session. A real radio would start and stop its sound where this one prints.
@main
enum Radio {
    static func main() async throws {
        let session = try await AudioSession(name: "Radio", category: .playback)
        let interruptions = session.interruptions
        let routeChanges = session.routeChanges
        let servicesEvents = session.mediaServicesEvents
        try await session.setActive(true)
        say("playing")
        await withTaskGroup { group in
            group.addTask { for await interruption in interruptions { await react(to: interruption, session) } }
            group.addTask {
                for await change in routeChanges where change.reason == .oldDeviceUnavailable {
                    say("paused: \(change.previousRoute.outputs.map(\.name).joined(separator: ", ")) is gone")
                }
            }
            group.addTask {
                for await event in servicesEvents { say(event == .lost ? "services lost" : "services reset") }
            }
        }
        say("the bus connection was lost")
    }

    private static func react(to interruption: AudioSession.Interruption, _ session: AudioSession) async {
        switch interruption {
        case .began(.routeDisconnected, let name): say("silent: \(name) is gone")
        case .began(_, let name): say("silent: \(name) has the sound")
        case .ended(let options) where options.contains(.shouldResume):
            do {
                try await session.setActive(true)
                say("playing on")
            } catch {
                say("silent: \(error.message)")
            }
        case .ended: say("stopped")
        }
    }

    /// Prints a line immediately, also to a pipe.
    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
