import EventLoop
import TestSupport
import Testing

@testable import DBus

@Suite struct ValueTests {
    static let samples: [Value] = [
        .byte(0), .byte(255), .bool(true), .bool(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max),
        .int64(.min), .uint64(.max), .double(-0.0), .double(.infinity), .double(-.infinity), .double(.pi),
        .string(""), .string("a\u{301} — ‮right to left‬ 🎵 \u{FFFF}\u{1}"), .objectPath("/"),
        .objectPath("/org/example/a_1"), .signature(""), .signature("a{sv}(ii)"),
        .array(of: "s", []), .array(of: "a{sv}", []), .array(of: "(si)", []), .strings(["a", "b"]),
        .objectPaths(["/a", "/b/c"]), .array(of: "y", [.byte(1), .byte(2)]), .array(of: "d", [.double(1)]),
        .array(of: "au", [.array(of: "u", [.uint32(1)]), .array(of: "u", [])]),
        .array(of: "(si)", [.structure([.string("x"), .int32(-1)])]),
        .array(of: "v", [.variant(.byte(1)), .variant(.string("x"))]),
        .dictionary(key: "s", value: "v", []), .dictionary(key: "s", value: "a{sv}", []),
        .properties([("z", .uint32(1)), ("a", .variant(.bool(true))), ("m", .strings([]))]),
        .dictionary(
            key: "o", value: "a{sa{sv}}",
            [
                DictionaryEntry(
                    key: .objectPath("/x"),
                    value: .dictionary(
                        key: "s", value: "a{sv}",
                        [DictionaryEntry(key: .string("i"), value: .properties([("k", .int16(3))]))]))
            ]),
        .dictionary(
            key: "t", value: "(bd)",
            [
                DictionaryEntry(key: .uint64(1), value: .structure([.bool(true), .double(2)]))
            ]),
        .structure([.byte(1), .structure([.string("in")]), .variant(.structure([.int64(5)]))]),
        .variant(.variant(.variant(.string("deep")))),
    ]

    @Test(arguments: samples) func value_appended_readsBackTheSame(value: Value) throws {
        let message = try Message.signal(path: "/", interface: "a.b", member: "C")
        message.append([value, .variant(value)])
        #expect(message.failure == nil)
        #expect(message.signature == value.signature + "v")
        #expect(try message.arguments() == [value, .variant(value)])
        #expect(value.hasSignature(value.signature))
        #expect(!value.hasSignature(value.signature + "s") && !value.hasSignature(""))
    }

