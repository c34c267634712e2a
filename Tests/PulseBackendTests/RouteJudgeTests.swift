import PluginAPI
import Testing

@testable import PulseBackend

@Suite struct RouteJudgeTests {
    private func port(_ uid: String, channels: UInt32 = 2, isAvailable: Bool = true) -> Port {
        Port(type: .speaker, name: uid, uid: uid, channels: channels, isAvailable: isAvailable)
    }

    private func snapshot(_ ports: [String], route: Port?) -> AudioSnapshot {
        var result = AudioSnapshot()
        result.availableOutputs = ports.map { port($0) }
        result.route.outputs = route.map { [$0] } ?? []
        return result
    }

    private func judge(_ before: AudioSnapshot, _ after: AudioSnapshot) -> RouteJudge {
        RouteJudge(previous: before, current: after)
    }

    @Test func portAppearsAndBecomesTheRoute_isNewDevice() {
        let judge = judge(snapshot(["a"], route: port("a")), snapshot(["a", "b"], route: port("b")))
        #expect(judge.verdict?.reason == .newDeviceAvailable)
    }

    @Test func portAppearsAndRouteStays_isNewDeviceWithTheSameRoute() {
        let verdict = judge(snapshot(["a"], route: port("a")), snapshot(["a", "b"], route: port("a"))).verdict
        #expect(verdict?.reason == .newDeviceAvailable)
        #expect(verdict?.previous == verdict?.current)
    }

    @Test func portOutsideTheRouteIsRemoved_isNoChange() {
        #expect(judge(snapshot(["a", "b"], route: port("a")), snapshot(["a"], route: port("a"))).verdict == nil)
    }

    @Test func portOfTheRouteIsRemoved_isOldDevice_whateverElseChanges() {
        let before = snapshot(["a", "b"], route: port("b"))
        #expect(judge(before, snapshot(["a"], route: port("a"))).verdict?.reason == .oldDeviceUnavailable)
        #expect(judge(before, snapshot(["a", "c"], route: port("c"))).verdict?.reason == .oldDeviceUnavailable)
        #expect(judge(before, snapshot([], route: nil)).verdict?.reason == .oldDeviceUnavailable)
    }

    @Test func deviceOfTheRouteIsReplacedAtOnce_isOldDeviceAndNotTheUsersChoice() {
        let before = snapshot(["a", "b"], route: port("b"))
        var one = judge(before, snapshot(["a", "b"], route: port("a")))
        one.returned = ["b"]
        #expect(one.verdict?.reason == .oldDeviceUnavailable)
        #expect(one.chosenOutput == nil)
        var back = judge(before, before)
        back.returned = ["b"]
        #expect(back.verdict == nil)
    }

    @Test func firstPorts_areNotNew() {
        var order = PortOrder()
        order.update([], [port("a")], filters: [], now: 5)
        order.update([], [port("a"), port("b")], filters: [], now: 6)
        #expect(order.recent([port("a"), port("b")], isInput: false, 7, within: 5) == ["b"])
    }

    @Test func portsThatReturnTogether_haveTheirPlacesAgain_andASinglePortWins() {
        var order = PortOrder()
        func update(_ uids: [String], early: Set<String> = []) {
            order.update([], uids.map { port($0) }, filters: [], early: early, now: 1)
        }
        func sorted(_ uids: [String]) -> [String] { order.sorted(uids.map { port($0) }, isInput: false).map(\.uid) }
        update(["a", "b"])
        update(["a", "b", "other"])
        order.prefer(port("b"), isInput: false)
        #expect(sorted(["a", "b", "other"]) == ["a", "other", "b"])
        // The session manager is restarted: "other" belongs to a program.
        update(["other"])
        update(["other", "a", "b"], early: ["a", "b"])
        #expect(sorted(["a", "b", "other"]) == ["a", "other", "b"])
        update(["a", "b"])
        update(["a", "b", "other"])
        #expect(sorted(["a", "b", "other"]) == ["a", "b", "other"])
    }

    @Test func headsetThatChangesItsProfile_keepsItsPlace() {
        func headset(_ uid: String, _ type: PortType) -> Port { Port(type: type, name: uid, uid: uid, channels: 2) }
        let (music, talk) = (headset("h/a2dp", .bluetoothA2DP), headset("h/hfp", .bluetoothHFP))
        let speaker = port("speaker")
        for isChanging in [true, false] {
            var order = PortOrder()
            order.update([], [music], filters: [], now: 1)
            order.update([], [music, speaker], filters: [], now: 2)
            order.update([], [speaker], filters: [], changing: isChanging ? ["h"] : [], now: 3)
            order.update([], [speaker, talk], filters: [], now: 4)
            #expect(order.sorted([talk, speaker], isInput: false).last == (isChanging ? speaker : talk))
            #expect(order.recent([talk], isInput: false, 5, within: 2).isEmpty == isChanging)
        }
    }

    @Test func portsThatAppearTogether_areSelectedOnlyIfChosen_andSinglePortsAtOnce() {
        var order = PortOrder()
        func sorted(_ uids: [String]) -> [String] { order.sorted(uids.map { port($0) }, isInput: false).map(\.uid) }
        order.update([], [port("a")], filters: [], now: 5)
        order.update([], ["a", "b", "c"].map { port($0) }, filters: [], early: ["b", "c"], now: 6)
        #expect(sorted(["a", "b", "c"]) == ["c", "b", "a"])
        #expect(order.losers(["a", "b", "c"].map { port($0) }, isInput: false).map(\.uid) == ["b", "c"])
        order.update([], ["a", "b", "c", "f"].map { port($0) }, filters: ["f"], now: 7)
        #expect(sorted(["a", "b", "c", "f"]) == ["f", "c", "b", "a"], "a filter comes before them")
        order.prefer(port("b"), isInput: false)
        #expect(sorted(["a", "b", "c", "f"]).last == "b")
        order.update([], ["a", "b", "c", "d", "f"].map { port($0) }, filters: ["f"], now: 8)
        #expect(sorted(["a", "b", "c", "d", "f"]).last == "d")
    }

    @Test func activePortUnplugged_isOldDevice() {
        let after = snapshot(["a"], route: port("b", isAvailable: false))
        #expect(judge(snapshot(["a", "b"], route: port("b")), after).verdict?.reason == .oldDeviceUnavailable)
    }

    @Test func samePortOtherSettings_isConfiguration() {
        let after = snapshot(["a"], route: port("a", channels: 6))
        #expect(judge(snapshot(["a"], route: port("a")), after).verdict?.reason == .routeConfigurationChange)
    }

    @Test func sameSocketOtherProfile_isConfiguration() {
        var one = judge(snapshot(["a"], route: port("a")), snapshot(["b"], route: port("b")))
        one.reprofiled = ["a"]
        #expect(one.verdict?.reason == .routeConfigurationChange)
    }

    @Test func changeOfTheRoute_isUnknownOrNewDeviceOrHasTheRequestsReason() {
        var one = judge(snapshot(["a", "b"], route: port("a")), snapshot(["a", "b"], route: port("b")))
        #expect(one.verdict?.reason == .unknown)
        one.recent = ["b"]
        #expect(one.verdict?.reason == .newDeviceAvailable)
        one.requested = ["b": .override]
        #expect(one.verdict?.reason == .override)
    }

    @Test func noRouteForAMomentDuringARequest_hasTheRequestsReason() {
        var one = judge(snapshot(["a"], route: port("a")), snapshot(["a"], route: nil))
        #expect(one.verdict?.reason == .unknown)
        one.requested = ["b": .categoryChange]
        #expect(one.verdict?.reason == .categoryChange)
    }
}
