import Testing

@testable import PulseBackend

/// Where the guard ranks: with ALSA's figures, sinks have about 1,000 and microphones 2,000.
@Suite struct GuardPlanTests {
    private enum Manager: CaseIterable {
        case old, new
    }

    private static func device(_ name: String, _ rank: Int?, isMonitor: Bool = false) -> DefaultRule.Device {
        DefaultRule.Device(
            name: name, properties: rank.map { ["priority.session": String($0)] } ?? [:], isMonitor: isMonitor)
    }

    /// The headphones are the default output.
    private func plan(
        _ manager: Manager, headphones: Int? = 1_009, others: [Int?] = [1_000], microphone: Int?? = .some(2_009),
        chosen: ChosenDefaults = ChosenDefaults(), configured: String? = nil, source: String? = nil
    ) -> GuardPlan {
        let output = GuardPlanTests.device("headphones", headphones)
        let others = others.enumerated().map { GuardPlanTests.device("other\($0)", $1) }
        let monitors = ([output] + others).map {
            DefaultRule.Device(name: $0.name + ".monitor", properties: $0.properties, isMonitor: true)
        }
        let microphones = microphone.map { [GuardPlanTests.device("microphone", $0)] } ?? []
        let rule = DefaultRule(
            server: manager == .old ? .wirePlumber4(chosen) : .wirePlumber5(chosen), configuredSink: configured)
        return GuardPlan(
            rule: rule, output: output, others: others, sources: monitors + microphones,
            source: (monitors + microphones).first { $0.name == source })
    }

    private func chosen(_ sinks: [String], _ sources: [String] = []) -> ChosenDefaults {
        func choices(_ names: [String]) -> ChosenDefaults.Choices {
            ChosenDefaults.Choices(configured: names.first, numbered: names.dropFirst().map { $0 })
        }
        return ChosenDefaults(sinks: choices(sinks), sources: choices(sources))
    }

    @Test(arguments: [true, false]) func nothingIsChosen_guardRanksBetweenTheOutputs(_ isOld: Bool) {
        let plan = plan(isOld ? .old : .new)
        #expect(plan.rank == .session(1_001))
        #expect(plan.admits(["priority.session": "1008"]))
        #expect(!plan.admits(["priority.session": "1009"]), "the headphones are not displaced")
        #expect(!plan.admits(["priority.session": "1000"]), "the other output would play on")
        #expect(!plan.admits([:]))
    }

    @Test(arguments: [true, false]) func severalOutputs_guardRanksBeforeAllOthers(_ isOld: Bool) {
        #expect(plan(isOld ? .old : .new, others: [700, 1_003, 900]).rank == .session(1_004))
        #expect(plan(isOld ? .old : .new, others: []).rank == .session(1_008))
    }

    @Test(arguments: [true, false]) func outputsOfTheSameRank_noGuardUnlessTheOutputIsConfigured(_ isOld: Bool) {
        let manager = isOld ? Manager.old : .new
        #expect(plan(manager, others: [1_009]).rank == nil)
        #expect(plan(manager, others: [1_009], configured: "headphones").rank == .session(1_010))
        #expect(plan(manager, others: [1_009], chosen: chosen(["headphones"])).rank == .session(1_010))
        #expect(plan(manager, others: [1_009], chosen: chosen(["absent", "headphones"])).rank == .session(1_010))
    }

    /// Each microphone that a program could lose.
    @Test(arguments: [true, false]) func microphone_isNeverDisplaced(_ isOld: Bool) {
        let manager = isOld ? Manager.old : .new
        // The other output was chosen once, so it ranks before a microphone that was not.
        let sinks = ["headphones", "other0"]
        #expect(plan(manager, chosen: chosen(sinks)).rank == nil)
        #expect(plan(manager, chosen: chosen(sinks, ["microphone"])).rank != nil)
        #expect(plan(manager, chosen: chosen(["headphones"])).rank == .session(1_001))
        // A microphone of an unusually low rank, which is used because it was chosen, or is the default for another reason.
        #expect(plan(manager, microphone: 500, chosen: chosen([], ["microphone"])).rank == .session(1_001))
        let low = plan(manager, others: [1_009], microphone: 500, configured: "headphones")
        #expect(low.rank == nil)
        // Not even if it is not the default: the guard's monitor would be the default source beside a microphone.
        let unused = plan(
            manager, others: [1_009], microphone: 500, configured: "headphones", source: "headphones.monitor")
        #expect(unused.rank == nil)
        // The server does not choose it, for a reason that is not known.
        let unusable = plan(manager, others: [1_008], configured: "headphones", source: "headphones.monitor")
        #expect(unusable.rank == nil || !unusable.admits(["priority.session": "1009"]))
        let other = plan(manager, others: [1_010], configured: "headphones", source: "headphones.monitor")
        #expect(other.rank == nil)
    }

