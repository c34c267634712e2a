import PluginAPI
import Testing

@testable import ReferenceModel
@testable import Uploading

/// The rules of one upload: a table of what each status means, single stories, and long random runs against a server.
@Suite struct UploadMachineTests {
    private static func machine(
        _ method: UploadMachine.Method = .tus, size: UInt64 = 100, chunk: UInt64 = 40, tries: Int = 5
    ) -> UploadMachine {
        UploadMachine(.init(method: method, size: size, chunkSize: chunk, tries: tries), to: "http://host/up")
    }

    private static func created(
        size: UInt64 = 100, chunk: UInt64 = 40, tries: Int = 5
    ) -> UploadMachine {
        var machine = machine(size: size, chunk: chunk, tries: tries)
        _ = machine.handle(.allowed(true), at: 0)
        _ = machine.handle(.answered(.init(201, location: "http://host/up/1")), at: 0)
        return machine
    }

    /// What every status means for every request, as text.
    @Test(arguments: [
        ("http://host/dir/", "f.txt", "http://host/dir/f.txt"), ("http://host/f", "x", "http://host/f"),
        ("http://host/dir/?a=b/", "a b\u{e9}", "http://host/dir/a%20b%C3%A9?a=b/"),
        ("http://host?q=/", "x", "http://host?q=/"),
    ]) func addressOfAFolder_getsTheNameOfTheFile(_ address: String, _ name: String, _ expected: String) {
        #expect(UploadMachine.placeOfFile(named: name, at: address) == expected)
    }

