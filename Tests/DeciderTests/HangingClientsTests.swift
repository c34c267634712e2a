import PluginAPI
import SessionManager
import Testing

@testable import Decider

@Suite struct HangingClientsTests {
    private static let session = SessionID(1)
    private static let client = ClientID(7)

    private static func owner(
        since: Double = 0, longest: Double = 45, plays: Bool = false, session: SessionID = session
    ) -> HangingClients.Owner {
        HangingClients.Owner(
            session: session, client: client, since: time(since), longest: longest, isPlaying: plays)
    }

    private static func time(_ seconds: Double) -> Instant {
        Instant(microseconds: 1_000_000).advanced(bySeconds: seconds)
    }

    @Test func owner_isAskedOnceAfterTheTime_andHangsFiveSecondsLater() {
        var clients = HangingClients()
        #expect(clients.look([Self.owner()], at: Self.time(44)).isEmpty && clients.deadline == Self.time(45))
        #expect(clients.look([Self.owner()], at: Self.time(45)) == [.ping(Self.client)])
        #expect(clients.deadline == Self.time(50))
        #expect(clients.look([Self.owner()], at: Self.time(49)).isEmpty)
        #expect(clients.look([Self.owner()], at: Self.time(50)) == [.hangs(Self.session)])
        #expect(clients.look([], at: Self.time(50)).isEmpty && clients.deadline == nil)
    }

    @Test func ownerThatAnswers_isAskedAgainOnceInEachSuchTime() {
        var clients = HangingClients()
        for round in 1...3 {
            let now = Self.time(45 * Double(round))
            #expect(clients.look([Self.owner()], at: now) == [.ping(Self.client)], "\(round)")
            clients.answered(Self.client)
            #expect(clients.look([Self.owner()], at: now).isEmpty)
            #expect(clients.deadline == Self.time(45 * Double(round + 1)))
        }
    }

    @Test func ownerThatPlays_isNotAsked_andThereIsNoDeadline() {
        var clients = HangingClients()
        #expect(clients.look([Self.owner(plays: true)], at: Self.time(100)).isEmpty && clients.deadline == nil)
        // It falls silent long after the time.
        #expect(clients.look([Self.owner()], at: Self.time(101)) == [.ping(Self.client)])
        // It plays again before it would count as hanging.
        #expect(clients.look([Self.owner(plays: true)], at: Self.time(106)).isEmpty)
    }

    @Test func sessionThatLowersAndInterrupts_isReportedOnce_andOneClientIsAskedOnce() {
        var clients = HangingClients()
        let both = [Self.owner(longest: 45), Self.owner(longest: 30), Self.owner(session: SessionID(2))]
        #expect(clients.look(both, at: Self.time(46)) == [.ping(Self.client)])
        #expect(clients.look(both, at: Self.time(51)) == [.hangs(Self.session), .hangs(SessionID(2))])
    }

    @Test func ownerStopsAndBeginsAgain_theTimeBeginsAnew() {
        var clients = HangingClients()
        #expect(clients.look([Self.owner()], at: Self.time(45)) == [.ping(Self.client)])
        #expect(clients.look([], at: Self.time(46)).isEmpty)
        #expect(clients.look([Self.owner(since: 47)], at: Self.time(60)).isEmpty)
        #expect(clients.deadline == Self.time(92))
    }
}
