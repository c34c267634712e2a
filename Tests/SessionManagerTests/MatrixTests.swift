import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Tests each cell of the table in rules §4, and the order of the checks before it.
@Suite struct MatrixTests {
    typealias Member = (sessionClass: SessionClass, configuration: Configuration)

    /// Every kind of new session in that row.
    static func newcomers(_ row: SpecMatrix.Row) -> [Member] {
        let duckSpoken: Options = [.duckOthers, .interruptSpokenAudioAndMixWithOthers]
        func mixers(_ options: Options, ambient: Options?) -> [Member] {
            var result: [Member] = [.playback, .playAndRecord, .multiRoute].map { (.app, .of($0, .default, options)) }
            if let ambient { result.append((.app, .of(.ambient, .default, ambient))) }
            return result
        }
        switch row {
        case .mixing: return mixers(.mixWithOthers, ambient: [])
        case .ducking: return mixers(.duckOthers, ambient: .duckOthers)
        case .interruptingSpoken: return mixers(.interruptSpokenAudioAndMixWithOthers, ambient: nil)
        case .navigation: return mixers(duckSpoken, ambient: nil)
        case .playback: return [(.app, .music), (.app, .podcast), (.app, .of(.playback, .moviePlayback))]
        case .soloAmbientOrProcessing: return [(.app, .initial), (.app, .of(.audioProcessing))]
        case .recording: return [(.app, .recording), (.app, .voice), (.app, .of(.multiRoute))]
        case .alert: return [(.alert, .music), (.alert, .mixing), (.alert, .voice), (.alert, .initial)]
        case .call: return [(.call, .music), (.call, .mixing), (.call, .voice), (.call, .mixingVoice)]
        }
    }

    /// Every kind of active session in that column.
    static func incumbents(_ column: SpecMatrix.Column) -> [Member] {
        switch column {
        case .mixable:
            [
                (.app, .ambient), (.app, .mixing), (.app, .mixingVoice), (.app, .ducker), (.app, .prompt),
                (.app, .of(.multiRoute, .default, .mixWithOthers)),
            ]
        case .mixableSpoken:
            [
                (.app, .mixingPodcast), (.app, .of(.playAndRecord, .spokenAudio, .mixWithOthers)),
                (.app, .of(.multiRoute, .spokenAudio, .duckOthers)),
            ]
        case .nonMixable:
            [
                (.app, .initial), (.app, .music), (.app, .recording), (.app, .voice), (.app, .of(.multiRoute)),
                (.app, .of(.audioProcessing)),
            ]
        case .nonMixableSpoken:
            [(.app, .podcast), (.app, .of(.playAndRecord, .spokenAudio)), (.app, .of(.multiRoute, .spokenAudio))]
        case .call: [(.call, .voice), (.call, .music), (.call, .mixing), (.call, .initial)]
        case .alert: [(.alert, .music), (.alert, .mixing), (.alert, .of(.playback, .spokenAudio))]
        }
    }

    @Test(arguments: SpecMatrix.Row.allCases, SpecMatrix.Column.allCases)
    func cell_agreesWithTheTable(_ row: SpecMatrix.Row, _ column: SpecMatrix.Column) {
        for old in Self.incumbents(column) {
            for new in Self.newcomers(row) { expect(new, row, over: old, column) }
        }
    }

    private func expect(_ new: Member, _ row: SpecMatrix.Row, over old: Member, _ column: SpecMatrix.Column) {
        var world = World()
        let first = world.create("old", old.sessionClass, old.configuration)
        let second = world.create("new", new.sessionClass, new.configuration)
        world.activate(first)
        let decision = world.activate(second)
        let what = Comment(rawValue: "\(new) over \(old)")
        let hasInput = [.record, .playAndRecord, .multiRoute].contains(new.configuration.category)
        switch SpecMatrix.cell(row, hasInput: hasInput, over: column) {
        case .refused:
            #expect(decision.refusal?.code == .insufficientPriority, what)
            #expect(decision.effects.isEmpty, what)
            #expect(world.state(first) == .active && world.state(second) == .inactive, what)
        case .interrupt:
            #expect(decision.began == [first], what)
            #expect(world.state(first) == .interrupted && world.state(second) == .active, what)
            #expect(world.waits(first) == [second], what)
            #expect(!world.isDucked(first), what)
        case .mix:
            #expect(decision.refusal == nil && decision.began.isEmpty, what)
            #expect(world.state(first) == .active && world.state(second) == .active, what)
            #expect(!world.isDucked(first), what)
        case .duck:
            #expect(decision.refusal == nil && decision.began.isEmpty, what)
            #expect(world.state(first) == .active && world.state(second) == .active, what)
            let canBeLowered = ![.record, .audioProcessing].contains(old.configuration.category)
            let ducksItself = old.configuration.options.contains(.duckOthers)
            #expect(world.isDucked(first) == (canBeLowered && !ducksItself), what)
        }
    }