    @Test func statuses_meanWhatTheTableSays() {
        let requests: [(Character, UploadMachine.Request, UploadMachine.Method)] = [
            ("O", .ask, .auto), ("C", .create, .tus), ("H", .offset, .tus), ("P", .send(offset: 0, count: 1), .tus),
            ("U", .whole, .put), ("F", .whole, .post), ("V", .proof, .put),
        ]
        var table = TransitionTable(requests.map { $0.0 }, nameWidth: 4, cellWidth: 9)
        let statuses = [
            200, 201, 204, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 407, 408, 409, 410, 412, 413, 415,
            423,
            425, 429, 451, 460, 500, 501, 502, 503, 504, 505, 507, 511, 600,
        ]
        for status in statuses {
            table.add(
                "\(status)",
                requests.map { request in
                    switch Verdict(of: status, to: request.1, by: request.2) {
                    case .accepted: "yes"
                    case .elsewhere: "there"
                    case .again: "later"
                    case .otherOffset: "offset"
                    case .forgotten: "anew"
                    case .tooLarge: "smaller"
                    case .notTus: "put"
                    case .refused: "no"
                    }
                })
        }
        #expect(
            table.text == """
                     | O        C        H        P        U        F        V
                200  | yes      yes      yes      yes      yes      yes      yes
                201  | yes      yes      yes      yes      yes      yes      yes
                204  | yes      yes      yes      yes      yes      yes      yes
                301  | there    there    there    there    there    there    there
                302  | there    there    there    there    there    yes      there
                303  | put      no       no       no       yes      yes      no
                304  | put      no       no       no       no       no       no
                307  | there    there    there    there    there    there    there
                308  | there    there    there    there    there    there    there
                400  | put      no       no       no       no       no       no
                401  | put      no       no       no       no       no       no
                403  | put      no       no       no       no       no       no
                404  | put      no       anew     anew     no       no       no
                405  | put      no       no       no       no       no       no
                407  | put      no       no       no       no       no       no
                408  | later    later    later    later    later    later    later
                409  | put      no       no       offset   no       no       no
                410  | put      no       anew     anew     no       no       no
                412  | put      no       no       no       no       no       no
                413  | put      no       no       smaller  no       no       no
                415  | put      no       no       no       no       no       no
                423  | later    later    later    later    later    later    later
                425  | later    later    later    later    later    later    later
                429  | later    later    later    later    later    later    later
                451  | put      no       no       no       no       no       no
                460  | put      no       no       offset   no       no       no
                500  | later    later    later    later    later    later    later
                501  | put      no       no       no       no       no       no
                502  | later    later    later    later    later    later    later
                503  | later    later    later    later    later    later    later
                504  | later    later    later    later    later    later    later
                505  | put      no       no       no       no       no       no
                507  | later    later    later    later    later    later    later
                511  | later    later    later    later    later    later    later
                600  | put      no       no       no       no       no       no
                """)
    }

    /// What every input does in every stage: the stage afterwards and the effects.
    @Test func inputs_doWhatTheTableSays() {
        let states: [(Character, [UploadMachine.Input])] = [
            ("R", []),
            ("C", [.allowed(true)]),
            ("S", [.allowed(true), .answered(.init(201, location: "l"))]),
            ("W", [.allowed(true), .answered(.init(201, location: "l")), .cut("c", counts: true)]),
            ("P", [.allowed(true), .answered(.init(201, location: "l")), .pause]),
            ("D", [.allowed(true), .cancel]),
        ]
        let inputs: [(String, UploadMachine.Input)] = [
            ("allowed", .allowed(true)), ("not allowed", .allowed(false)),
            ("answered 204 40", .answered(.init(204, offset: 40))),
            ("answered 423", .answered(.init(423, retryAfter: 9))),
            ("answered 404", .answered(.init(404))), ("answered 403", .answered(.init(403))),
            ("cut", .cut("c", counts: true)), ("cut, offline", .cut("c", counts: false)),
            ("broke", .broke(SessionError(.networkFailed, "b"))),
            ("source lost", .sourceLost(SessionError(.invalidSource, "s"))), ("time passed", .timePassed),
            ("network changed", .networkChanged), ("pause", .pause), ("resume", .resume), ("cancel", .cancel),
        ]
        var table = TransitionTable(states.map { $0.0 }, nameWidth: 16, cellWidth: 26)
        for (name, input) in inputs {
            table.add(
                name,
                states.map { _, before in
                    var machine = Self.machine()
                    for step in before { _ = machine.handle(step, at: 0) }
                    let stage = machine.stage
                    let effects = machine.handle(input, at: 2_000_000)
                    let after = machine.stage == stage && effects.isEmpty ? "-" : Self.letter(machine.stage)
                    return ([after] + effects.map(Self.word)).joined(separator: " ")
                })
        }
        #expect(
            table.text == """
                                 | R                         C                         S                         W                         P                         D
                allowed          | C create                  -                         -                         -                         -                         -
                not allowed      | -                         R abort                   R abort                   -                         -                         -
                answered 204 40  | -                         D failed                  S save send40             -                         -                         -
                answered 423     | -                         W wait9                   W wait9                   -                         -                         -
                answered 404     | -                         D failed                  W save wait1              -                         -                         -
                answered 403     | -                         D failed                  D failed                  -                         -                         -
                cut              | -                         W wait1                   W wait1                   -                         -                         -
                cut, offline     | -                         W wait1                   W wait1                   -                         -                         -
                broke            | -                         D failed                  D failed                  -                         -                         -
                source lost      | D failed                  D abort failed            D abort remove failed     D remove failed           D remove failed           -
                time passed      | -                         -                         -                         H offset                  -                         -
                network changed  | -                         -                         -                         H offset                  -                         -
                pause            | R save                    R abort save              R abort save              W save                    -                         -
                resume           | -                         -                         -                         -                         H save offset             -
                cancel           | D cancelled               D abort cancelled         D abort remove cancelled  D remove cancelled        D remove cancelled        -
                """, "\(table.text)")
    }

    private static func letter(_ stage: UploadMachine.Stage) -> String {
        switch stage {
        case .ready: "R"
        case .working(let request):
            switch request {
            case .ask: "O"
            case .create: "C"
            case .offset: "H"
            case .send: "S"
            case .whole: "U"
            case .proof: "V"
            }
        case .waiting: "W"
        case .over: "D"
        }
    }

    private static func word(_ effect: UploadMachine.Effect) -> String {
        switch effect {
        case .request(.send(let offset, _)): "send\(offset)"
        case .request(let request): "\(request)"
        case .abort: "abort"
        case .wait(let until): "wait\((until - 2_000_000) / 1_000_000)"
        case .save: "save"
        case .remove: "remove"
        case .end(.done): "done"
        case .end(.failed): "failed"
        case .end(.cancelled): "cancelled"
        }
    }

    // MARK: Stories

    @Test func tusWithoutTrouble_sendsPieceByPiece() {
        var machine = Self.machine()
        #expect(machine.handle(.allowed(true), at: 0) == [.request(.create)])
        #expect(
            machine.handle(.answered(.init(201, location: "l")), at: 0) == [
                .save(mustSurvive: true), .request(.send(offset: 0, count: 40)),
            ])
        #expect(
            machine.handle(.answered(.init(204, offset: 40)), at: 0) == [
                .save(mustSurvive: false), .request(.send(offset: 40, count: 40)),
            ])
        #expect(
            machine.handle(.answered(.init(204, offset: 80)), at: 0) == [
                .save(mustSurvive: false), .request(.send(offset: 80, count: 20)),
            ])
        #expect(machine.handle(.answered(.init(204, offset: 100)), at: 0) == [.end(.done)])
        #expect(machine.handle(.cancel, at: 0) == [])
    }

    @Test func emptyFile_isDoneWhenItIsCreated() {
        var machine = Self.machine(size: 0)
        #expect(machine.handle(.allowed(true), at: 0) == [.request(.create)])
        #expect(machine.handle(.answered(.init(201, location: "l")), at: 0) == [.end(.done)])
    }

    @Test func auto_asksAndTakesWhatThereIs() {
        var tus = Self.machine(.auto)
        #expect(tus.handle(.allowed(true), at: 0) == [.request(.ask)])
        #expect(
            tus.handle(.answered(.init(204, speaksTus: true)), at: 0) == [.save(mustSurvive: false), .request(.create)])
        #expect(tus.method == .tus)
        for answer in [UploadMachine.Answer(204), .init(405), .init(404), .init(501), .init(200, isPage: true)] {
            var put = Self.machine(.auto)
            _ = put.handle(.allowed(true), at: 0)
            #expect(put.handle(.answered(answer), at: 0) == [.save(mustSurvive: false), .request(.whole)])
            #expect(put.method == .put)
        }
    }

    @Test func fiveTriesWithoutProgress_areAllWithLongerAndLongerWaits() {
        var machine = Self.created()
        var now: UInt64 = 0
        var waits: [UInt64] = []
        while true {
            guard case .wait(let until) = machine.handle(.cut("gone", counts: true), at: now).last else { break }
            waits.append((until - now) / 1_000_000)
            now = until
            _ = machine.handle(.timePassed, at: now)
        }
        #expect(waits == [1, 3, 8, 22, 60])
        guard case .over(.failed(let error)) = machine.stage else {
            Issue.record("\(machine.stage)")
            return
        }
        #expect(error.code == .networkFailed)
        #expect(error.reason == "gone; tried 6 times without progress. Upload it again later")
    }

    @Test func progress_resetsTheTries() {
        var machine = Self.created()
        for round in 0..<20 {
            let offset = UInt64(round + 1)
            _ = machine.handle(.cut("gone", counts: true), at: 0)
            #expect(machine.troubles == 1)
            _ = machine.handle(.networkChanged, at: 0)
            #expect(
                machine.handle(.answered(.init(200, offset: offset, length: 100)), at: 0).last
                    == .request(.send(offset: offset, count: 40)))
        }
    }

    private static func sent(_ method: UploadMachine.Method = .put) -> UploadMachine {
        var machine = UploadMachine(.init(method: method, size: 100), to: "a")
        #expect(machine.handle(.allowed(true), at: 0) == [.request(.whole)])
        #expect(machine.handle(.sent, at: 0) == [.save(mustSurvive: true)])
        return machine
    }

    private static func isUncertain(_ machine: UploadMachine) -> Bool {
        guard case .over(.failed(let error)) = machine.stage else { return false }
        return error.reason.hasSuffix("it may be there; check before you upload it again")
    }

    @Test(arguments: [UploadMachine.Method.put, .post])
    func wholeFileThatMayBeThere_isNeverSentAgain(_ method: UploadMachine.Method) {
        let inputs: [UploadMachine.Input] = [
            .cut("gone", counts: true), .cut("offline", counts: false), .answered(.init(502)), .answered(.init(504)),
        ]
        for input in inputs {
            var machine = Self.sent(method)
            _ = machine.handle(input, at: 0)
            #expect(Self.isUncertain(machine), "\(input): \(machine.stage)")
        }
        var later = UploadMachine(.init(method: method, size: 100), to: "a", mayBeThere: true)
        _ = later.handle(.allowed(true), at: 0)
        #expect(Self.isUncertain(later))
    }

    @Test func answerToAWholeFile_decidesWhetherItIsThere() {
        for input in [UploadMachine.Input.answered(.init(503)), .notStored("no HTTP", counts: true)] {
            var machine = Self.sent()
            #expect(machine.handle(input, at: 0).first == .save(mustSurvive: false))
            #expect(!machine.mayBeThere)
            #expect(machine.handle(.networkChanged, at: 0) == [.request(.whole)])
        }
        var done = Self.sent()
        #expect(done.handle(.answered(.init(201)), at: 0) == [.end(.done)])
        // Before the last byte, nothing can be there.
        var cut = UploadMachine(.init(method: .put, size: 100), to: "a")
        _ = cut.handle(.allowed(true), at: 0)
        _ = cut.handle(.cut("gone", counts: true), at: 0)
        #expect(cut.handle(.networkChanged, at: 0) == [.request(.whole)])
    }

    @Test func pauseAfterTheLastByte_waitsForTheAnswer() {
        for input in [UploadMachine.Input.pause, .allowed(false)] {
            var machine = Self.sent()
            #expect(!machine.handle(input, at: 0).contains(.abort))
            #expect(machine.handle(.answered(.init(201)), at: 0) == [.end(.done)])
        }
    }

    @Test func zeroTries_neverGiveUp() {
        var machine = Self.created(tries: 0)
        for _ in 0..<2_000 {
            _ = machine.handle(.cut("gone", counts: true), at: 0)
            guard case .waiting(_, let until, _) = machine.stage else {
                Issue.record("\(machine.stage)")
                return
            }
            #expect(until <= 60_000_000)
            _ = machine.handle(.timePassed, at: until)
        }
    }

    @Test func offline_isNoTry() {
        var machine = Self.created()
        for _ in 0..<50 {
            _ = machine.handle(.cut("offline", counts: false), at: 0)
            _ = machine.handle(.networkChanged, at: 0)
        }
        #expect(machine.troubles == 0)
        #expect(machine.stage == .working(.offset))
    }

    @Test func serverThatForgetsAgainAndAgain_isNoProgress() {
        var machine = Self.created()
        var count = 0
        while !machine.isOver, count < 100 {
            count += 1
            _ = machine.handle(.answered(.init(204, offset: machine.confirmed + 40)), at: 0)
            _ = machine.handle(.answered(.init(404)), at: 0)
            _ = machine.handle(.networkChanged, at: 0)
            _ = machine.handle(.answered(.init(201, location: "l\(count)")), at: 0)
        }
        // The first piece was progress, the same again is none.
        #expect(count <= 7)
        #expect(machine.isOver)
    }

    @Test func serverThatLostSomething_getsItAgain() {
        var machine = Self.created()
        _ = machine.handle(.answered(.init(204, offset: 40)), at: 0)
        _ = machine.handle(.answered(.init(409)), at: 0)
        #expect(machine.handle(.networkChanged, at: 0) == [.request(.offset)])
        #expect(
            machine.handle(.answered(.init(200, offset: 10, length: 100)), at: 0) == [
                .save(mustSurvive: false), .request(.send(offset: 10, count: 40)),
            ])
    }

    @Test func confirmationThatIsNone_isNotBelieved() {
        for answer in [
            UploadMachine.Answer(200, isPage: true), .init(204), .init(204, offset: 0), .init(204, offset: 41),
            .init(204, offset: 1_000),
        ] {
            var machine = Self.created()
            guard case .wait = machine.handle(.answered(answer), at: 0).last else {
                Issue.record("\(answer)")
                continue
            }
            #expect(machine.confirmed == 0)
            #expect(machine.handle(.networkChanged, at: 0) == [.request(.offset)])
        }
    }

    @Test func otherFileAtTheAddress_fails() {
        for answer in [UploadMachine.Answer(200, offset: 101), .init(200, offset: 5, length: 99)] {
            var machine = Self.created()
            _ = machine.handle(.cut("gone", counts: true), at: 0)
            _ = machine.handle(.networkChanged, at: 0)
            guard case .end(.failed(let error)) = machine.handle(.answered(answer), at: 0).last else {
                Issue.record("\(answer)")
                continue
            }
            #expect(error.code == .invalidSource)
        }
    }

    @Test func pieceTooLarge_isMadeSmaller() {
        var machine = Self.created(size: 100 << 20, chunk: 8 << 20)
        var sizes: [UInt64] = []
        while case .working(.send(_, let count)) = machine.stage {
            sizes.append(count >> 10)
            _ = machine.handle(.answered(.init(413)), at: 0)
            _ = machine.handle(.answered(.init(200, offset: 0, length: 100 << 20)), at: 0)
        }
        #expect(sizes == [8_192, 2_048, 512, 128, 64])
        #expect(machine.isOver)
    }

    @Test func retryAfter_isWaitedFor() {
        var machine = Self.created()
        #expect(machine.handle(.answered(.init(429, retryAfter: 100)), at: 5) == [.wait(until: 100_000_005)])
        #expect(machine.handle(.timePassed, at: 99_000_000) == [])
        #expect(machine.handle(.timePassed, at: 100_000_005) == [.request(.offset)])
        #expect(machine.handle(.answered(.init(503, retryAfter: 1e9)), at: 0) == [.wait(until: 3_600_000_000)])
    }

    @Test func putAnsweredWithAPage_mustBeProven() {
        func asked() -> UploadMachine {
            var machine = Self.machine(.put)
            #expect(machine.handle(.allowed(true), at: 0) == [.request(.whole)])
            #expect(machine.handle(.answered(.init(200, isPage: true)), at: 0) == [.request(.proof)])
            return machine
        }
        var stored = asked()
        #expect(stored.handle(.answered(.init(200, length: 100)), at: 0) == [.end(.done)])
        for answer in [UploadMachine.Answer(200, length: 99), .init(200, isPage: true), .init(404), .init(405)] {
            var machine = asked()
            guard case .end(.failed) = machine.handle(.answered(answer), at: 0).last else {
                Issue.record("\(answer)")
                continue
            }
        }
        var form = Self.machine(.post)
        _ = form.handle(.allowed(true), at: 0)
        #expect(form.handle(.answered(.init(200, isPage: true)), at: 0) == [.end(.done)])
    }

    @Test func redirection_isFollowedAFewTimes() {
        var machine = Self.machine(.put)
        _ = machine.handle(.allowed(true), at: 0)
        for round in 1...5 {
            let effects = machine.handle(.answered(.init(307, location: "http://other/\(round)")), at: 0)
            #expect(effects == [.save(mustSurvive: false), .request(.whole)])
            #expect(machine.address == "http://other/\(round)")
        }
        guard case .end(.failed) = machine.handle(.answered(.init(307, location: "http://other/6")), at: 0).last else {
            Issue.record("it did not end")
            return
        }
        var nowhere = Self.machine(.put)
        _ = nowhere.handle(.allowed(true), at: 0)
        guard case .end(.failed) = nowhere.handle(.answered(.init(307)), at: 0).last else {
            Issue.record("it did not end")
            return
        }
    }

    @Test func serverThatRedirectsEveryPiece_failsAfterAFewTimes() {
        var machine = Self.created()
        for round in 1...5 {
            let redirection = machine.handle(.answered(.init(307, location: "http://other/\(round)")), at: 0)
            #expect(redirection.last == .request(.offset))
            #expect(
                machine.handle(.answered(.init(200, offset: 0)), at: 0).last == .request(.send(offset: 0, count: 40)))
        }
        guard case .end(.failed) = machine.handle(.answered(.init(307, location: "http://other/6")), at: 0).last else {
            Issue.record("it did not end")
            return
        }
    }

    // MARK: Random runs

    /// A server by tus, as bad as chance has it.
    private struct Server {
        var stored: [String: UInt64] = [:]
        var created = 0
        var isWhole = false

        /// Its answer; nil: the connection was cut.
        mutating func answer(
            _ request: UploadMachine.Request, of machine: UploadMachine, _ chance: inout SplitMix64, isGood: Bool
        ) -> UploadMachine.Answer? {
            let whim = isGood ? 100 : Int.random(in: 0..<100, using: &chance)
            switch whim {
            case 0..<8:
                return UploadMachine.Answer(
                    [408, 423, 425, 429, 500, 503].randomElement(using: &chance)!, retryAfter: 2)
            // Nobody can tell the page that answers a form from another one.
            case 8..<11 where request != .whole || machine.method != .post: return .init(200, isPage: true)
            case 11..<14: return nil
            case 14: stored = [:]
            case 15: for name in stored.keys { stored[name]! /= 2 }
            default: break
            }
            switch request {
            case .ask: return .init(204, speaksTus: true)
            case .create:
                created += 1
                stored["u\(created)"] = 0
                return whim == 16 ? nil : .init(201, location: "u\(created)")
            case .offset:
                guard let have = machine.uploadAddress.flatMap({ stored[$0] }) else { return .init(404) }
                return .init(200, offset: have, length: machine.size)
            case .send(let offset, let count):
                guard let name = machine.uploadAddress, let have = stored[name] else { return .init(404) }
                guard have == offset else { return .init(409) }
                let kept = (17..<40).contains(whim) ? UInt64.random(in: 0...count, using: &chance) : count
                stored[name] = have + kept
                return kept < count || whim == 40 ? nil : .init(204, offset: have + kept)
            case .whole:
                if whim < 40 { return nil }
                isWhole = true
                return .init(201)
            case .proof: return .init(200, length: isWhole ? machine.size : 5)
            }
        }

        func has(_ machine: UploadMachine) -> Bool {
            isWhole || machine.uploadAddress.flatMap { stored[$0] } == machine.size
        }
    }

    @Test(arguments: 0..<40) func randomServers_neverHaveLessThanWasConfirmed(_ seed: UInt64) {
        var chance = SplitMix64(seed: seed)
        for run in 0..<100 {
            let method = [UploadMachine.Method.auto, .tus, .tus, .put, .post].randomElement(using: &chance)!
            var machine = UploadMachine(
                .init(
                    method: method, size: .random(in: 0...300, using: &chance),
                    chunkSize: .random(in: 1...120, using: &chance),
                    tries: run % 3 == 0 ? 0 : 5, spread: .random(in: 0...1, using: &chance)), to: "a")
            var server = Server()
            var now: UInt64 = 0
            var isUnderWay: UploadMachine.Request?
            var kept: (UploadMachine.Method, String?, UInt64)?
            var steps = 0
            func take(_ input: UploadMachine.Input) {
                let wasOver = machine.isOver
                if case .answered = input { isUnderWay = nil }
                if case .cut = input { isUnderWay = nil }
                for effect in machine.handle(input, at: now) {
                    #expect(!wasOver, "nothing comes after the end")
                    switch effect {
                    case .request(let request):
                        #expect(isUnderWay == nil && machine.isAllowed && !machine.isPaused)
                        if case .send(let offset, let count) = request {
                            #expect(offset == machine.confirmed && count > 0 && offset + count <= machine.size)
                        }
                        isUnderWay = request
                    case .abort:
                        #expect(isUnderWay != nil)
                        isUnderWay = nil
                    case .wait(let until): #expect(until > now && until <= now + 72_000_000)
                    case .save: kept = (machine.method, machine.uploadAddress, machine.confirmed)
                    case .remove(let address): #expect(address == machine.uploadAddress)
                    case .end(.done): #expect(server.has(machine), "seed \(seed), run \(run)")
                    case .end: #expect(isUnderWay == nil)
                    }
                }
                #expect((machine.troubles <= 6 || run % 3 == 0) && machine.confirmed <= machine.size)
            }
            take(.allowed(true))
            while !machine.isOver, steps < 5_000 {
                steps += 1
                // In the end everything is well.
                let isGood = steps > 300
                if isGood, machine.isPaused { take(.resume) }
                if isGood, !machine.isAllowed { take(.allowed(true)) }
                switch isGood ? 10 : Int.random(in: 0..<40, using: &chance) {
                case 0: take(.allowed(false))
                case 1: take(.allowed(true))
                case 2: take(.pause)
                case 3: take(.resume)
                case 4: take(.networkChanged)
                case 5 where Int.random(in: 0..<20, using: &chance) == 0: take(.cancel)
                case 6 where Int.random(in: 0..<10, using: &chance) == 0:
                    // The process was killed, and another one continues with what was kept.
                    isUnderWay = nil
                    machine = UploadMachine(
                        .init(
                            method: kept?.0 ?? method, size: machine.size, chunkSize: machine.chunkSize,
                            tries: run % 3 == 0 ? 0 : 5),
                        to: "a", uploadAddress: kept?.1, confirmed: kept?.2 ?? 0)
                    take(.allowed(true))
                default:
                    if let request = isUnderWay {
                        if let answer = server.answer(request, of: machine, &chance, isGood: isGood) {
                            take(.answered(answer))
                        } else {
                            take(.cut("cut", counts: Bool.random(using: &chance)))
                        }
                    } else if case .waiting(_, let until, _) = machine.stage {
                        now = max(now, until)
                        take(.timePassed)
                    }
                }
            }
            #expect(machine.isOver, "seed \(seed), run \(run): \(machine.stage)")
        }
    }
}