    @Test func encodedProperties_areSentLikeOthers() throws {
        let (one, two): ([(String, Value)], [(String, Value)]) = (
            [("path", .objectPath("/a")), ("n", .byte(1))],
            [("t", .uint64(7)), ("name", .string("x")), ("list", .array(of: "a{sv}", [.properties([])]))]
        )
        let (first, second) = (try EncodedProperties(one), try EncodedProperties(two))
        let empty = try EncodedProperties([])
        for (encoded, plain) in [(first, one), (second, two), (empty, []), (first.followed(by: second), one + two)] {
            // At every alignment.
            for before: [Value] in [[], [.byte(1)], [.uint32(1)], [.string("ab"), .byte(2)]] {
                let message = try Message.signal(path: "/", interface: "a.b", member: "C")
                message.append(before + [.array(of: "a{sv}", [.encoded(encoded), .encoded(encoded)])])
                #expect(message.failure == nil)
                #expect(
                    try message.arguments() == before + [.array(of: "a{sv}", [.properties(plain), .properties(plain)])])
                let variant = try Message.signal(path: "/", interface: "a.b", member: "C")
                variant.append([.variant(.encoded(encoded))])
                #expect(try variant.arguments() == [.variant(.properties(plain))])
            }
        }
        #expect(Value.encoded(first).hasSignature("a{sv}") && Value.encoded(first).signature == "a{sv}")
    }

    @Test func allValues_throughTheBus_areUnchanged() throws {
        let world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        for value in Self.samples { #expect(try world.call("Echo", [.variant(value)]) == [.variant(value)]) }
        let echo = try world.call("Echo", [.variant(.double(.nan))])
        #expect(echo.first?.unwrapped.doubleValue?.isNaN == true)
    }

    @Test(arguments: [
        Value.objectPath(""), .objectPath("x"), .objectPath("/a/"), .objectPath("/a\0b"), .objectPath("/ä"),
        .signature("("), .signature("a"), .signature("s\0"), .signature(String(repeating: "s", count: 256)),
        .array(of: "", []), .array(of: "ss", []), .array(of: "{vs}", []), .array(of: "s", [.byte(1)]),
        .array(of: "au", [.array(of: "s", [])]), .array(of: "s\0", []), .array(of: "(s)", [.structure([.byte(1)])]),
        .dictionary(key: "v", value: "s", []), .dictionary(key: "s", value: "", []),
        .dictionary(key: "s", value: "v", [DictionaryEntry(key: .byte(1), value: .variant(.byte(1)))]),
        .dictionary(key: "s", value: "v", [DictionaryEntry(key: .string(""), value: .byte(1))]),
        .dictionary(key: "ss", value: "v", []), .structure([]), .variant(.structure([])),
        .variant(.array(of: "(", [])), .structure(Array(repeating: .byte(1), count: 300)),
        .array(of: String(repeating: "a", count: 40) + "s", []),
    ])
    func invalidValue_appended_isRefusedAndNothingIsSent(value: Value) throws {
        for wrapped in [value, .variant(value), .structure([value, .byte(1)])] {
            let message = try Message.signal(path: "/", interface: "a.b", member: "C")
            message.append([.byte(1), wrapped])
            #expect(message.failure != nil)
            #expect(throws: Failure.self) { try message.arguments() }
            message.append([.byte(1)])
        }
    }

    @Test func stringWithNul_appended_endsThere() throws {
        let message = try Message.signal(path: "/", interface: "a.b", member: "C")
        message.append([.string("ab\0cd")])
        #expect(try message.arguments() == [.string("ab")])
    }

    @Test func malformedNames_makingMessages_throw() {
        #expect(throws: Failure.self) { try Message.signal(path: "x", interface: "a.b", member: "C") }
        #expect(throws: Failure.self) { try Message.signal(path: "/", interface: "ab", member: "C") }
        #expect(throws: Failure.self) { try Message.signal(path: "/", interface: "a.b", member: "C.D") }
        #expect(throws: Failure.self) { try Message.signal(path: "/", interface: "a.b\0", member: "C") }
        #expect(throws: Failure.self) {
            try Message.signal(path: "/", interface: "org.freedesktop.DBus.Local", member: "Disconnected")
        }
        #expect(throws: Failure.self) {
            try Message.methodCall(destination: "no name", path: "/", interface: "a.b", member: "C")
        }
    }

    @Test func deepestNesting_throughTheBus_passes_andOneMoreIsRefused() throws {
        let world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        var deepest = Value.string("bottom")
        for _ in 0..<64 { deepest = .variant(deepest) }
        #expect(try world.call("Echo", [deepest]) == [deepest])
        let message = try world.message("Echo", [.variant(deepest)])
        #expect(message.failure?.name == Failure.Name.limitsExceeded)
        #expect(try world.answer(to: message) == .failure(message.failure!))
        // Dictionaries count twice: the array and the entry.
        var nested = Value.properties([("k", .byte(1))])
        for _ in 0..<20 { nested = .properties([("k", nested)]) }
        #expect(try world.call("Echo", [.variant(nested)]) == [.variant(nested)])
        var tooDeep = nested
        for _ in 0..<3 { tooDeep = .properties([("k", tooDeep)]) }
        #expect(try world.message("Echo", [.variant(tooDeep)]).failure?.name == Failure.Name.limitsExceeded)
        #expect(world.client.isOpen && world.service.isOpen)
    }

    @Test func bigValues_throughTheBus_areUnchanged() throws {
        let world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        let dictionary = Value.properties((0..<10_000).map { ("key \($0)", .uint32(UInt32($0))) })
        #expect(try world.call("Echo", [.variant(dictionary)]) == [.variant(dictionary)])
        #expect(dictionary.asProperties?.count == 10_000)
        let text = Value.string(String(repeating: "ü", count: MessageReader.textLimit / 2))
        #expect(try world.call("Echo", [.variant(text)]) == [.variant(text)])
        let texts = Value.array(
            of: "s", Array(repeating: text, count: MessageReader.textsLimit / MessageReader.textLimit))
        #expect(try world.call("Echo", [.variant(texts)]) == [.variant(texts)])
    }

    @Test func longTextsInACall_areRefusedAndTheConnectionStays() throws {
        let world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        let text = Value.string(String(repeating: "x", count: MessageReader.textLimit))
        let longer = Value.string(String(repeating: "x", count: MessageReader.textLimit + 1))
        let many = Value.array(of: "s", Array(repeating: text, count: 65))
        for value in [longer, many] {
            let answer = try world.answer(to: world.message("Echo", [.variant(value)]))
            #expect(throws: Failure.limitsExceeded("A text of a call has at most 64 KiB, and all of them 4 MiB")) {
                try answer.get()
            }
        }
        #expect(try world.call("Echo", [.variant(text)]) == [.variant(text)])
    }

    @Test func hugeValues_areRefusedAndTheConnectionStays() throws {
        let world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        let huge = String(repeating: "x", count: 128 << 20)
        #expect(try world.message("Echo", [.variant(.string(huge))]).failure?.name == Failure.Name.limitsExceeded)
        let wide = Value.properties([("k", .string(String(huge.prefix(64 << 20))))])
        #expect(try world.message("Echo", [.variant(wide)]).failure?.name == Failure.Name.limitsExceeded)
        let many = Value.array(of: "y", Array(repeating: .byte(0), count: 1_100_000))
        #expect(try world.failure("Echo", [.variant(many)])?.name == Failure.Name.limitsExceeded)
        #expect(try world.call("Echo", [.variant(.byte(1))]) == [.variant(.byte(1))])
    }

    @Test func accessors_ofOtherTypes_areNil() {
        let value = Value.string("x")
        #expect(value.stringValue == "x" && value.boolValue == nil && value.uint32Value == nil)
        #expect(value.uint64Value == nil && value.int32Value == nil && value.doubleValue == nil)
        #expect(value.objectPathValue == nil && value.arrayValue == nil && value.asProperties == nil)
        #expect(Value.variant(.variant(value)).unwrapped == value)
        let twice = Value.dictionary(
            key: "s", value: "v",
            [
                DictionaryEntry(key: .string("k"), value: .variant(.byte(1))),
                DictionaryEntry(key: .string("k"), value: .variant(.byte(2))),
            ])
        #expect(twice.asProperties == ["k": .byte(2)])
    }
}
