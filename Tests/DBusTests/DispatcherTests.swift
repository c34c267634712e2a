import DBus
import EventLoop
import TestSupport
import Testing

@Suite struct DispatcherTests {
    let world: World
    let thing = Thing()
    let prefix = "org.freedesktop.DBus.Error."
    let properties = "org.freedesktop.DBus.Properties"

    init() throws {
        world = try World()
        world.service.objects.export(thing, at: World.path, interfaces: [Thing.interface])
    }

    @Test func call_withOptions_isAnswered() throws {
        #expect(try world.call("Add", [.uint32(1), .properties([("more", .uint32(2))])]) == [.uint32(3)])
    }

    @Test func wrongSignature_isInvalidArgsNamingMemberAndBoth() throws {
        for arguments: [Value] in [[], [.uint32(1)], [.int32(1), .properties([])], [.uint32(1), .strings([])]] {
            let failure = try #require(try world.failure("Add", arguments))
            #expect(failure.name == prefix + "InvalidArgs")
            #expect(failure.message.contains("Add") && failure.message.contains("(ua{sv})"))
            #expect(failure.message.contains("(\(arguments.map(\.signature).joined()))"))
        }
        #expect(thing.calls == 0)
    }

    @Test func unknownMemberInterfaceAndPath_haveTheirErrors() throws {
        #expect(try world.failure("Nothing")?.name == prefix + "UnknownMethod")
        #expect(try world.failure("Add", interface: "org.example.Other")?.name == prefix + "UnknownInterface")
        #expect(try world.failure("Add", path: "/org/example/thing/1")?.name == prefix + "UnknownObject")
        #expect(try world.failure("Add", path: "/org/example")?.name == prefix + "UnknownInterface")
        for interface in ["Properties", "Introspectable", "Peer"] {
            let failure = try world.failure("Nothing", interface: "org.freedesktop.DBus." + interface)
            #expect(failure?.name == prefix + "UnknownMethod")
        }
        let failure = try world.failure("GetManagedObjects", interface: "org.freedesktop.DBus.ObjectManager")
        #expect(failure?.name == prefix + "UnknownInterface")
    }

    @Test func unknownObject_isExplainedByTheHandler() throws {
        world.service.objects.unknownObject = {
            $0 == "/gone" ? Failure(name: "org.example.Expired", message: $0) : nil
        }
        #expect(try world.failure("Add", path: "/gone") == Failure(name: "org.example.Expired", message: "/gone"))
        #expect(try world.failure("Add", path: "/never")?.name == prefix + "UnknownObject")
    }

    @Test func peer_isServedByTheLibrary() throws {
        let peer = "org.freedesktop.DBus.Peer"
        #expect(try world.call("Ping", interface: peer) == [])
        #expect(try world.call("Ping", interface: peer, path: "/nowhere") == [])
        #expect(try world.call("GetMachineId", interface: peer).first?.stringValue?.count == 32)
    }

    @Test func call_withoutInterface_findsTheMember() throws {
        func answer(_ member: String, _ arguments: [Value] = []) throws -> Result<[Value], Failure> {
            let message = try Message.methodCall(
                destination: world.service.uniqueName, path: World.path, interface: nil, member: member)
            message.append(arguments)
            return try world.answer(to: message)
        }
        #expect(try answer("Twice") == .success([.string("first")]))
        #expect(try answer("GetAll", [.string("")]).get().count == 1)
        #expect(try answer("Ping") == .success([]))
        for (member, name) in [("Nothing", "UnknownMethod"), ("Add", "InvalidArgs"), ("Get", "InvalidArgs")] {
            guard case .failure(let failure) = try answer(member) else {
                Issue.record("\(member) was answered")
                continue
            }
            #expect(failure.name == prefix + name)
        }
    }

    @Test func everyInvocation_isAnsweredOnce() throws {
        #expect(try world.call("Twice") == [.string("first")])
        #expect(try world.failure("Drop")?.name == prefix + "NoReply")
        #expect(try world.failure("Bad")?.name == prefix + "Failed")
        var answers: [Result<[Value], Failure>] = []
        world.client.call(try world.message("Keep")) { answers.append($0) }
        world.client.call(try world.message("Keep")) { answers.append($0) }
        try world.wait { thing.kept.count == 2 }
        thing.kept[1].fail(name: "not a name at all", message: "te\0xt")
        thing.kept[0].reply([.byte(1)])
        try world.wait { answers.count == 2 }
        #expect(answers[0] == .failure(Failure(name: prefix + "Failed", message: "te")))
        #expect(answers[1] == .success([.byte(1)]))
        #expect(thing.kept[0].sender == world.client.uniqueName)
    }

    @Test func callerThatWantsNoReply_getsNone() throws {
        var replies = 0
        let message = try world.message("Nothing")
        message.noReplyExpected = true
        world.client.send(message)
        world.client.call(try world.message("Twice")) { _ in replies += 1 }
        try world.wait { replies == 1 }
        try world.settle()
        #expect(replies == 1)
    }

