import PluginAPI
import Testing

@testable import Enforcement
@testable import ReferenceModel

/// Guessed calls: which streams of a program count as a call, when the call begins, and when it ends.
@Suite struct CallEvidenceTests {
    /// One stream of the program that is watched.
    enum Sound: Hashable {
        case plays(title: String = "Playback", role: String? = nil)
        case playsPaused
        case records(title: String = "RecordStream", role: String? = nil)
        case recordsPaused
        case recordsMonitor
        case measures
    }

    /// One or two programs and their sessions. The sessions change as the steps say.
    struct World {
        var enforcement: Enforcement
        var sessions: [SessionFacts] = []
        var sounds: [UInt32: [Sound]] = [:]
        var gone: Set<UInt32> = []
        var sustained: Set<Program.Key> = []
        var isHeadsetHandsFree = false
        /// The names of each process. By default, the program is known to make calls.
        var names: [UInt32: Set<String>] = [70: ["baresip"]]
        var mayCall = true
        private(set) var now: UInt64 = 10_000_000
        private var lastID: UInt64 = 0

        init(_ edit: (inout Settings) -> Void = { _ in }) {
            var settings = Settings()
            edit(&settings)
            enforcement = Enforcement(settings)
        }

        var facts: Enforcement.Facts {
            var streams: [StreamFacts] = []
            for (process, sounds) in sounds.sorted(by: { $0.key < $1.key }) {
                let program = Program(
                    key: .process(process), name: "p\(process)", names: names[process] ?? ["p\(process)"],
                    mayCall: mayCall)
                for (place, sound) in sounds.enumerated() {
                    let number = process * 10 + UInt32(place)
                    streams.append(
                        StreamFacts(
                            stream: World.stream(number, process, sound), ancestry: [process], sandbox: nil,
                            program: program))
                }
            }
            var facts = Enforcement.Facts(
                sessions: sessions, streams: streams, canHold: true, defaultDevice: "speaker", gone: gone,
                sustainedCalls: sustained)
            facts.isHeadsetHandsFree = isHeadsetHandsFree
            return facts
        }

        private static func stream(_ number: UInt32, _ process: UInt32, _ sound: Sound) -> AudioStream {
            func made(
                _ direction: AudioStream.Direction, title: String, role: String? = nil, isCorked: Bool = false,
                port: String? = "port", isPeakMeter: Bool = false
            ) -> AudioStream {
                AudioStream(
                    id: AudioStream.ID(direction, number), processID: process, isPeakMeter: isPeakMeter, role: role,
                    isCorked: isCorked, deviceName: "device", portUID: port, portName: port == nil ? "" : "Headset Mic",
                    properties: ["media.name": title], volume: [65_536])
            }
            switch sound {
            case .plays(let title, let role): return made(.playback, title: title, role: role)
            case .playsPaused: return made(.playback, title: "Playback", isCorked: true)
            case .records(let title, let role): return made(.record, title: title, role: role)
            case .recordsPaused: return made(.record, title: "RecordStream", isCorked: true)
            case .recordsMonitor: return made(.record, title: "RecordStream", port: nil)
            case .measures: return made(.record, title: "Peak detect", isPeakMeter: true)
            }
        }

        /// Carries out all steps at this moment.
        mutating func settle() {
            for _ in 0..<100 {
                let steps = enforcement.steps(facts, at: now)
                if steps.isEmpty { return }
                for step in steps { carryOut(step) }
            }
            Issue.record("the steps do not end")
        }

        /// Lets that many seconds pass, with a check at every deadline.
        mutating func wait(_ seconds: Double) {
            let end = now + UInt64(seconds * 1_000_000)
            settle()
            while let due = enforcement.commands(facts, at: now).deadline, due <= end {
                now = max(due, now + 1)
                settle()
            }
            now = end
            settle()
        }

        mutating func interruptApps() {
            for (place, session) in sessions.enumerated() where session.sessionClass == .app {
                sessions[place] = World.session(
                    session.id, session.kind, .interrupted, since: now, evidence: session.evidence)
            }
        }

