import PluginAPI
import Testing

@testable import Scenario

/// Values as words of a scenario, and back.
@Suite struct NodeTests {
    struct Value: Codable, Hashable {
        enum Kind: Codable, Hashable {
            case plain
            case named(String, number: Int)
            case pair(UInt32, Double?)
        }

        struct Key: Codable, Hashable {
            var id: UInt64
        }

        var text = "a \"b\" / % = \u{0}"
        var isOn = true
        var kinds: [Kind] = [.plain, .named("", number: -3), .pair(7, nil), .pair(8, 0.1)]
        var missing: String?
        var names: [String: Int] = ["": 1, "a/b": 2, "-c": 3, "media.name": 4, "ü": 5]
        var keys: [Key: Set<String>] = [Key(id: 1): [], Key(id: 20): ["x", "y"]]
        var nothing: [Int] = []
    }

    private static func tokens(_ words: [String]) throws -> [Token] {
        try Token.all(of: words.joined(separator: " "))
    }

    @Test func value_writtenAndRead_isTheSame() throws {
        let value = Value()
        var node = Node.nothing
        try node.apply(Self.tokens(Node.nothing.words(to: Node(value))))
        #expect(node == Node(value))
        #expect(try node.value(Value.self) == value)
    }

    @Test func change_isWrittenAlone() throws {
        var value = Value()
        let before = Node(value)
        value.isOn = false
        value.kinds.removeLast()
        value.missing = "here"
        value.keys[Value.Key(id: 1)] = nil
        let words = before.words(to: Node(value))
        #expect(words.contains("isOn=off") && words.contains("missing=here") && words.contains("-kinds/3"))
        #expect(!words.contains { $0.hasPrefix("text") || $0.hasPrefix("names") })
        var node = before
        try node.apply(Self.tokens(words))
        #expect(try node.value(Value.self) == value)
        #expect(Node(value).words(to: Node(value)) == [])
    }

    @Test func wrongWord_isNamedWithItsPath() throws {
        func message(_ words: String) throws -> String {
            var node = Node(Value())
            do {
                try node.apply(Self.tokens([words]))
                _ = try node.value(Value.self)
            } catch let error as NodeError {
                return error.message
            } catch let error as LineError {
                return error.message
            }
            return "none"
        }
        #expect(try message("kinds/0/plain=x").hasPrefix("kinds/0/plain"))
        #expect(try message("-kinds/1/named/number") == "kinds/1/named/number is missing")
        #expect(try message("isOn=perhaps").hasPrefix("isOn: "))
        #expect(try message("keys/0/id=99999999999999999999").hasPrefix("keys/0/id"))
        // Too large to be added to another.
        #expect(try message("keys/0/id=18446744073709551615").hasPrefix("keys/0/id"))
        #expect(try message("a%/b=1").contains("is not a path"))
        #expect(try message("isOn=on") == "none")
    }

    @Test func privateTexts_haveTheSameNameEverywhere() {
        let titles = Node.parts([
            "properties": .parts(["media.name": .text("My diary"), "application.id": .text("org.example")]),
            "applicationName": .text("My diary"), "role": .text("on"),
            "program": .parts(["name": .text("My diary"), "names": .parts(["0": .text("/home/jo/bin/tool")])]),
        ])
        let track = Node.parts([
            "track": .parts(["title": .text("on"), "url": .text("file:///home/jo/song"), "id": .text("")])
        ])
        var hidden = Pseudonyms()
        hidden.learn(titles)
        hidden.learn(track)
        let (first, second) = (hidden.hide(titles), hidden.hide(track))
        let name = first["properties"]?["media.name"]
        #expect(name == .text("text1"))
        #expect(first["applicationName"] == name && first["program"]?["name"] == name)
        #expect(first["properties"]?["application.id"] == .text("org.example"))
        // A word that is equal to a title by chance.
        #expect(first["role"] == .text("on") && second["track"]?["title"] == .text("text2"))
        #expect(second["track"]?["url"] == .text("text3") && second["track"]?["id"] == .text(""))
        #expect(first["program"]?["names"]?["0"] == .text("/folder1/folder2/folder3/tool"))
        #expect(hidden.hide(.parts(["never": .text("/home/jo/bin/*")]))["never"] == .text("/folder1/folder2/folder3/*"))
        #expect(hidden.hide(.parts(["never": .text("/usr/bin/tool")]))["never"] == .text("/usr/bin/tool"))
        #expect(hidden.hideName("My diary (call)") == "text1 (call)")
        #expect(hidden.hideNames(in: "a call of 'My diary' is active") == "a call of 'text1' is active")
    }
}