    @Test func handlerThatCallsItsCaller_getsItsReply() throws {
        final class Asker {
            let ask: (Invocation) -> Void
            init(_ ask: @escaping (Invocation) -> Void) { self.ask = ask }
        }
        let (service, client) = (world.service, world.client)
        client.objects.export(thing, at: "/back", interfaces: [Thing.interface])
        let asker = Asker { invocation in
            guard
                let back = try? Message.methodCall(
                    destination: invocation.sender, path: "/back", interface: Thing.interfaceName, member: "Twice")
            else { return }
            service.call(back, timeout: World.watchdog) { answer in
                if case .success(let values) = answer { invocation.reply(values) }
            }
        }
        let interface = Interface<Asker>(
            name: "org.example.Asker", introspection: "<interface name=\"org.example.Asker\"/>",
            methods: [.init("Ask", "") { $0.ask($1) }])
        service.objects.export(asker, at: World.path, interfaces: [interface])
        #expect(try world.call("Ask", interface: "org.example.Asker") == [.string("first")])
        // The first exported interface is still there.
        #expect(try world.call("Twice") == [.string("first")])
    }

    // MARK: Properties

    func get(_ name: String, of interface: String = Thing.interfaceName) throws -> Result<[Value], Failure> {
        try world.answer(to: world.message("Get", [.string(interface), .string(name)], interface: properties))
    }

    func set(_ name: String, _ value: Value, of interface: String = Thing.interfaceName) throws -> Failure? {
        try world.failure("Set", [.string(interface), .string(name), .variant(value)], interface: properties)
    }

    @Test func properties_areReadAndWritten() throws {
        #expect(try get("Volume").get() == [.variant(.double(0.5))])
        #expect(try get("Volume", of: "").get() == [.variant(.double(0.5))])
        #expect(try set("Volume", .double(1)) == nil)
        #expect(thing.volume == 1)
        let all = try world.call("GetAll", [.string(Thing.interfaceName)], interface: properties)
        #expect(all == [.properties([("Volume", .double(1)), ("Level", .uint32(7)), ("Silent", .uint32(7))])])
        #expect(try world.call("GetAll", [.string("")], interface: properties) == all)
        #expect(try world.call("GetAll", [.string(properties)], interface: properties) == [.properties([])])
    }

    @Test func propertyErrors_haveTheirNames() throws {
        func name(_ answer: Result<[Value], Failure>) -> String? {
            if case .failure(let failure) = answer { failure.name } else { nil }
        }
        #expect(name(try get("Nothing")) == prefix + "UnknownProperty")
        #expect(name(try get("Volume", of: "org.example.Other")) == prefix + "UnknownInterface")
        #expect(name(try get("Volume", of: properties)) == prefix + "UnknownProperty")
        #expect(try set("Level", .uint32(1))?.name == prefix + "PropertyReadOnly")
        #expect(try set("Volume", .string("x"))?.name == prefix + "InvalidArgs")
        #expect(try set("Volume", .double(2)) == .invalidArgs("Volume is from 0 to 1"))
        #expect(try set("Volume", .double(.nan))?.name == prefix + "InvalidArgs")
        #expect(try set("Nothing", .double(2))?.name == prefix + "UnknownProperty")
        let failure = try world.failure("GetAll", [.string("org.example.Other")], interface: properties)
        #expect(failure?.name == prefix + "UnknownInterface")
        #expect(try world.failure("Get", [.string("x")], interface: properties)?.name == prefix + "InvalidArgs")
    }

