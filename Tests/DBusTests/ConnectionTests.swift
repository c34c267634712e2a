import DBus
import EventLoop
import Foundation
import TestSupport
import Testing

@Suite struct ConnectionTests {
    @Test func badAddress_throws() {
        let loop = EventLoop()
        for address in ["", "nonsense", "unix:path=/nonexistent/bus", "unix:path", "tcp:host=\0"] {
            #expect(throws: Failure.self) { try Connection(.custom(address), loop: loop) }
        }
    }

    @Test func callTimeout_failsWithNoReply_andALateReplyIsIgnored() throws {
        let world = try World()
        let thing = Thing()
        world.service.objects.export(thing, at: World.path, interfaces: [Thing.interface])
        var answers: [Result<[Value], Failure>] = []
        for timeout in [0.02, 0, -1, .nan] {
            world.client.call(try world.message("Keep"), timeout: timeout) { answers.append($0) }
        }
        world.client.call(try world.message("Keep"), timeout: .infinity) { answers.append($0) }
        try world.wait { answers.count == 4 && thing.kept.count == 5 }
        for invocation in thing.kept { invocation.reply() }
        try world.wait { answers.count == 5 }
        try world.settle()
        #expect(answers.count == 5)
        #expect(answers.last == .success([]))
        for case .failure(let failure) in answers { #expect(failure.name == Failure.Name.noReply) }
    }

    /// The timeout of a call that was answered does not wake the loop.
    @Test func answeredCall_leavesTheLoopIdle() throws {
        let world = try World()
        var answers = 0
        for _ in 0..<3 {
            world.client.call(try world.busMessage("GetId", []), timeout: 2) { if case .success = $0 { answers += 1 } }
        }
        try world.wait { answers == 3 }
        try world.settle()
        var isOver = false
        var wakeUps = 0
        let end = Timer(on: world.loop) { isOver = true }
        end.arm(after: 2.5)
        while !isOver {
            world.loop.iterate()
            wakeUps += 1
        }
        #expect(wakeUps == 1)
    }

    @Test func blockingCall_isAnsweredByTheBus() throws {
        let world = try World()
        let message = try world.busMessage("NameHasOwner", [.string(world.service.uniqueName)])
        #expect(try world.client.callAndWait(message, timeout: 10) == [.bool(true)])
        let wrong = try Message.methodCall(
            destination: "org.example.Nobody", path: "/", interface: "a.b", member: "C")
        #expect { try world.client.callAndWait(wrong, timeout: 10) } throws: {
            ($0 as? Failure)?.name == Failure.Name.serviceUnknown
        }
    }