        private mutating func carryOut(_ step: Enforcement.Step) {
            func replace(_ id: SessionID, _ state: SessionState, kind: SessionFacts.Kind? = nil) {
                guard let place = sessions.firstIndex(where: { $0.id == id }) else { return }
                sessions[place] = World.session(
                    id, kind ?? sessions[place].kind, state, since: now, evidence: sessions[place].evidence)
            }
            switch step {
            case .adopt(let adopted, _, let evidence):
                lastID += 1
                sessions.append(
                    World.session(SessionID(lastID), .adopted(adopted), .inactive, since: now, evidence: evidence))
            case .change(let id, let adopted): replace(id, .inactive, kind: .adopted(adopted))
            case .activate(let id), .takeBack(let id): replace(id, .active)
            case .deactivate(let id): replace(id, .inactive)
            case .close(let id): sessions.removeAll { $0.id == id }
            }
        }

        static func session(
            _ id: SessionID, _ kind: SessionFacts.Kind, _ state: SessionState, since: UInt64, evidence: String
        ) -> SessionFacts {
            var sessionClass = SessionClass.app
            if case .adopted(let adopted) = kind { sessionClass = adopted.role.sessionClass }
            return SessionFacts(
                id: id, kind: kind, process: 0, application: "", sessionClass: sessionClass, configuration: .initial,
                state: state, since: since, isMuted: false, lowered: 0, lowersItself: false, evidence: evidence,
                mayResume: false, holdsClaim: state != .inactive, mayBeTakenBack: true, isFreeToActivate: true)
        }

        /// The current call, or nil.
        var call: SessionFacts? {
            sessions.first { session in
                if case .adopted = session.kind {
                    session.sessionClass == .call && session.state == .active
                } else {
                    false
                }
            }
        }
        var isInCall: Bool { call != nil }
        var isGuess: Bool {
            if case .adopted(let adopted)? = call?.kind { adopted.isGuess } else { false }
        }
    }

    // MARK: Which streams are a call

    static let both: [Sound] = [.plays(), .records()]

    struct Row: CustomStringConvertible {
        let what: String
        let sounds: [Sound]
        let names: Set<String>
        let isCall: Bool
        var calls = Settings.Adoption.Calls.known
        var named: [String] = []
        var description: String { what }
    }

    static let rows = [
        Row(what: "a known program records and plays", sounds: both, names: ["baresip"], isCall: true),
        Row(what: "by its name in any case", sounds: both, names: ["ZOOM VoiceEngine"], isCall: true),
        Row(what: "by the beginning of its name", sounds: both, names: ["firefox-esr"], isCall: true),
        Row(what: "as Flatpak", sounds: both, names: ["org.mozilla.firefox"], isCall: true),
        Row(what: "a name that only contains one", sounds: both, names: ["my-baresip"], isCall: false),
        Row(what: "an unknown program", sounds: both, names: ["audacity"], isCall: false),
        Row(what: "an unknown program, any", sounds: both, names: ["audacity"], isCall: true, calls: .any),
        Row(what: "a known program, labels alone", sounds: both, names: ["baresip"], isCall: false, calls: .labelled),
        Row(what: "a known program, off", sounds: both, names: ["baresip"], isCall: false, calls: .off),
        Row(
            what: "a program that the settings name", sounds: both, names: ["satellite"], isCall: true, named: ["sat*"]),
        Row(what: "playing alone: ringing, music", sounds: [.plays()], names: ["baresip"], isCall: false),
        Row(what: "recording alone: a voice memo", sounds: [.records()], names: ["chromium"], isCall: false),
        Row(what: "recording, playing paused", sounds: [.records(), .playsPaused], names: ["chromium"], isCall: false),
        Row(what: "playing, recording paused", sounds: [.plays(), .recordsPaused], names: ["chromium"], isCall: false),
        Row(what: "recording a monitor", sounds: [.plays(), .recordsMonitor], names: ["chromium"], isCall: false),
        Row(what: "a level meter", sounds: [.plays(), .measures], names: ["chromium"], isCall: false),
        Row(
            what: "labelled otherwise", sounds: [.plays(role: "game"), .records(role: "game")],
            names: ["telegram-desktop"], isCall: false),
        Row(
            what: "labelled otherwise, and named", sounds: [.plays(role: "game"), .records(role: "game")],
            names: ["mumble"], isCall: true, named: ["mumble"]),
        Row(
            what: "one stream labelled otherwise beside the call", sounds: both + [.plays(role: "music")],
            names: ["firefox"], isCall: true),
    ]

