import PluginAPI
import Testing

@testable import Enforcement
@testable import ReferenceModel

/// Tests every input in every state of a stream's place and of its mute switch.
@Suite struct StreamPlaceTests {
    private static func stream(held: Bool, cycles: Bool = true, on device: String = "speaker") -> AudioStream {
        AudioStream(
            id: AudioStream.ID(.playback, 1), deviceName: device, volume: [65_536], isHeld: held,
            rendering: cycles ? .inCycles(seconds: 0.02) : .atOnce)
    }

    private static func check(held: Bool = false, cycles: Bool = true, at now: UInt64 = 0) -> StreamCheck {
        StreamCheck(stream(held: held, cycles: cycles), at: now)
    }

    private typealias Input = @Sendable (inout StreamPlace, inout StreamCheck) -> Bool

    private static let states: [(letter: Character, place: StreamPlace)] = {
        func made(
            _ place: StreamPlace, at now: UInt64 = 0, _ change: (inout StreamPlace, inout StreamCheck) -> Void
        ) -> StreamPlace {
            var (place, check) = (place, check(at: now))
            change(&place, &check)
            return place
        }
        let (free, astray, held) = (
            StreamPlace(isHeld: false), StreamPlace(astrayOn: "speaker"), StreamPlace(isHeld: true)
        )
        let moving = made(free) { $0.hold(&$1) }
        let promised = made(moving) { place, _ in place.answeredHold(succeeded: true, at: 0) }
        let shown = made(promised) { place, _ in _ = place.shown(isHeld: true, at: 9) }
        let late = made(promised, at: 250_000) { $0.awaitMove(progress: 0, &$1) }
        let leaving = made(held) { $0.letGoAtOnce(to: nil, &$1) }
        let sent = made(astray) { $0.letGo(to: "other", &$1) }
        return [
            ("F", free), ("A", astray), ("M", moving), ("P", promised), ("S", shown), ("H", held), ("L", leaving),
            ("B", sent), ("D", late),
        ]
    }()

    private static let inputs: [(name: String, held: Bool, now: UInt64, input: Input)] = [
        ("hold confirmed", false, 9, { place, _ in no { place.answeredHold(succeeded: true, at: 9) } }),
        ("hold refused", false, 9, { place, _ in no { place.answeredHold(succeeded: false, at: 9) } }),
        ("let go confirmed", false, 9, { place, _ in no { place.answeredLetGo(succeeded: true, at: 9) } }),
        ("let go refused", false, 9, { place, _ in no { place.answeredLetGo(succeeded: false, at: 9) } }),
        ("shown held", true, 9, { place, _ in place.shown(isHeld: true, at: 9) }),
        ("shown elsewhere", false, 9, { place, _ in place.shown(isHeld: false, at: 9) }),
        ("placed held", true, 9, { place, _ in no { place.placedAgain(isHeld: true, at: 9) } }),
        ("placed elsewhere", false, 9, { place, _ in no { place.placedAgain(isHeld: false, at: 9) } }),
        (
            "placed there later", false, 20_000,
            { place, _ in no { place.placedAgain(isHeld: false, at: 20_000) } }
        ),
        ("waited", false, 100_000, { place, check in no { place.awaitMove(progress: 0, &check) } }),
        ("waited long", false, 250_000, { place, check in no { place.awaitMove(progress: 0, &check) } }),
        (
            "others arrived", false, 250_000,
            { place, check in no { place.awaitMove(progress: 100_000, &check) } }
        ),
        ("waited long, held", true, 250_000, { place, check in no { place.awaitMove(progress: 0, &check) } }),
        ("let go", true, 9, { place, check in no { place.letGo(to: nil, &check) } }),
        ("let go later", true, 250_000, { place, check in no { place.letGo(to: nil, &check) } }),
        ("let go, elsewhere", false, 250_000, { place, check in no { place.letGo(to: nil, &check) } }),
        ("let go at once", true, 9, { place, check in no { place.letGoAtOnce(to: nil, &check) } }),
    ]

    private static func no(_ body: () -> Void) -> Bool {
        body()
        return false
    }