    @Test func propertyChange_isAnnouncedOnce_unlessDeclaredSilent() throws {
        var told: [[Value]] = []
        let subscription = world.client.subscribe(
            path: World.path, interface: properties, member: "PropertiesChanged", sender: world.service.uniqueName,
            arg0: Thing.interfaceName
        ) { told.append((try? $0.arguments()) ?? []) }
        #expect(try set("Volume", .double(0.25)) == nil)
        #expect(try set("Volume", .double(0.25)) == nil)
        #expect(try set("Silent", .uint32(1)) == nil)
        world.service.objects.propertiesChanged(
            path: World.path, interface: Thing.interfaceName, [("Level", .uint32(1)), ("Silent", .uint32(1))])
        world.service.objects.propertiesChanged(
            path: World.path, interface: Thing.interfaceName, [("Silent", .uint32(2))])
        try world.settle()
        #expect(
            told == [
                [.string(Thing.interfaceName), .properties([("Volume", .double(0.25))]), .strings([])],
                [.string(Thing.interfaceName), .properties([("Level", .uint32(1))]), .strings([])],
            ])
        withExtendedLifetime(subscription) {}
    }

    // MARK: Object manager

    @Test func objectManager_listsAndAnnounces() throws {
        let (root, manager) = ("/org/example", "org.freedesktop.DBus.ObjectManager")
        world.service.objects.enableObjectManager(at: root)
        var heard: [Message] = []
        let subscription = world.client.subscribe(path: root, interface: manager) { heard.append($0) }
        try world.settle()
        let entry = Value.dictionary(
            key: "s", value: "a{sv}",
            [
                DictionaryEntry(
                    key: .string(Thing.interfaceName),
                    value: .properties([("Volume", .double(0.5)), ("Level", .uint32(7)), ("Silent", .uint32(7))]))
            ])
        world.service.objects.export(Thing(), at: root + "/more/1", interfaces: [Thing.interface])
        world.service.objects.export(Thing(), at: "/org/exampleX", interfaces: [Thing.interface])
        let managed = try world.call("GetManagedObjects", interface: manager, path: root)
        #expect(
            managed == [
                .dictionary(
                    key: "o", value: "a{sa{sv}}",
                    [
                        DictionaryEntry(key: .objectPath(World.path), value: entry),
                        DictionaryEntry(key: .objectPath(root + "/more/1"), value: entry),
                    ])
            ])
        world.service.objects.remove(path: root + "/more/1")
        world.service.objects.remove(path: root + "/more/1")
        try world.settle()
        #expect(heard.map(\.member) == ["InterfacesAdded", "InterfacesRemoved"])
        #expect(try heard[0].arguments() == [.objectPath(root + "/more/1"), entry])
        #expect(try heard[1].arguments() == [.objectPath(root + "/more/1"), .strings([Thing.interfaceName])])
        #expect(try world.failure("Twice", path: root + "/more/1")?.name == prefix + "UnknownObject")
        withExtendedLifetime(subscription) {}
    }

    @Test func removedObject_isReleased() throws {
        weak var object: Thing?
        do {
            let thing = Thing()
            object = thing
            world.service.objects.export(thing, at: "/short", interfaces: [Thing.interface])
        }
        #expect(object != nil)
        world.service.objects.remove(path: "/short")
        #expect(object == nil)
    }

    @Test func callersThatHaveLeft_areNotServed() throws {
        let (peers, calls) = (8, 300)
        func add() throws -> Message { try world.message("Add", [.uint32(1), .properties([])]) }
        for _ in 0..<peers {
            let peer = try world.connect()
            for _ in 0..<calls { peer.send(try add()) }
            // The bus has all of it before the peer leaves.
            _ = try peer.callAndWait(world.busMessage("GetId", []))
            peer.close()
        }
        // As many of a caller that stays: it is answered last when every one of those has had as much.
        var answers = 0
        for _ in 0..<calls { world.client.call(try add()) { _ in answers += 1 } }
        try world.wait { answers == calls }
        print("\(thing.calls - calls) of \(peers * calls) calls of callers that had gone were handled")
        #expect(thing.calls - calls < peers * calls / 4)
    }

    @Test func floodOfUnknownPaths_isAnsweredAndOthersAreServedInBetween() throws {
        let other = try world.connect()
        var answers = 0
        // The number of answers before it; 0 if it was the first.
        var served: Int?
        for index in 0..<20_000 {
            world.client.call(try world.message("Add", path: "/guess/\(index)"), timeout: 60) { _ in answers += 1 }
        }
        other.call(try world.message("Twice"), timeout: 60) { _ in served = answers }
        let inTime = world.loop.iterate(timeout: 60) { answers == 20_000 && served != nil }
        try #require(inTime)
        #expect(try #require(served) < 20_000)
    }

    @Test func callerWithoutPermission_mayRead_andNeitherCallsNorSets() throws {
        let name = "org.example.Owned"
        let owner = world.client.uniqueName
        let interface = Interface<Thing>(
            name: name, introspection: "", methods: [.init("Ask", "u") { $1.reply($1.arguments) }],
            properties: [
                .init(
                    "Level", "u", get: { .uint32($0.level) },
                    set: { (thing, value) throws(Failure) in thing.level = value.uint32Value ?? 0 })
            ],
            permission: { (_, caller) throws(Failure) in
                if caller != owner { throw .failed("it belongs to another program") }
            })
        world.service.objects.export(thing, at: "/owned", interfaces: [interface])
        let stranger = try world.connect()
        func ask(
            _ member: String, _ arguments: [Value], by caller: Connection, of asked: String? = nil
        ) throws -> String {
            let message = try world.message(member, arguments, interface: asked ?? properties, path: "/owned")
            switch try world.answer(to: message, from: caller) {
            case .success(let values): return "\(values.first?.unwrapped.uint32Value ?? 0)"
            case .failure(let failure): return failure.message
            }
        }
        let (set, get): ([Value], [Value]) = (
            [.string(name), .string("Level"), .variant(.uint32(9))], [.string(name), .string("Level")]
        )
        #expect(try ask("Set", set, by: stranger) == "it belongs to another program")
        #expect(try ask("Ask", [.uint32(1)], by: stranger, of: name) == "it belongs to another program")
        // An empty name means any interface.
        #expect(try ask("Set", [.string("")] + set.dropFirst(), by: stranger) == "it belongs to another program")
        #expect(try ask("Get", get, by: stranger) == "7")
        #expect(try ask("Set", set, by: world.client) == "0")
        #expect(try ask("Ask", [.uint32(1)], by: world.client, of: name) == "1")
        #expect(try ask("Get", get, by: stranger) == "9")
    }
}
