import CPulse
import PluginAPI
import Testing

@testable import PulseBackend
@testable import ReferenceModel

/// Tests the state machines of the adapter, without a server.
@Suite struct BackendStateTests {
    // MARK: The connection

    private static let links: [(letter: Character, inputs: [ServerLink.Input])] = [
        ("I", []), ("C", [.connect]), ("R", [.connect, .connected]), ("A", [.connect, lost]),
        ("S", (0..<9).flatMap { _ in [.connect, refused] }),
    ]
    private static let lost = ServerLink.Input.failed(isRefused: false, isWatched: true)
    private static let refused = ServerLink.Input.failed(isRefused: true, isWatched: true)

    /// States: Idle, Connecting, Ready, Away, waiting for a Socket only. Effects: connect (c), try again later (t),
    /// read everything (r), report that the server is gone (l) or back (b), or what there is at the start (s). A dot
    /// means that nothing changes.
    private static let table = """
                          | I    C    R    A    S
        connect           | Cc   .    .    Cc   Cc
        socket appeared   | Cc   .    .    Cc   Cc
        connected         | Rr   Rr   Rr   Rr   Rr
        failed            | Atl  Atl  Atl  At   At
        refused           | Atl  Atl  Atl  At   S
        refused, no watch | Atl  Atl  Atl  At   At
        was read          | Is   Cs   Rs   Ab   Sb
        """

    private static func letter(_ link: ServerLink) -> Character {
        switch link.state {
        case .idle: "I"
        case .connecting: "C"
        case .ready: "R"
        case .away(_, let untilSocketAppears): untilSocketAppears ? "S" : "A"
        }
    }

    private static func letter(_ effect: ServerLink.Effect) -> Character {
        switch effect {
        case .connect: "c"
        case .retry: "t"
        case .readEverything: "r"
        case .tellLost: "l"
        case .tellReset: "b"
        case .tellStart: "s"
        }
    }