    /// The default source is a monitor, of any sink.
    @Test(arguments: [true, false]) func noMicrophone_guardKeepsTheMonitorIfItCan(_ isOld: Bool) {
        let manager = isOld ? Manager.old : .new
        #expect(plan(manager, microphone: .none).rank == .session(1_001))
        let chosen = plan(manager, microphone: .none, chosen: chosen(["headphones", "other0"]))
        #expect(chosen.rank == .session(isOld ? 321_001 : 21_000))
        // A microphone appears: this guard must go.
        #expect(
            !plan(manager, chosen: self.chosen(["headphones", "other0"]))
                .admits(["priority.session": isOld ? "321001" : "21000"]))
    }

    @Test func devicesWithoutARank_areEqual() {
        #expect(plan(.old, headphones: nil, others: [nil], microphone: .some(nil)).rank == nil)
        #expect(
            plan(.old, headphones: nil, others: [nil], microphone: .none, configured: "headphones").rank
                == .session(0))
        #expect(
            plan(.new, headphones: nil, others: [nil], microphone: .none, configured: "headphones").rank
                == .session(1))
    }

    /// For random devices and choices, the server chooses as the plan promises.
    @Test func random_sessionManagerChoosesTheHeadphonesThenTheGuard_andTheMicrophoneAlways() {
        var random = SystemRandomNumberGenerator()
        var guarded = 0
        for _ in 0..<4_000 {
            let manager = Bool.random(using: &random) ? Manager.old : .new
            var sinks = ["headphones", "other0", "other1", "absent"].shuffled(using: &random)
            sinks.removeFirst(Int.random(in: 0...4, using: &random))
            let sources = Bool.random(using: &random) ? ["microphone"] : []
            let plan = plan(
                manager, headphones: Int.random(in: 990...1_010, using: &random),
                others: (0..<2).map { _ in Int.random(in: 990...1_010, using: &random) },
                microphone: .some(Int.random(in: 980...2_000, using: &random)), chosen: chosen(sinks, sources))
            let outputs = [plan.output] + plan.others
            let rule = plan.rule
            // Only worlds in which the headphones and the microphone are the defaults.
            guard rule.choice(outputs, rule.rank(ofSink:)) == "headphones",
                rule.choice(plan.sources, rule.rank(ofSource:)) == "microphone", case .session(let rank)? = plan.rank
            else { continue }
            guarded += 1
            let guardSink = GuardPlanTests.device("guard", rank)
            let monitor = GuardPlanTests.device("guard.monitor", rank, isMonitor: true)
            #expect(rule.choice(outputs + [guardSink], rule.rank(ofSink:)) == "headphones")
            #expect(rule.choice(plan.sources + [monitor], rule.rank(ofSource:)) == "microphone")
            #expect(rule.choice(plan.others + [guardSink], rule.rank(ofSink:)) == "guard")
        }
        #expect(guarded > 100)
    }

    // MARK: PulseAudio

    private static let card = ["device.class": "sound", "device.api": "alsa", "device.bus": "pci"]

    private func pulse(
        _ output: [String: String], _ others: [[String: String]], configured: String? = nil
    ) -> GuardPlan {
        GuardPlan(
            rule: DefaultRule(server: .pulseAudio, configuredSink: configured),
            output: DefaultRule.Device(name: "output", properties: output),
            others: others.enumerated().map { DefaultRule.Device(name: "other\($0)", properties: $1) }, sources: [],
            source: nil)
    }

    @Test func outputThatRanksFirst_guardRanksLikeIt() {
        let headset = ["device.class": "sound", "device.api": "bluez", "device.bus": "bluetooth"]
        let plan = pulse(headset, [GuardPlanTests.card, ["device.class": "abstract"]])
        #expect(plan.rank == .properties(["device.class": "sound", "device.bus": "bluetooth"]))
        #expect(plan.admits(["device.class": "sound", "device.bus": "bluetooth"]))
        #expect(!plan.admits(GuardPlan.first))
    }

    @Test func outputThatRanksLaterIsConfigured_guardRanksFirst() {
        #expect(pulse(["device.class": "abstract"], [GuardPlanTests.card]).rank == .properties(GuardPlan.first))
    }

    @Test func outputsOfTheSameRank_noGuardUnlessOneIsKnownToBeConfigured() {
        #expect(pulse(GuardPlanTests.card, [GuardPlanTests.card]).rank == nil)
        #expect(
            pulse(GuardPlanTests.card, [GuardPlanTests.card], configured: "output").rank
                == .properties(GuardPlan.first))
    }

    /// PulseAudio's `pa_device_init_priority`.
    @Test func priority_isPulseAudios() {
        #expect(DefaultRule.priority([:]) == 0)
        #expect(DefaultRule.priority(GuardPlan.first) == 19_950)
        var card = GuardPlanTests.card
        card["device.profile.name"] = "analog-stereo"
        #expect(DefaultRule.priority(card) == 9_039)
        card["device.intended_roles"] = "music phone"
        #expect(DefaultRule.priority(card) == 9_038)
        card["device.profile.name"] = "iec958-stereo"
        #expect(DefaultRule.priority(card) == 9_037)
        #expect(DefaultRule.priority(["device.class": "modem", "device.form_factor": "hifi"]) == 600)
        #expect(DefaultRule.priority(["device.class": "abstract", "device.bus": "usb"]) == 1_040)
    }

    /// A device may have any text in its properties.
    @Test func rankingProperties_haveTheSamePriority_andNothingElse() {
        let properties = [
            "device.class": "it's", "device.form_factor": "\"", "device.bus": "usb", "device.profile.name": "analog-'",
            "device.intended_roles": "phone '\"", "device.description": "x",
        ]
        let kept = DefaultRule.rankingProperties(properties)
        #expect(DefaultRule.priority(kept) == DefaultRule.priority(properties))
        #expect(kept["device.description"] == nil && !kept.values.contains { $0.contains("'") || $0.contains("\"") })
    }
}