    /// States: Free, Astray, Moving, moving with the server's Promise, Shown held after that promise, Held, Leaving,
    /// sent Back from a wrong device, and Delayed on the way to the hold sink. Results: command hold (h), command let go
    /// (g), check again later (t), the stream cannot be held (x), the user moved it (u). A dot means that nothing changes.
    private static let table = """
                           | F    A    M    P    S    H    L    B    D
        hold confirmed     | .    .    P    P    S    S    .    .    .
        hold refused       | Fx   Ax   Fx   Fx   Fx   Fx   Fx   Ax   Fx
        let go confirmed   | .    .    .    .    .    .    .    .    .
        let go refused     | H    H    H    S    .    .    H    H    H
        shown held         | H    H    H    S    .    .    .    .    S
        shown elsewhere    | .    .    .    .    .    Fu   F    A    .
        placed held        | H    H    H    H    H    .    H    H    H
        placed elsewhere   | .    .    F    .    .    F    F    A    F
        placed there later | .    .    F    F    F    F    F    A    F
        waited             | .    .    .    Pt   St   .    .    .    .
        waited long        | .    .    .    D    Hx   .    .    .    .
        others arrived     | .    .    .    Pt   St   .    .    .    .
        waited long, held  | .    .    .    M    H    .    .    .    .
        let go             | .    Bgt  Lgt  Lgt  Lgt  Lgt  Lgt  Bt   Lgt
        let go later       | .    Bgt  Lgt  Lgt  Lgt  Lgt  Lgt  Bgt  Lgt
        let go, elsewhere  | .    Bgt  Lgt  Lgt  Lgt  Lgt  .    Bgt  Lgt
        let go at once     | .    Lg   Lg   Lg   Lg   Lg   .    Lg   Lg
        """

    private static func letter(_ place: StreamPlace) -> Character {
        switch place.state {
        case .free(let astray): astray == nil ? "F" : "A"
        case .moving(let promise): promise == nil ? "M" : "P"
        case .late: "D"
        case .held(let promise): promise == nil ? "H" : "S"
        case .leaving(let astray): astray == nil ? "L" : "B"
        }
    }

    @Test func everyInputInEveryState_agreesWithTheTable() {
        var table = TransitionTable(Self.states.map(\.letter), cellWidth: 5)
        for (name, held, now, input) in Self.inputs {
            let cells = Self.states.map { letter, before -> String in
                #expect(Self.letter(before) == letter)
                var place = before
                var check = Self.check(held: held, at: now)
                let isMoved = input(&place, &check)
                var cell = String(Self.letter(place))
                for command in check.commands { if case .hold = command { cell += "h" } else { cell += "g" } }
                if check.deadline != nil { cell += "t" }
                if before.canBeHeld, !place.canBeHeld { cell += "x" }
                if isMoved { cell += "u" }
                return place.state == before.state && cell.count == 1 ? "." : cell
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\(table.text)")
    }

    /// PipeWire shows a stream without a device while it is moved. The move is not requested again for each of these
    /// reports, but soon if the stream is then on another device.
    @Test func streamThatIsBeingPlaced_isLookedAtSoon() {
        var place = StreamPlace(isHeld: false)
        var check = Self.check()
        place.hold(&check)
        place.answeredHold(succeeded: true, at: 1_000)
        var stream = Self.stream(held: false)
        stream.isSettling = true
        check = StreamCheck(stream, at: 2_000)
        place.placedAgain(isHeld: false, at: 2_000)
        place.awaitMove(progress: 0, &check)
        #expect(place.isHeld && check.deadline == 21_000)
        check = StreamCheck(stream, at: 21_000)
        place.placedAgain(isHeld: false, at: 21_000)
        #expect(!place.isHeld && place.canBeHeld)
    }

    @Test func heldStreamThatTheUserMovesTwice_isNotHeldAgain() {
        var place = StreamPlace(isHeld: true)
        let isFirst = place.shown(isHeld: false, at: 9)
        #expect(isFirst && place.canBeHeld)
        place.forgetEscapes()
        let isMovedThere = place.shown(isHeld: true, at: 9)
        #expect(!isMovedThere && place.canBeHeld)
        let isSecond = place.shown(isHeld: false, at: 9)
        #expect(isSecond && !place.canBeHeld)
        place.forgetEscapes()
        #expect(!place.canBeHeld)
    }

    @Test func muteSwitch_isTheUsersUnlessTheDaemonSetIt() {
        // State before, the user's setting before, the setting shown; state after, the user's setting after, and
        // whether the user changed it meanwhile.
        let cases: [(StreamMute, Bool, Bool, StreamMute, Bool, Bool)] = [
            (.off, false, false, .off, false, false), (.off, false, true, .off, true, false),
            (.off, true, true, .off, true, false), (.off, true, false, .off, false, false),
            (.turningOn, false, false, .turningOn, false, false), (.turningOn, false, true, .on, false, false),
            (.on, false, true, .on, false, false), (.on, false, false, .off, false, true),
            (.turningOff, false, true, .turningOff, false, false), (.turningOff, false, false, .off, false, false),
        ]
        for (before, had, shown, after, has, isTheirs) in cases {
            var mute = before
            var base = StreamBase(volume: [65_536], isMuted: had, deviceName: nil)
            mute.shown(shown, &base)
            #expect(mute == after && base.isMuted == has && base.isMuteTheirs == isTheirs, "\(before) \(had) \(shown)")
        }
        for (before, after) in [(StreamMute.off, StreamMute.off), (.turningOn, .on), (.on, .on), (.turningOff, .off)] {
            var mute = before
            mute.settle()
            #expect(mute == after)
        }
    }
}