    @Test(arguments: rows) func streamsOfAProgram_areACallOrNot(_ row: Row) {
        var world = World {
            $0.adoption.calls = row.calls
            $0.adoption.callPrograms = row.named
        }
        world.names[70] = row.names
        world.sounds[70] = row.sounds
        world.wait(10)
        #expect(world.isInCall == row.isCall)
        #expect(!row.isCall || world.isGuess)
    }

    @Test func oneProgramRecordsAndAnotherPlays_isNoCall() {
        var world = World()
        world.names[71] = ["baresip"]
        world.sounds = [70: [.records()], 71: [.plays()]]
        world.wait(10)
        #expect(!world.isInCall)
    }

    @Test func programInTheNeverList_isInNoCall() {
        var world = World { $0.adoption.never = ["baresip"] }
        world.sounds[70] = Self.both
        world.wait(10)
        #expect(world.sessions.isEmpty)
    }

    @Test func evidence_namesTheSource() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(1)
        #expect(world.call?.evidence == "records from 'Headset Mic' and plays")
        #expect(
            world.enforcement.reason(
                for: AdoptedProgram(
                    program: .process(70), role: Settings.Role(.initial, sessionClass: .call), isGuess: true),
                world.facts
            )
            .contains("guessed call"))
    }

    // MARK: Labels

    @Test(arguments: [
        [Sound.plays(role: "phone")], [.plays(), .records(role: "communication")],
        [.plays(role: "Phone"), .records()],
    ])
    func label_isACallAtOnce(_ sounds: [Sound]) {
        var world = World()
        world.names[70] = ["jamid"]
        world.sounds[70] = sounds
        world.settle()
        #expect(world.isInCall && !world.isGuess)
        // Streams without a label belong to it, too.
        #expect(world.sessions.count == 1)
        world.sounds[70] = []
        world.settle()
        #expect(!world.isInCall)
    }

    /// A voice assistant listens all day.
    @Test(arguments: [[Sound.records(role: "phone")], [.records(role: "phone"), .playsPaused]])
    func labelOfARecordingAlone_isACallOnlyIfTheSettingsSaySo(_ sounds: [Sound]) {
        var world = World()
        world.names[70] = ["assistant"]
        world.sounds[70] = sounds
        world.wait(2)
        #expect(!world.isInCall && world.sessions.isEmpty)
        world.sounds[70] = sounds + [.plays()]
        world.settle()
        #expect(world.isInCall && !world.isGuess)
        world.sounds[70] = sounds
        world.settle()
        #expect(!world.isInCall)
        // Another program plays.
        world.sounds[71] = [.plays()]
        world.wait(2)
        #expect(!world.isInCall)
        world.enforcement.settings.adoption.labelAlone = true
        world.settle()
        #expect(world.isInCall && !world.isGuess)
    }

    /// Its player is paused for its own call, and resumed after it.
    @Test func playerOfTheCallerIsPausedForTheCall_callContinues() {
        var world = World()
        world.names[70] = ["jamid"]
        world.sounds[70] = [.plays(role: "music")]
        world.settle()
        world.sounds[70] = [.plays(role: "music"), .records(role: "phone")]
        world.settle()
        #expect(world.isInCall)
        world.interruptApps()
        world.sounds[70] = [.playsPaused, .records(role: "phone")]
        world.wait(60)
        #expect(world.isInCall)
        world.sounds[70] = [.playsPaused]
        world.settle()
        #expect(!world.isInCall)
        world.sounds[70] = [.playsPaused, .records(role: "phone")]
        world.wait(1)
        #expect(!world.isInCall, "paused by another call, it does not play")
    }

    @Test(arguments: [[Sound.plays(role: "phone"), .records(role: "phone")], [.plays(role: "phone"), .records()]])
    func programWithoutThePrivilege_isInACallWhenItRecordsAndPlays(_ sounds: [Sound]) {
        var world = World()
        world.mayCall = false
        world.names[70] = ["net.example.Phone"]
        world.sounds[70] = [.plays(role: "phone")]
        world.wait(2)
        #expect(!world.isInCall)
        world.sounds[70] = sounds
        world.wait(1)
        #expect(world.isInCall && world.isGuess)
    }

    @Test func labelledStreamOfTheServer_isACallWithoutAProgram() {
        var world = World()
        let stream = AudioStream(
            id: AudioStream.ID(.playback, 5), isProgram: false, role: "phone", deviceName: "speaker",
            portUID: "speaker",
            volume: [65_536])
        func facts(_ role: String?) -> Enforcement.Facts {
            var stream = stream
            stream.role = role
            return Enforcement.Facts(
                sessions: [], streams: [StreamFacts(stream: stream, ancestry: [], sandbox: nil, program: .server)],
                canHold: true, defaultDevice: "speaker", gone: [])
        }
        #expect(world.enforcement.steps(facts(nil), at: 0).isEmpty)
        #expect(world.enforcement.steps(facts("music"), at: 0).isEmpty)
        guard case .adopt(let adopted, let program, _)? = world.enforcement.steps(facts("phone"), at: 0).first else {
            Issue.record("no call")
            return
        }
        #expect(adopted.role.sessionClass == .call && !adopted.isGuess && program.name == "Telephone")
    }

    // MARK: When it begins and ends

    @Test func call_beginsHalfASecondAfterTheProgramRecordsAndPlays() {
        var world = World()
        world.sounds[70] = [.plays()]
        world.wait(3)
        world.sounds[70] = Self.both
        world.wait(0.49)
        #expect(!world.isInCall)
        world.wait(0.02)
        #expect(world.isInCall)
    }

    @Test func pauseBeforeTheCallBegins_startsTheTimeAgain() {
        var world = World()
        for _ in 0..<10 {
            world.sounds[70] = Self.both
            world.wait(0.4)
            world.sounds[70] = [.plays()]
            world.wait(0.1)
        }
        #expect(!world.isInCall)
    }

    /// The streams of the program from then on, and the seconds until the call ends; nil if it does not end.
    @Test(
        arguments: [
            ([], 1.0), ([.playsPaused], 1.0), ([.recordsPaused], 1.0), ([.plays()], 5.0),
            ([.plays(), .recordsPaused], 5.0),
            ([.records()], nil), ([.records(), .playsPaused], nil),
        ] as [([Sound], Double?)])
    func callWithChangedStreams_endsAfterItsTimeOrContinues(_ sounds: [Sound], _ end: Double?) {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        world.sounds[70] = sounds
        world.wait((end ?? 60) - 0.01)
        #expect(world.isInCall)
        world.wait(0.02)
        #expect(world.isInCall == (end == nil))
    }

    /// WirePlumber makes a headset hands-free half a second after a recording has begun, and restores it two seconds after
    /// its end. What resumes before would begin in the quality of a telephone.
    @Test(arguments: [1.2, 2.3, nil] as [Double?])
    func headsetWasMadeHandsFreeForTheCall_itLastsUntilTheHeadsetIsBack_butNotForLong(_ back: Double?) {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(0.55)
        world.isHeadsetHandsFree = true
        world.wait(2)
        world.sounds[70] = []
        world.wait((back ?? 3.5) - 0.01)
        #expect(world.isInCall)
        if back != nil { world.isHeadsetHandsFree = false }
        world.wait(0.02)
        #expect(!world.isInCall)
    }

    @Test func headsetWasHandsFreeBeforeTheCall_nothingWaitsForIt() {
        var world = World()
        world.isHeadsetHandsFree = true
        world.sounds[70] = Self.both
        world.wait(2)
        world.sounds[70] = []
        world.wait(0.99)
        #expect(world.isInCall)
        world.wait(0.02)
        #expect(!world.isInCall)
    }

    @Test func newStreamsOfTheProgram_continueTheCall() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        let id = world.call?.id
        for _ in 0..<5 {
            world.sounds[70] = []
            world.wait(0.9)
            world.sounds[70] = [.plays()]
            world.wait(3)
            world.sounds[70] = Self.both
            world.wait(1)
        }
        #expect(world.call?.id == id)
    }

    @Test func programEnds_itsCallEndsAtOnce() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        world.sounds[70] = []
        world.gone = [70]
        world.settle()
        #expect(world.sessions.isEmpty)
    }

    @Test func callWithAnInhibitor_doesNotEndWithItsStreams() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        world.sustained = [.process(70)]
        world.sounds[70] = [.plays()]
        world.wait(60)
        #expect(world.isInCall)
        world.sustained = []
        world.wait(5.1)
        #expect(!world.isInCall)
    }

    @Test func inhibitorAlone_isNoCall() {
        var world = World()
        world.sustained = [.process(70)]
        world.sounds[70] = [.plays()]
        world.wait(60)
        #expect(!world.isInCall)
    }

    /// The players that a call paused are resumed while its session is still there.
    @Test func sessionOfACall_closesSomeSecondsAfterItsEnd() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        world.sounds[70] = []
        world.wait(1.1)
        let calls = world.sessions.filter { $0.sessionClass == .call }.count
        #expect(!world.isInCall && calls == 1)
        world.wait(10)
        #expect(!world.sessions.contains { $0.sessionClass == .call })
    }

    @Test func secondCall_beginsAndEndsLikeTheFirst() {
        var world = World()
        for _ in 0..<3 {
            world.sounds[70] = Self.both
            world.wait(2)
            #expect(world.isInCall)
            world.sounds[70] = []
            world.wait(2)
            #expect(!world.isInCall)
        }
    }

    @Test func guessingTurnedOff_endsTheCall() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        world.enforcement.settings.adoption.calls = .labelled
        world.wait(6)
        #expect(!world.isInCall)
    }

    /// A call that was known before a restart continues, even if the present streams would not begin one.
    @Test func callOfAnEarlierDaemon_continues() {
        var world = World()
        world.sounds[70] = Self.both
        world.wait(2)
        var next = World()
        next.sessions = world.sessions
        next.sounds[70] = [.plays()]
        next.wait(4)
        #expect(next.isInCall)
        next.wait(2)
        #expect(!next.isInCall)
    }

    // MARK: The same program

    @Test func streamsOfTheCallingProgram_belongToTheCall() {
        var world = World()
        world.sounds[70] = [.plays(), .plays()]
        world.wait(3)
        world.sounds[70] = [.plays(), .plays(), .records()]
        world.wait(1)
        let owners = world.enforcement.owners(world.facts)
        #expect(owners.values.allSatisfy { $0 == [world.call?.id] })
    }

    /// Firefox names all streams of a page after its title, also the recording.
    @Test func otherPagesOfABrowser_areDistinguishedByTheirTitles() {
        var world = World()
        world.names[70] = ["firefox"]
        world.sounds[70] = [.plays(title: "Radio"), .plays(title: "Meeting"), .records(title: "Meeting")]
        world.wait(1)
        let owners = world.enforcement.owners(world.facts)
        #expect(owners[AudioStream.ID(.playback, 701)] == [world.call?.id].compactMap(\.self))
        #expect(owners[AudioStream.ID(.playback, 700)] != [world.call?.id].compactMap(\.self))
        // If the user mutes the microphone, it is closed; the pages stay known.
        world.sounds[70] = [.plays(title: "Radio"), .plays(title: "Meeting")]
        world.wait(1)
        #expect(
            world.enforcement.owners(world.facts)[AudioStream.ID(.playback, 701)] == [world.call?.id].compactMap(\.self)
        )
    }

    /// A program with random streams: it is in a call only if it recorded and played at the same time in the last
    /// seconds.
    @Test(arguments: 0..<50) func randomStreams_areACallOnlyAfterRecordingAndPlaying(_ seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var world = World()
        var lastBoth: UInt64?
        var bothSince: UInt64?
        for _ in 0..<200 {
            world.sounds[70] = [.plays(), .records(), .playsPaused, .recordsPaused, .measures, .plays(title: "x")]
                .filter { _ in Bool.random(using: &random) }
            let sounds = world.sounds[70] ?? []
            let plays = sounds.contains { $0 == .plays() || $0 == .plays(title: "x") }
            let records = sounds.contains(.records())
            if plays, records { bothSince = bothSince ?? world.now } else { bothSince = nil }
            let step = Double(Int.random(in: 1...20, using: &random)) / 10
            world.wait(step)
            if records, world.isInCall { lastBoth = world.now }
            if plays, records { lastBoth = world.now }
            if world.isInCall {
                let since = world.now - (lastBoth ?? 0)
                #expect(since <= 5_000_000, "a call without recording for \(since) µs")
            }
            if let bothSince, world.now - bothSince > 510_000 { #expect(world.isInCall) }
        }
    }
}