    @Test func name_isAcquiredTakenOverAndLost() throws {
        let world = try World()
        var lost: [String] = []
        world.service.onNameLost = { lost.append($0) }
        #expect(
            try world.service.requestName(World.name, replaceExisting: false, allowReplacement: true) == .owner)
        #expect(
            try world.client.requestName(World.name, replaceExisting: false, allowReplacement: false)
                == .taken(by: world.service.uniqueName))
        #expect(try world.client.requestName(World.name, replaceExisting: true, allowReplacement: false) == .owner)
        try world.wait { !lost.isEmpty }
        #expect(lost == [World.name])
        for name in ["", "x", ":1.1", "a b.c", "a.b\0"] {
            #expect(throws: Failure.self) {
                try world.client.requestName(name, replaceExisting: true, allowReplacement: true)
            }
        }
        world.client.releaseName(World.name)
        #expect(
            try world.service.requestName(World.name, replaceExisting: false, allowReplacement: false) == .owner)
    }

    @Test func credentials_comeFromTheKernel() throws {
        let world = try World()
        var answers: [Result<Credentials, Failure>] = []
        for name in [world.service.uniqueName, "org.example.Nobody", "not a name\0"] {
            world.client.credentials(of: name) { answers.append($0) }
        }
        try world.wait { answers.count == 3 }
        let own = try #require(answers.compactMap { try? $0.get() }.first)
        #expect(own.processID == UInt32(getpid()) && own.userID == getuid())
        #expect(answers.filter { (try? $0.get()) == nil }.count == 2)
    }

    @Test func busIsKilled_eachCallFailsOnceAndTheLossIsReportedOnce() throws {
        let world = try World()
        let thing = Thing()
        world.service.objects.export(thing, at: World.path, interfaces: [Thing.interface])
        var (told, answers) = (0, [Result<[Value], Failure>]())
        world.client.onDisconnect = {
            #expect(answers.count == 50)
            told += 1
        }
        let subscription = world.client.subscribe(interface: "a.b") { _ in }
        let watch = world.client.watchName(World.name) {}
        for _ in 0..<50 { world.client.call(try world.message("Keep")) { answers.append($0) } }
        try world.wait { thing.kept.count == 50 }
        world.bus.kill()
        try world.wait { told == 1 && !world.service.isOpen }
        #expect(answers == Array(repeating: .failure(.disconnected), count: 50))
        world.client.send(try world.message("Keep"))
        thing.kept[0].reply()
        thing.kept.removeAll()
        world.service.objects.emit(path: "/", interface: "a.b", member: "C")
        world.client.call(try world.message("Keep")) { answers.append($0) }
        #expect(answers.count == 50)
        try world.wait { answers.count == 51 }
        #expect(throws: Failure.self) { try world.client.callAndWait(world.message("Keep"), timeout: 1) }
        #expect(throws: Failure.self) {
            try world.client.requestName("a.b", replaceExisting: false, allowReplacement: false)
        }
        world.client.flush()
        world.client.close()
        // The loop is not busy: without work it waits for the timer.
        var rounds = 0
        world.loop.iterate(timeout: 0.05) {
            rounds += 1
            return false
        }
        #expect(rounds < 10)
        #expect(told == 1)
        withExtendedLifetime((subscription, watch)) {}
    }

    @Test func closedConnection_failsItsCallsAndReleasesEverything() throws {
        let world = try World()
        let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        var answers = 0
        weak var gone: Connection?
        do {
            let connection = try world.connect()
            gone = connection
            connection.onDisconnect = { Issue.record("close() must not report a disconnect") }
            for _ in 0..<3 {
                connection.call(try world.message("Keep")) {
                    if case .failure(.disconnected) = $0 { answers += 1 }
                }
            }
            connection.close()
            connection.close()
            #expect(answers == 0)
        }
        try world.wait { answers == 3 }
        #expect(gone == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count <= before)
    }

    @Test func connectionReleasedInItsOwnHandler_doesNotCrash() throws {
        let world = try World()
        var connection: Connection? = try world.connect()
        var done = false
        connection?.call(
            try Message.methodCall(
                destination: "org.freedesktop.DBus", path: "/", interface: "org.freedesktop.DBus", member: "GetId")
        ) { _ in
            connection = nil
            done = true
        }
        try world.wait { done }
        try world.settle()
    }

    /// libdbus reads nothing while so large a message is handled, so the answer must come on another connection.
    @Test func callerIsLookedAtWhileItsLargeCallIsHandled_theBusAnswersAtOnce() throws {
        let world = try World()
        let service = world.service
        var users: [UInt32?] = []
        service.objects.relay(path: "/asks") { call in
            users.append(try? service.credentialsAndWait(of: call.sender, timeout: World.watchdog).userID)
            call.reply()
        }
        // A little less than a million values: more are refused.
        let numbers = Value.array(of: "t", Array(repeating: .uint64(7), count: (1 << 20) - 128))
        let texts = Value.array(of: "s", Array(repeating: .string(String(repeating: "x", count: 60_000)), count: 60))
        for _ in 0..<2 {
            let call = try world.message("Look", [numbers, texts], interface: "org.example.Any", path: "/asks")
            #expect(try world.answer(to: call) == .success([]))
        }
        #expect(users == [getuid(), getuid()])
    }

    @Test func busIsStoppedAndContinued_receivesEverythingInOrder() throws {
        let world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        // Several times as much as a socket buffers, in messages of every length.
        let texts = (0..<3_000).map { String(repeating: "x", count: $0) }
        var answers: [Result<[Value], Failure>] = []
        world.bus.suspend()
        for text in texts {
            world.client.call(try world.message("Echo", [.variant(.string(text))])) { answers.append($0) }
        }
        // Messages that cannot be written yet do not block the loop.
        var isFree = false
        world.loop.later { isFree = true }
        try world.wait { isFree }
        world.bus.resume()
        try world.wait { answers.count == texts.count }
        #expect(answers == texts.map { .success([.variant(.string($0))]) })
        #expect(try world.client.callAndWait(world.busMessage("NameHasOwner", [.string(World.name)])) == [.bool(false)])
    }

    @Test func batch_isSentAtItsEndOrWhenPushed() throws {
        let world = try World()
        var heard: [String] = []
        let subscription = world.client.subscribe(path: World.path) { heard.append($0.member ?? "") }
        try world.settle()
        world.service.batch {
            for member in ["A", "B"] { world.service.objects.emit(path: World.path, interface: "a.b", member: member) }
            world.service.push()
            world.service.batch { world.service.objects.emit(path: World.path, interface: "a.b", member: "C") }
            world.loop.iterate(timeout: World.watchdog) { heard.count >= 2 }
            #expect(heard == ["A", "B"])
        }
        try world.wait { heard.count == 3 }
        #expect(heard == ["A", "B", "C"])
        withExtendedLifetime(subscription) {}
    }

    @Test func replyFromAnotherSender_isIgnored() throws {
        let world = try World()
        let thing = Thing()
        world.service.objects.export(thing, at: World.path, interfaces: [Thing.interface])
        var answers: [Result<[Value], Failure>] = []
        let message = try world.message("Keep")
        world.client.call(message) { answers.append($0) }
        try world.wait { thing.kept.count == 1 }
        // A session bus forwards replies to calls that were never made.
        let stranger = try world.connect()
        let forged = message.reply()
        forged.destination = world.client.uniqueName
        forged.append([.string("forged")])
        stranger.send(forged)
        stranger.flush()
        try world.settle()
        #expect(answers.isEmpty)
        thing.kept[0].reply([.string("true")])
        try world.wait { !answers.isEmpty }
        #expect(answers == [.success([.string("true")])])
    }
}