@Suite struct ChosenDefaultsFileTests {
    @Test func fileOfWirePlumber_isRead() {
        let text = """
            [default-nodes]
            default.configured.audio.sink=headphones
            default.configured.audio.sink.0=headphones
            default.configured.audio.sink.2=speaker
            default.configured.audio.source=microphone
            default.configured.video.source=camera
            default.configured.audio.sink.999=far
            default.configured.audio.sink.x=none
            default.configured.audio.sinker=none
            default.configured.audio.source.0=
            nonsense

            """
        let chosen = ChosenDefaults(Array(text.utf8))
        #expect(chosen.sinks.configured == "headphones")
        #expect(chosen.sinks.numbered == ["headphones", nil, "speaker"])
        #expect(chosen.sources == ChosenDefaults.Choices(configured: "microphone"))
        #expect(ChosenDefaults([]) == ChosenDefaults())
    }

    @Test func path_isInTheStateFolder() {
        #expect(ChosenDefaults.path { ["XDG_STATE_HOME": "/s", "HOME": "/h"][$0] } == "/s/wireplumber/default-nodes")
        #expect(ChosenDefaults.path { ["HOME": "/h"][$0] } == "/h/.local/state/wireplumber/default-nodes")
        #expect(
            ChosenDefaults.path { ["XDG_STATE_HOME": "", "HOME": "/h"][$0] }
                == "/h/.local/state/wireplumber/default-nodes")
        #expect(ChosenDefaults.path { _ in nil } == nil)
    }
}

@Suite struct ConfiguredDefaultTests {
    private static let second: UInt64 = 1_000_000

    @Test func firstDefault_isNotKnownToBeConfigured() {
        var state = ConfiguredDefault()
        state.show("a", of: ["a", "b"], at: 0)
        #expect(state.name == nil)
    }

    @Test func requestedDefault_isConfigured() {
        var state = ConfiguredDefault()
        state.show("a", of: ["a", "b"], at: 0)
        state.request("b")
        #expect(state.name == nil)
        state.show("b", of: ["a", "b"], at: 1)
        #expect(state.name == "b")
        state.request("b")
        #expect(state.name == "b")
        state.request("a")
        state.show("c", of: ["a", "b", "c"], at: 2)
        #expect(state.name == nil, "the server has chosen a new device")
    }

    @Test func defaultReplacesAnotherThatIsThere_itWasConfigured_unlessItIsNew() {
        var state = ConfiguredDefault()
        state.show("a", of: ["a", "b"], at: 0)
        state.show("b", of: ["a", "b"], at: 3 * ConfiguredDefaultTests.second)
        #expect(state.name == "b")
        state.show("b", of: ["a", "b", "c"], at: 4 * ConfiguredDefaultTests.second)
        state.show("c", of: ["a", "b", "c"], at: 5 * ConfiguredDefaultTests.second)
        #expect(state.name == nil)
    }

    @Test func guardReplacesTheDefault_nothingIsConfigured() {
        var state = ConfiguredDefault()
        state.show("a", of: ["a", "b"], at: 0)
        state.show("guard", of: ["b"], at: 3 * ConfiguredDefaultTests.second)
        #expect(state.name == nil)
        state.show("b", of: ["b"], at: 4 * ConfiguredDefaultTests.second)
        #expect(state.name == nil)
    }
}