    @Test func severalAreInterrupted_mostRecentlyActiveFirst() {
        var world = World()
        let ids = (0..<4).map { world.create("m\($0)", .app, .mixing) }
        for index in [2, 0, 3, 1] { world.activate(ids[index]) }
        let call = world.create("call", .call, .voice)
        let decision = world.activate(call)
        #expect(decision.began == [ids[1], ids[3], ids[0], ids[2]])
        #expect(decision.effects.firstIndex(of: .activated(call))! > 3)
    }

    @Test func oneConflictRefuses_nothingChanges() {
        var world = World()
        let music = world.player("music")
        let call = world.create("call", .call, .music)
        world.activate(call)
        // The music plays during the call.
        world.activate(music)
        let recorder = world.create("recorder", .app, .recording)
        let decision = world.activate(recorder)
        #expect(decision.refusal?.code == .insufficientPriority)
        #expect(world.state(music) == .active && world.state(call) == .active)
    }

    @Test func activeSessionActivates_hasNoEffects() {
        var world = World()
        let music = world.player("music")
        #expect(world.activate(music).effects.isEmpty)
        world.send(.setForeground(music, false))
        #expect(world.activate(music).refusal == nil)
    }

    @Test func inactiveSessionDeactivates_hasNoEffects() {
        var world = World()
        let music = world.create("music", .app, .music)
        let decision = world.leave(music)
        #expect(decision.refusal == nil && decision.effects.isEmpty)
    }

    // MARK: From the background

    static let background: [(Configuration, SessionError.Code?)] = [
        (.ambient, .cannotStartPlaying), (.of(.ambient, .default, .duckOthers), .cannotStartPlaying),
        (.initial, .cannotStartPlaying), (.mixingVoice, .cannotStartRecording), (.music, .cannotInterruptOthers),
        (.recording, .cannotInterruptOthers), (.voice, .cannotInterruptOthers),
        (.of(.multiRoute), .cannotInterruptOthers), (.of(.audioProcessing), .cannotInterruptOthers), (.mixing, nil),
        (.ducker, nil), (.of(.multiRoute, .default, .mixWithOthers), nil),
    ]

    @Test(arguments: background)
    func activationInTheBackground_dependsOnTheCategory(_ configuration: Configuration, _ code: SessionError.Code?) {
        var world = World()
        let id = world.create("background", .app, configuration)
        world.send(.setForeground(id, false))
        #expect(world.activate(id).refusal?.code == code)
        for privileged in [SessionClass.alert, .call] {
            let other = world.create("privileged", privileged, configuration)
            world.send(.setForeground(other, false))
            #expect(world.activate(other).refusal == nil)
            world.leave(other)
        }
    }

    @Test func background_isCheckedBeforeTheMatrix() {
        var world = World()
        world.activate(world.create("call", .call, .voice))
        let id = world.create("recorder", .app, .recording)
        world.send(.setForeground(id, false))
        #expect(world.activate(id).refusal?.code == .cannotInterruptOthers)
        world.send(.setForeground(id, true))
        #expect(world.activate(id).refusal?.code == .insufficientPriority)
    }

    @Test func nowPlayingSession_mayResumeInTheBackgroundUntilItsClaimExpires() {
        var world = World()
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        world.send(.setForeground(music, false))
        world.activate(call)
        world.leave(call)
        #expect(world.arbiter.nowPlaying == music)
        #expect(world.activate(music).refusal == nil)
        world.activate(call)
        world.leave(call)
        world.expire()
        #expect(world.arbiter.nowPlaying == nil)
        #expect(world.activate(music).refusal?.code == .cannotInterruptOthers)
    }

    /// Who is told to come back may.
    @Test(arguments: [Configuration.recording, .voice, .mixingVoice, .music, .of(.multiRoute)])
    func sessionToldToResume_mayReturnInTheBackgroundUntilItsClaimExpires(_ configuration: Configuration) {
        var world = World()
        let memo = world.player("memo", configuration)
        let call = world.create("call", .call, .voice)
        world.send(.setForeground(memo, false))
        for _ in 0..<2 {
            world.activate(call)
            #expect(world.leave(call).ended == [.resume(memo)])
            #expect(world.activate(memo).refusal == nil)
        }
        world.activate(call)
        world.leave(call)
        world.expire()
        #expect(world.activate(memo).refusal != nil)
    }

    @Test func sessionToldToResume_mayNotInterruptANewerOneFromTheBackground() {
        var world = World()
        let memo = world.player("memo", .recording)
        let call = world.create("call", .call, .voice)
        let newer = world.create("newer", .app, .music)
        world.send(.setForeground(memo, false))
        world.activate(call)
        world.leave(call)
        world.activate(newer)
        #expect(world.activate(memo).refusal?.code == .cannotInterruptOthers)
        // The newer one leaves: then nothing is in its way.
        world.leave(newer)
        #expect(world.activate(memo).refusal == nil)
    }

