import DBus
import EventLoop
import TestSupport
import Testing

@Suite struct SubscriptionTests {
    let world: World
    init() throws { world = try World() }

    func emit(_ member: String, path: String = "/a", _ arguments: [Value] = [], from connection: Connection? = nil) {
        (connection ?? world.service).objects.emit(path: path, interface: "a.b", member: member, arguments)
    }

    @Test func signals_goOnlyToSubscribers() throws {
        var heard: [String] = []
        func hear(
            _ name: String, path: String? = nil, interface: String? = nil, member: String? = nil,
            sender: String? = nil, arg0: String? = nil
        ) -> Subscription {
            world.client.subscribe(
                path: path, interface: interface, member: member, sender: sender, arg0: arg0
            ) { heard.append("\(name) \($0.member ?? "")") }
        }
        let subscriptions = [
            hear("interface", interface: "a.b"), hear("path", path: "/a", interface: "a.b"),
            hear("member", member: "One"), hear("other", interface: "a.c"),
            hear("sender", interface: "a.b", sender: world.service.uniqueName),
            hear("stranger", interface: "a.b", sender: world.client.uniqueName),
            hear("arg", interface: "a.b", arg0: "it's, a 'test'\\"), hear("argpath", path: "/b", arg0: "x"),
            hear("malformed", path: "not a path"), hear("nul", arg0: "x\0"),
        ]
        try world.settle()
        emit("One")
        emit("Two", path: "/b", [.string("x")])
        emit("Three", path: "/c", [.string("it's, a 'test'\\"), .byte(1)])
        try world.settle()
        #expect(
            Set(heard) == [
                "interface One", "path One", "member One", "sender One",
                "interface Two", "sender Two", "argpath Two",
                "interface Three", "sender Three", "arg Three",
            ])
        #expect(heard.count == 10)
        withExtendedLifetime(subscriptions) {}
    }

    @Test func identicalSubscriptions_shareARuleUntilTheLastIsDropped() throws {
        var (first, second) = (0, 0)
        var one: Subscription? = world.client.subscribe(interface: "a.b") { _ in first += 1 }
        var two: Subscription? = world.client.subscribe(interface: "a.b") { _ in second += 1 }
        try world.settle()
        emit("One")
        try world.settle()
        #expect((first, second) == (1, 1))
        one = nil
        try world.settle()
        emit("Two")
        try world.settle()
        #expect((first, second) == (1, 2))
        two = nil
        // If the rule had stayed at the bus, the signal would still arrive here.
        try world.settle()
        emit("Three")
        try world.settle()
        #expect((first, second) == (1, 2))
        _ = (one, two)
    }

    @Test func subscriptionDroppedInAHandler_receivesNoMore() throws {
        var (heard, other): (Int, Subscription?) = (0, nil)
        let one = world.client.subscribe(interface: "a.b") { _ in
            heard += 1
            other = nil
        }
        other = world.client.subscribe(interface: "a.b") { _ in heard += 100 }
        try world.settle()
        emit("One")
        emit("Two")
        try world.settle()
        #expect(heard == 2 && other == nil)
        withExtendedLifetime(one) {}
    }

    @Test func signalsOfAWellKnownName_comeOnlyFromItsOwner() throws {
        var heard: [String] = []
        let subscription = world.client.subscribe(interface: "a.b", sender: World.name) {
            heard.append($0.member ?? "")
        }
        // This subscription makes the bus send the forger's signals to the same connection.
        let everything = world.client.subscribe(interface: "a.b") { _ in }
        emit("Nobody")
        _ = try world.service.requestName(World.name, replaceExisting: false, allowReplacement: true)
        emit("Owner")
        let forger = try world.connect()
        emit("Forger", from: forger)
        forger.flush()
        try world.settle()
        _ = try forger.requestName(World.name, replaceExisting: true, allowReplacement: false)
        emit("Former")
        emit("Heir", from: forger)
        try world.wait { heard.count >= 2 }
        try world.settle()
        #expect(heard == ["Owner", "Heir"])
        withExtendedLifetime((subscription, everything)) {}
    }

    @Test func emitToOnePeer_isReceivedOnlyByIt() throws {
        let other = try world.connect()
        var (here, there) = (0, 0)
        let one = world.client.subscribe(interface: "a.b") { _ in here += 1 }
        let two = other.subscribe(interface: "a.b") { _ in there += 1 }
        try world.settle()
        world.service.objects.emit(path: "/", interface: "a.b", member: "C", to: world.client.uniqueName)
        try world.wait { here == 1 }
        try world.settle()
        #expect((here, there) == (1, 0))
        withExtendedLifetime((one, two)) {}
    }

    // MARK: Names

    @Test func watchedNameVanishes_isReportedOnce() throws {
        var told: [String] = []
        let peer = try world.connect()
        _ = try peer.requestName(World.name, replaceExisting: false, allowReplacement: false)
        let watches = [
            world.service.watchName(peer.uniqueName) { told.append("unique") },
            world.service.watchName(peer.uniqueName) { told.append("again") },
            world.service.watchName(World.name) { told.append("well-known") },
            world.service.watchName(world.client.uniqueName) { told.append("wrong") },
        ]
        try world.settle()
        #expect(told.isEmpty)
        peer.close()
        try world.wait { told.count >= 3 }
        try world.settle()
        #expect(told.sorted() == ["again", "unique", "well-known"])
        withExtendedLifetime(watches) {}
    }

    @Test func watchedNameThatIsGoneAlready_isReportedOnceFromTheLoop() throws {
        let peer = try world.connect()
        let name = peer.uniqueName
        peer.close()
        var told = 0
        let watch = world.service.watchName(name) { told += 1 }
        #expect(told == 0)
        try world.wait { told > 0 }
        let another = world.service.watchName(name) { told += 10 }
        try world.wait { told > 1 }
        try world.settle()
        #expect(told == 11)
        withExtendedLifetime((watch, another)) {}
    }

    @Test func droppedWatch_isSilent() throws {
        let peer = try world.connect()
        var watch: Subscription? = world.service.watchName(peer.uniqueName) { Issue.record("dropped") }
        var told = false
        let other = world.service.watchName(peer.uniqueName) { told = true }
        watch = nil
        _ = watch
        peer.close()
        try world.wait { told }
        withExtendedLifetime(other) {}
    }

    @Test func moreWatchesThanRules_areAllCalled() throws {
        var told: Set<Int> = []
        var peers: [Connection] = []
        var watches: [Subscription] = []
        for index in 0..<200 {
            let peer = try world.connect()
            watches.append(world.service.watchName(peer.uniqueName) { told.insert(index) })
            peers.append(peer)
        }
        try world.settle()
        #expect(told.isEmpty)
        for peer in peers { peer.close() }
        try world.wait { told.count == 200 }
        withExtendedLifetime(watches) {}
    }
}
