import MediaControl
import PluginAPI
import Testing

@Suite struct DemandTests {
    private typealias Owner = Demand.Owner

    private static func owner(
        _ state: SessionState, adopted: Bool = false, silenced: Bool = false, mayResume: Bool = false,
        cameBack: Bool = false
    ) -> Demand.Owner {
        var owner = Demand.Owner(state)
        owner.isAdopted = adopted
        owner.isSilencedAtServer = silenced
        owner.mayResume = mayResume
        owner.cameBack = cameBack
        return owner
    }

    @Test(arguments: [
        ([owner(.interrupted, adopted: true)], Demand.silent(since: 0)),
        // A client pauses its player itself.
        ([owner(.interrupted)], .free),
        ([owner(.interrupted, silenced: true)], .silent(since: 0)),
        ([owner(.inactive)], .free),
        ([owner(.inactive, mayResume: true)], .resume),
        ([owner(.active)], .free),
        ([owner(.active, cameBack: true)], .resume),
        ([owner(.interrupted, adopted: true), owner(.inactive, mayResume: true)], .silent(since: 0)),
        ([owner(.inactive, mayResume: true), owner(.interrupted, adopted: true)], .silent(since: 0)),
        ([owner(.interrupted, adopted: true), owner(.active)], .either),
        ([owner(.active), owner(.inactive, mayResume: true)], .either),
        ([owner(.active), owner(.inactive)], .free),
        ([owner(.active, cameBack: true), owner(.active)], .free),
        // A client pauses its player itself.
        ([owner(.interrupted), owner(.active)], .free),
        ([owner(.interrupted, adopted: true), owner(.active, cameBack: true)], .silent(since: 0)),
        ([], .free),
    ])
    func demand_followsFromAllSessionsOfThePlayer(_ owners: [Demand.Owner], _ demand: Demand) {
        #expect(Demand(of: owners, isAdoptionOff: false) == demand)
    }

    @Test func adoptionIsTurnedOff_adoptedPlayersAreResumed() {
        #expect(Demand(of: [], isAdoptionOff: true) == .resume)
        #expect(Demand(of: [Self.owner(.interrupted)], isAdoptionOff: true) == .free)
    }
}