    @Test func everyInputOfTheConnectionInEveryState_agreesWithTheTable() {
        let inputs: [(String, ServerLink.Input)] = [
            ("connect", .connect), ("socket appeared", .socketAppeared), ("connected", .connected),
            ("failed", Self.lost), ("refused", Self.refused),
            ("refused, no watch", .failed(isRefused: true, isWatched: false)), ("was read", .wasRead),
        ]
        var table = TransitionTable(Self.links.map(\.letter), nameWidth: 17, cellWidth: 5)
        for (name, input) in inputs {
            let cells = Self.links.map { letter, inputs -> String in
                var link = ServerLink()
                for input in inputs { _ = link.handle(input) }
                #expect(Self.letter(link) == letter)
                let before = link
                let effects = link.handle(input)
                return effects.isEmpty && link == before
                    ? "." : String([Self.letter(link)] + effects.map(Self.letter))
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\(table.text)")
    }

    @Test func pausesBetweenAttempts_growToTwoSeconds_andStartAgainAfterASuccess() {
        var link = ServerLink()
        func pauses(_ count: Int) -> [Double] {
            (0..<count).flatMap { _ in link.handle(.connect) + link.handle(Self.lost) }.compactMap {
                if case .retry(let seconds) = $0 { seconds } else { nil }
            }
        }
        #expect(pauses(8) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2])
        _ = link.handle(.connect)
        _ = link.handle(.connected)
        #expect(link.handle(Self.lost).first == .retry(after: 0.05))
    }

    /// Whatever happens, "gone" and "back" are reported in turns.
    @Test func randomEvents_reportGoneAndBackInTurns() {
        for seed in 0..<UInt64(500) {
            var dice = SplitMix64(seed: seed)
            var link = ServerLink()
            var isGone = false
            for _ in 0..<100 {
                let inputs: [ServerLink.Input] = [
                    .connect, .socketAppeared, .connected, Self.lost, Self.refused, .wasRead,
                ]
                guard let input = inputs.randomElement(using: &dice) else { continue }
                // Only a connected server is read, and only a server that is being connected to replies.
                if input == .wasRead, !link.isReady { continue }
                if input == .connected { guard case .connecting = link.state else { continue } }
                for effect in link.handle(input) {
                    switch effect {
                    case .tellLost:
                        #expect(!isGone)
                        isGone = true
                    case .tellReset:
                        #expect(isGone && link.isReady)
                        isGone = false
                    case .tellStart: #expect(!isGone)
                    case .connect: #expect(!link.isReady)
                    case .retry, .readEverything: break
                    }
                }
            }
        }
    }

    // MARK: Reading

    private static func item(_ index: UInt32) -> ReadRound.Item { ReadRound.Item(facility: .playing, index: index) }

    @Test func objectsMarkedTogether_areReadInOneRound_andEvaluatedAfterAllReplies() {
        var round = ReadRound()
        round.mark(Self.item(1), isRemoved: false, at: 0)
        let schedules = [round.schedule(), round.schedule()]
        #expect(schedules == [true, false])
        round.mark(Self.item(2), isRemoved: true, at: 1)
        round.markAlso(Self.item(2))
        let starts = [round.startScheduled(), round.startScheduled()]
        #expect(starts == [true, false])
        let items = round.take()
        #expect(items == [Self.item(1): false, Self.item(2): true] && round.marked.isEmpty)
        round.begin()
        round.begin()
        let isScheduled = round.schedule()
        #expect(!isScheduled && round.isAsking)
        let outcomes = [round.end(at: 2), round.end(at: 3)]
        #expect(outcomes == [.wait, .evaluate] && !round.isAsking)
    }

    /// A busy server takes long for each round.
    @Test func endlessChanges_areEvaluatedAfterSomeRounds() {
        var round = ReadRound()
        let outcomes = (1...10 as ClosedRange<UInt64>).map { count in
            round.begin()
            round.mark(Self.item(1), isRemoved: false, at: count * 100_000)
            return round.end(at: count * 100_000 + 99_999)
        }
        let isEvaluated = outcomes.map { $0 == .evaluate }
        #expect(isEvaluated == [false, false, false, true, false, false, false, true, false, false])
        #expect(!round.marked.isEmpty)
    }

    /// Each round is short, but another follows at once.
    @Test func endlessShortRounds_areEvaluatedAfterAWhile() {
        var round = ReadRound()
        var evaluations: [UInt64] = []
        for now in stride(from: UInt64(0), through: 250_000, by: 500) {
            round.mark(Self.item(1), isRemoved: false, at: now)
            if round.isAsking {
                if round.end(at: now) == .evaluate { evaluations.append(now) }
            }
            _ = round.take()
            round.begin()
        }
        #expect(evaluations == [100_000, 200_000])
    }

    @Test func questionBeforeTheScheduledRound_replacesIt() {
        var round = ReadRound()
        round.mark(Self.item(1), isRemoved: false, at: 0)
        _ = round.schedule()
        round.begin()
        let starts = round.startScheduled()
        #expect(!starts && round.isAsking)
        let outcome = round.end(at: 1)
        #expect(outcome == .readAgain)
    }

    // MARK: Requests

    @Test func requestedPort_givesTheReasonUntilItIsTheRouteOrTooOld() {
        var requests = RouteRequests()
        requests.selectOutput("a")
        requests.expect("a", .override, until: 10)
        #expect(requests.outputOnItsWay(at: 9) == "a" && requests.outputOnItsWay(at: 10) == nil)
        requests.forgetOld(at: 9)
        #expect(requests.reason(of: "a") == .override)
        requests.arrived(["a"])
        #expect(requests.reason(of: "a") == .categoryChange && requests.outputOnItsWay(at: 0) == nil)
        requests.expect("b", .override, until: 10)
        requests.forgetOld(at: 10)
        #expect(requests.ports.isEmpty)
    }

    @Test func portOfAnotherProfile_isSelectedOnceWhenItExists_unlessAnotherIsSelected() {
        var requests = RouteRequests()
        requests.awaitInput("headset")
        var found = [requests.takeComingInput { _ in false }, requests.takeComingInput { _ in true }]
        #expect(found == [nil, "headset"])
        found = [requests.takeComingInput { _ in true }]
        #expect(found == [nil])
        requests.selectComingOutput("hands-free")
        #expect(requests.output == "hands-free")
        requests.selectOutput("speaker")
        found = [requests.takeComingOutput { _ in true }]
        #expect(found == [nil])
    }

    /// What the server shows before it has answered is older than the request: the profile may come, go and come again.
    @Test func requestedProfile_countsUntilItIsShownAfterTheAnswer() {
        var requests = RouteRequests()
        let card = PulseCard(pa_card_info())
        let first = requests.setProfile("music", of: card.name, until: 10)
        requests.profileWasRead("music", of: card.name)
        #expect(requests.profile(of: card, at: 9) == "music")
        #expect(requests.profile(of: card, at: 10) == card.activeProfile)
        let second = requests.setProfile("talk", of: card.name, until: 10)
        requests.profileAnswered(first, of: card.name, succeeded: true)
        requests.profileWasRead("talk", of: card.name)
        requests.profileAnswered(first, of: card.name, succeeded: false)
        #expect(requests.profile(of: card, at: 0) == "talk")
        requests.profileAnswered(second, of: card.name, succeeded: true)
        requests.profileWasRead("music", of: card.name)
        #expect(requests.profile(of: card, at: 0) == "talk")
        requests.profileWasRead("talk", of: card.name)
        #expect(requests.isChanging(card, at: 0), "its devices may not be there yet")
        requests.devicesWereRead(of: card.name)
        #expect(requests.profile(of: card, at: 0) == card.activeProfile)
        let third = requests.setProfile("music", of: card.name, until: 10)
        requests.profileAnswered(third, of: card.name, succeeded: false)
        #expect(requests.profile(of: card, at: 0) == card.activeProfile)
    }

    // MARK: Headsets

    private static let address = ["device.api": "bluez", "device.string": "00:11:22:33:44:55"]

    private static func withProperties<Result>(
        _ properties: [String: String], _ body: (OpaquePointer) -> Result
    ) -> Result {
        let list = pa_proplist_new()!
        defer { pa_proplist_free(list) }
        for (key, value) in properties { pa_proplist_sets(list, key, value) }
        return body(list)
    }

    private static func card(_ profile: String, _ properties: [String: String] = address) -> PulseCard {
        withProperties(properties) { list in
            profile.withCString { name in
                var active = pa_card_profile_info2()
                active.name = name
                return withUnsafeMutablePointer(to: &active) { active in
                    var card = pa_card_info()
                    (card.index, card.proplist, card.active_profile2) = (7, list, active)
                    return PulseCard(card)
                }
            }
        }
    }

    private static func sink(_ profile: String, card: UInt32 = 7) -> PulseDevice {
        withProperties(address.merging(["bluetooth.protocol": profile]) { $1 }) { list in
            var sink = pa_sink_info()
            (sink.card, sink.proplist) = (card, list)
            return PulseDevice(sink)
        }
    }

    /// If only a part of a change is known, the headset seems to be gone.
    @Test func headset_lacksItsOutputUntilTheSinkOfItsProfileIsKnown() {
        func lacksOutput(_ card: PulseCard, _ sinks: PulseDevice...) -> Bool {
            var model = PulseModel()
            for (index, sink) in sinks.enumerated() { model.sinks[UInt32(index)] = sink }
            return model.lacksOutput(of: card)
        }
        let music = Self.card("a2dp_sink")
        let talk = Self.card("handsfree_head_unit")
        #expect(!lacksOutput(music, Self.sink("a2dp_sink")) && lacksOutput(music, Self.sink("handsfree_head_unit")))
        #expect(!lacksOutput(talk, Self.sink("handsfree_head_unit")) && lacksOutput(talk, Self.sink("a2dp_sink")))
        #expect(lacksOutput(music) && lacksOutput(talk))
        #expect(lacksOutput(music, Self.sink("a2dp_sink", card: 8)), "a sink of another card")
        #expect(!lacksOutput(Self.card("off")), "the user has disabled it")
        #expect(!lacksOutput(Self.card("a2dp_source")), "a telephone that plays")
        #expect(!lacksOutput(Self.card("output:analog-stereo", ["device.api": "alsa"])))
    }

    /// PulseAudio shows its default before it reports the sink, if several requests change both.
    @Test func defaults_areUnknownUntilTheirDevicesAreReported() {
        func isUnknown(sink: String, source: String, server: String = "pulseaudio") -> Bool {
            var model = PulseModel()
            (model.serverName, model.defaultSink, model.defaultSource) = (server, sink, source)
            model.sinks[0] = "speaker".withCString { name in
                var sink = pa_sink_info()
                sink.name = name
                return PulseDevice(sink)
            }
            model.sources[0] = "monitor".withCString { name in
                var source = pa_source_info()
                source.name = name
                return PulseDevice(source)
            }
            return model.isDefaultUnknown
        }
        #expect(!isUnknown(sink: "speaker", source: "monitor") && !isUnknown(sink: "", source: ""))
        #expect(isUnknown(sink: "headset", source: "monitor") && isUnknown(sink: "speaker", source: "headset"))
        #expect(!isUnknown(sink: "headset", source: "monitor", server: "PulseAudio (on PipeWire 1.4.2)"))
    }

    // MARK: The time until a change is reported

    @Test func completeChange_isReportedAtOnce_andAStepWhenNothingFollows() {
        var time = SettleTime()
        var ends = [time.end(of: .complete, isQuiet: false, at: 1)]
        #expect(ends == [nil])
        ends = [
            time.end(of: .step, isQuiet: false, at: 1_000), time.end(of: .step, isQuiet: false, at: 11_000),
            time.end(of: .step, isQuiet: true, at: 61_000),
        ]
        #expect(ends == [51_000, 61_000, nil])
    }

    /// The time that was used by an earlier change, or is interrupted by a look at the state, does not count.
    @Test func incompleteChange_waitsForTheRestOrUntilTheTimeIsOver() {
        var time = SettleTime()
        func end(_ change: SettleTime.Change, _ now: UInt64, isQuiet: Bool = false) -> UInt64? {
            time.end(of: change, isQuiet: isQuiet, at: now)
        }
        #expect(end(.incomplete, 1_000) == 251_000)
        #expect(end(.incomplete, 2_000, isQuiet: true) == 251_000)
        #expect(end(.complete, 3_000) == nil)
        #expect(end(.incomplete, 300_000) == 550_000, "another change")
        #expect(end(.step, 310_000) == 360_000)
        #expect(end(.incomplete, 549_999) == 550_000)
        #expect(end(.incomplete, 550_000) == nil)
        #expect(end(.step, 560_000) == 610_000)
        #expect(end(.step, 810_000) == nil)
    }

    private static func headset(
        _ card: String, _ profile: String, isChanging: Bool = false, music: String = "a2dp_sink"
    ) -> HeadsetProfiles.Headset {
        HeadsetProfiles.Headset(
            card: card, profile: profile, isChanging: isChanging, profiles: ["off", music, "handsfree_head_unit"],
            musicProfile: music, handsFreeProfile: "handsfree_head_unit")
    }

    private static let music = headset("a", "a2dp_sink")
    private static let handsFree = headset("a", "handsfree_head_unit")

    @Test func headset_isSwitchedForASessionAndBack_andTheOthersStay() {
        var profiles = HeadsetProfiles()
        let others = Self.headset("b", "handsfree_head_unit")
        func use(_ card: String?, _ headset: HeadsetProfiles.Headset) -> [String] {
            profiles.use(card, of: [headset, others], at: 0).map { $0.card + " " + $0.profile }
        }
        #expect(use("a", Self.music) == ["a handsfree_head_unit"])
        #expect(profiles.former == ["a": "a2dp_sink"])
        #expect(profiles.switched(of: [Self.music, others]) == nil)
        #expect(profiles.switched(of: [Self.handsFree, others]) == "a")
        #expect(use("a", Self.handsFree) == [])
        // Another program made it hands-free.
        #expect(use("b", Self.handsFree) == ["a a2dp_sink"])
        #expect(use(nil, Self.music) == [])
        #expect(profiles.former.isEmpty)
        #expect(use("a", Self.handsFree) == [] && profiles.former.isEmpty)
        #expect(use(nil, Self.handsFree) == [])
    }

    /// The journal keeps the former profile until then, for the case that the daemon or the server ends.
    @Test func headsetThatIsSwitchedBack_isForgottenWhenTheServerShowsIt() {
        var profiles = HeadsetProfiles()
        _ = profiles.use("a", of: [Self.music], at: 0)
        #expect(profiles.use(nil, of: [Self.handsFree], at: 0).map(\.profile) == ["a2dp_sink"])
        #expect(profiles.former == ["a": "a2dp_sink"])
        profiles.forgetChanged(of: [Self.headset("a", "a2dp_sink", isChanging: true)])
        #expect(profiles.former == ["a": "a2dp_sink"])
        var refused = profiles
        profiles.forgetChanged(of: [Self.music])
        #expect(profiles.former.isEmpty)
        // A refused request is not repeated by itself, but after the next call, and by the next connection.
        #expect(refused.switched(of: [Self.handsFree]) == nil)
        #expect(refused.use(nil, of: [Self.handsFree], at: 0).isEmpty)
        let next = HeadsetProfiles(refused.former)
        #expect(next.switched(of: [Self.handsFree]) == "a")
        #expect(refused.use("a", of: [Self.handsFree], at: 0).isEmpty)
        #expect(refused.use(nil, of: [Self.handsFree], at: 0).map(\.profile) == ["a2dp_sink"])
    }

    /// A headset that leaves during a call comes back as it was, or in its music profile. Meanwhile the server may show it
    /// without a profile.
    @Test func headsetThatWasSwitched_isRememberedUntilItHasAnotherProfile() {
        var profiles = HeadsetProfiles()
        let off = Self.headset("a", "off")
        _ = profiles.use("a", of: [Self.music], at: 0)
        profiles.forgetChanged(of: [Self.music])
        #expect(profiles.former == ["a": "a2dp_sink"], "the change is in progress")
        #expect(profiles.use(nil, of: [off], at: 0).isEmpty && profiles.use(nil, of: [], at: 0).isEmpty)
        #expect(profiles.use("a", of: [off], at: 0).map(\.profile) == ["handsfree_head_unit"])
        #expect(profiles.former == ["a": "a2dp_sink"])
        _ = profiles.use(nil, of: [], at: 0)
        for headset in [off, Self.handsFree] { profiles.forgetChanged(of: [headset]) }
        #expect(profiles.switched(of: [Self.handsFree]) == "a")
        profiles.forgetChanged(of: [Self.music])
        #expect(profiles.former.isEmpty)
    }

    /// PulseAudio was replaced by PipeWire, or a codec is no longer allowed.
    @Test func formerProfileThatNoLongerExists_isReplacedByTheBestForMusic() {
        var profiles = HeadsetProfiles(["a": "a2dp_sink"])
        let headset = Self.headset("a", "handsfree_head_unit", music: "a2dp-sink-sbc")
        #expect(profiles.use(nil, of: [headset], at: 0).map(\.profile) == ["a2dp-sink-sbc"])
    }

    /// WirePlumber restores the profile two seconds after a recording, also if a call has begun in the meantime.
    @Test func serverTakesTheCallProfileAway_itIsRequestedOnceMore_butNotFromItsUser() {
        var profiles = HeadsetProfiles()
        func insist(_ headset: HeadsetProfiles.Headset, at seconds: Double) -> String? {
            profiles.insist(of: [headset], at: UInt64(seconds * 1_000_000))?.profile
        }
        #expect(profiles.use("a", of: [Self.handsFree], at: 0).isEmpty && profiles.former.isEmpty)
        #expect(insist(Self.handsFree, at: 1) == nil)
        #expect(insist(Self.headset("a", "a2dp_sink", isChanging: true), at: 1) == nil)
        #expect(insist(Self.music, at: 2.1) == "handsfree_head_unit")
        #expect(profiles.former == ["a": "a2dp_sink"], "it is restored after the call")
        #expect(insist(Self.music, at: 2.2) == nil, "once")
        profiles.recordingEnded(on: "b", at: 10_000_000)
        #expect(insist(Self.music, at: 10.1) == nil)
        profiles.recordingEnded(on: "a", at: 10_000_000)
        #expect(insist(Self.music, at: 13) == nil, "the user has chosen this profile")
        #expect(insist(Self.music, at: 12.9) == "handsfree_head_unit")
        profiles.recordingEnded(on: "a", at: 20_000_000)
        _ = profiles.use(nil, of: [Self.music], at: 20_000_000)
        profiles.recordingEnded(on: "a", at: 20_000_000)
        #expect(insist(Self.music, at: 20.1) == nil, "nobody talks")
    }

    /// WirePlumber's own file, as versions 0.4 and 0.5 write it.
    @Test func chosenDefaults_areReadFromTheFileOfTheSessionManager() {
        func chosen(_ text: String) -> [Bool] {
            let file = ChosenDefaults(Array(text.utf8))
            return [file.sinks.configured != nil, file.sources.configured != nil]
        }
        #expect(chosen("") == [false, false])
        let both = "[default-nodes]\ndefault.configured.audio.sink=a b\ndefault.configured.audio.source=mic\n"
        #expect(chosen(both) == [true, true])
        // A default that is no longer configured leaves its name among the former ones.
        #expect(chosen("[default-nodes]\ndefault.configured.audio.source.0=mic\n") == [false, false])
        #expect(chosen("[default-nodes]\ndefault.configured.audio.sink=\n") == [false, false])
        #expect(chosen("[default-nodes]\ndefault.configured.video.source=cam\n") == [false, false])
    }

    @Test func awaitedDefault_isForgottenByAnotherRequestAndByAnotherDefault() {
        var requests = RouteRequests()
        func request() { requests.awaitedDefault = DefaultRequest(output: "b", sink: "b", before: "a", number: 1) }
        request()
        requests.defaultWasRead("a")
        #expect(requests.awaitedDefault != nil)
        requests.defaultWasRead("b")
        #expect(requests.awaitedDefault == nil)
        request()
        requests.selectOutput("c")
        #expect(requests.awaitedDefault == nil)
        request()
        requests.selectComingOutput("c")
        #expect(requests.awaitedDefault == nil)
    }

    // MARK: The guard

    @Test func request_waitsUntilTheServerShowsTheLastOne() {
        var guards = GuardState()
        guards.create(.session(5))
        var isSettled = [guards.isSettled(isThere: false), guards.isSettled(isThere: true)]
        #expect(isSettled == [false, true] && guards.request == nil && guards.rank == .session(5))
        guards.remove()
        isSettled = [guards.isSettled(isThere: true), guards.isSettled(isThere: false)]
        #expect(isSettled == [false, true])
        guards.create(.session(5))
        guards.creatingFailed()
        isSettled = [guards.isSettled(isThere: false)]
        #expect(isSettled == [true] && guards.isRefused)
    }

    @Test func guardThatDisplacedADevice_isNotCreatedAgainUntilTheOutputChanges() {
        var guards = GuardState()
        var may = guards.mayCreate(for: "headphones")
        #expect(may)
        guards.displace("headphones")
        may = guards.mayCreate(for: "headphones")
        #expect(!may)
        may = guards.mayCreate(for: "speaker")
        #expect(may)
        may = guards.mayCreate(for: "headphones")
        #expect(may)
        guards.create(.session(5))
        guards.creatingFailed()
        may = guards.mayCreate(for: "headphones")
        #expect(!may)
    }

    @Test func defaults_areCheckedAgainOnce() {
        var guards = GuardState()
        let one = GuardState.Defaults(sink: "a", source: "b")
        var isNew = [guards.isNew(one), guards.isNew(one)]
        #expect(isNew == [true, false])
        isNew = [guards.isNew(GuardState.Defaults(sink: "a", source: "c")), guards.isNew(one)]
        #expect(isNew == [true, true])
    }

    @Test func portThatWasMovedBack_isTakenBackOnce() {
        var guards = GuardState()
        guards.hasMovedPort = true
        let takes = [guards.takesPortBack(), guards.takesPortBack()]
        #expect(takes == [true, false])
    }

    @Test func secondGuard_isRemovedWhenItExists_ifItIsNoLongerWanted() {
        var guards = GuardState()
        #expect(!guards.dropsSecond)
        let made = [guards.createSecond(), guards.createSecond()]
        #expect(made == [true, false])
        guards.guardDue = 5
        var removed: Bool?
        guards.removeSecond({ removed = $0 })
        #expect(guards.dropsSecond)
        let isMadeAgain = guards.createSecond()
        #expect(!isMadeAgain)
        guards.secondCame(true)?(true)
        #expect(removed == true && guards.dropsSecond && guards.guardDue == 5)
        // The server refuses a second guard; the next one stays.
        _ = guards.createSecond()
        #expect(!guards.dropsSecond)
        var waits = guards.secondCame(false) != nil
        #expect(!waits && guards.guardDue == nil)
        _ = guards.createSecond()
        waits = guards.secondCame(true) != nil
        #expect(!waits && !guards.dropsSecond)
        // The replies of a replaced connection never arrive.
        _ = guards.createSecond()
        guards.remove()
        guards.forgetAnswers()
        #expect(guards.request == nil && !guards.dropsSecond)
        let isFree = guards.createSecond()
        #expect(isFree)
    }

    // MARK: The check of the default

    @Test func earlierCheck_isKept_andEventsDuringACheckAreCheckedSoon() {
        var doubt = DefaultDoubt()
        doubt.raise()
        var plans = [doubt.plan(at: 9), doubt.plan(at: 9), doubt.plan(at: 8)]
        #expect(plans == [true, false, true] && doubt.next(after: 1) == nil)
        doubt.elapsed()
        let isFirst = [doubt.start(), doubt.start()]
        #expect(isFirst == [true, false])
        #expect(doubt.next(after: nil) == nil && doubt.next(after: 1) == 1)
        doubt.raise()
        #expect(doubt.next(after: nil) == 0.2 && doubt.next(after: 1) == 0.2)
        plans = [doubt.plan(at: 99)]
        #expect(plans == [true])
    }

    @Test func missingDefault_isCheckedAgainUntilItIsThere() {
        var doubt = DefaultDoubt()
        var pauses = [doubt.confirm(isFirst: true, isMissing: false), doubt.confirm(isFirst: false, isMissing: false)]
        #expect(pauses == [1, nil])
        pauses = (0..<7).map { doubt.confirm(isFirst: $0 == 0, isMissing: true) }
        #expect(pauses == [1, 2, 4, 8, 16, 30, 30])
        pauses = [doubt.confirm(isFirst: false, isMissing: false), doubt.again(), doubt.again()]
        #expect(pauses == [nil, 1, 2])
    }
}