    @Test func sessionToldNotToResume_mayNotReturnInTheBackground() {
        var world = World()
        let (memo, music) = (world.player("memo", .recording), world.create("music", .app, .music))
        world.send(.setForeground(memo, false))
        world.activate(music)
        #expect(world.leave(music, notify: false).ended == [.stay(memo)])
        #expect(world.activate(memo).refusal?.code == .cannotInterruptOthers)
    }

    @Test func ambientToldToResume_mayNotReturnInTheBackground() {
        var world = World()
        let game = world.player("game", .ambient)
        let call = world.create("call", .call, .voice)
        world.send(.setForeground(game, false))
        world.activate(call)
        #expect(world.leave(call).ended == [.resume(game)])
        #expect(world.activate(game).refusal?.code == .cannotStartPlaying)
    }

    @Test func nowPlaying_isTheNewestNonMixableWithAnOutput() {
        var world = World()
        let first = world.player("first")
        let second = world.player("second")
        #expect(world.arbiter.nowPlaying == second)
        world.player("mixing", .mixing)
        world.player("recorder", .recording)
        #expect(world.arbiter.nowPlaying == second)
        world.leave(second)
        #expect(world.arbiter.nowPlaying == first)
        world.activate(world.create("alert", .alert, .music))
        #expect(world.arbiter.nowPlaying == first)
    }

    // MARK: Changing the category

    @Test func categoryChangedWhileActive_conflictingSessionIsInterrupted() {
        var world = World()
        let music = world.player("music")
        let other = world.player("other", .mixing)
        let decision = world.send(.setCategory(other, .music))
        #expect(decision.began == [music])
        #expect(world.waits(music) == [other])
        #expect(world.arbiter.nowPlaying == other)
        #expect(
            decision.effects.contains {
                if case .routeChanged(other, .categoryChange, _, _) = $0 { true } else { false }
            })
    }

    @Test func categoryChangedWhileActive_refusedChangesNothing() {
        var world = World()
        world.activate(world.create("call", .call, .voice))
        let other = world.player("other", .music)
        #expect(world.state(other) == .active)
        let decision = world.send(.setCategory(other, .voice))
        #expect(decision.refusal?.code == .insufficientPriority)
        #expect(world.arbiter.session(other)?.configuration == .music)
        #expect(world.state(other) == .active)
    }

    @Test func categoryChangedInTheBackground_isJudgedByTheNewOne() {
        var world = World()
        let mixing = world.player("mixing", .mixing)
        world.send(.setForeground(mixing, false))
        #expect(world.send(.setCategory(mixing, .music)).refusal?.code == .cannotInterruptOthers)
        #expect(world.send(.setCategory(mixing, .ambient)).refusal?.code == .cannotStartPlaying)
        #expect(world.send(.setCategory(mixing, .ducker)).refusal == nil)
        let music = world.player("music")
        world.send(.setForeground(music, false))
        #expect(world.send(.setCategory(music, .podcast)).refusal == nil)
    }

    @Test func ownerBecomesMixable_waiterIsReleasedWithoutAResumeHint() {
        var world = World()
        let music = world.player("music")
        let other = world.player("other")
        let decision = world.send(.setCategory(other, .mixing))
        #expect(decision.ended == [.stay(music)])
        #expect(world.state(music) == .inactive && world.state(other) == .active)
    }

    @Test func waiterBecomesMixable_itsWaitEnds() {
        var world = World()
        let music = world.player("music")
        world.player("other")
        #expect(world.send(.setCategory(music, .mixing)).ended == [.stay(music)])
    }

    @Test func waiterBecomesMixableDuringACall_stillWaits() {
        var world = World()
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        world.activate(call)
        #expect(world.send(.setCategory(music, .mixing)).ended.isEmpty)
        #expect(world.leave(call, notify: false).ended == [.resume(music)])
    }

    @Test func sameConfigurationAgain_changesNothing() {
        var world = World()
        let first = world.player("first", .mixing)
        let second = world.player("second", .mixing)
        #expect(world.send(.setCategory(first, .mixing)).effects.isEmpty)
        // It does not make the session the newest one, either.
        #expect(world.activate(world.create("call", .call, .voice)).began == [second, first])
    }

    @Test func categoryChangeWhileActive_countsAsTheNewestActivation() {
        var world = World()
        let first = world.player("first", .mixing)
        let second = world.player("second", .mixing)
        world.send(.setCategory(first, .ambient))
        #expect(world.activate(world.create("call", .call, .voice)).began == [first, second])
    }

    @Test func setCategory_announcesOnlyChangedProperties() {
        var world = World()
        let music = world.create("music", .app, .music)
        let decision = world.send(.setCategory(music, .podcast))
        #expect(decision.effects == [.propertiesChanged(music, .mode)])
    }
}
