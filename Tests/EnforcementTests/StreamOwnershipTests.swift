import PluginAPI
import Testing

@testable import Enforcement

/// Finds the session of a stream when there are several users.
@Suite struct StreamOwnershipTests {
    @Test(arguments: StreamOwnership.allCases) func sessionOfAnotherUser_neverOwnsAStream(ownership: StreamOwnership) {
        func session(_ number: UInt64, user: UInt32?) -> SessionFacts {
            SessionFacts(
                id: SessionID(number), kind: .client, process: ownership == .process ? 7 : 0, user: user,
                application: "org.example.Phone", sessionClass: .app, configuration: .initial, state: .interrupted,
                since: 0, isMuted: false, lowered: 0, lowersItself: false, mayResume: false, holdsClaim: false,
                mayBeTakenBack: false, isFreeToActivate: false)
        }
        func stream(user: UInt32?) -> StreamFacts {
            StreamFacts(
                stream: AudioStream(
                    id: AudioStream.ID(.playback, 1), applicationName: "Phone", isCorked: false, isMuted: false,
                    deviceName: "speaker", properties: ["application.id": "org.example.Phone"], volume: [65_536]),
                ancestry: ownership == .process ? [9, 7] : [],
                user: user, sandbox: ownership == .sandbox ? "org.example.Phone" : nil, program: nil)
        }
        let sessions = [session(1, user: 1000), session(2, user: 1001), session(3, user: nil)]
        #expect(StreamOwnership.owners(of: stream(user: 1001), among: sessions) == [SessionID(2)])
        #expect(StreamOwnership.owners(of: stream(user: 1002), among: sessions) == [])
    }
}
