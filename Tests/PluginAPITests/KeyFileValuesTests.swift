import PluginAPI
import Testing

@Suite struct KeyFileValuesTests {
    private func entry(_ value: String) throws -> KeyFile.Entry {
        try #require(try KeyFile("[s]\nkey = \(value)", file: "f")["s"]?["key"])
    }

    private func expectRefusal(_ hint: String, _ body: () throws -> Void) { expectRefusal(7, hint, body) }

    private func expectRefusal(_ column: Int, _ hint: String, _ body: () throws -> Void) {
        let error = #expect(throws: KeyFileError.self) { try body() }
        #expect(error?.position == KeyFile.Position(line: 2, column: column))
        #expect(error?.message.contains(hint) == true, "\(String(describing: error))")
    }

    @Test(arguments: [("5", 5), ("5.0", 5), ("-0.5", -0.5), ("+3.25", 3.25), ("007", 7), ("10", 10), ("-10", -10)])
    func decimalNumber_isRead(text: String, value: Double) throws {
        #expect(try entry(text).real(in: -10...10, unit: "s") == value)
    }

    @Test(arguments: [
        "", "nan", "inf", "-infinity", "0x10", "1e3", "1.", ".5", "1,5", "5 s", "--1", "1.2.3", "−1", "٣",
    ])
    func otherSpelling_isNotANumber(text: String) throws {
        let entry = try entry(text)
        expectRefusal(entry.valuePosition.column, "from -10.0 to 10.0, in s") {
            _ = try entry.real(in: -10...10, unit: "s")
        }
    }

    @Test(arguments: ["10.001", "-11", "99999999999999999999999999"])
    func numberOutOfRange_isRefused(text: String) throws {
        let entry = try entry(text)
        expectRefusal("cannot be") { _ = try entry.real(in: -10...10, unit: "s") }
        expectRefusal("write a whole number from -10 to 10") { _ = try entry.integer(in: -10...10) }
    }

    @Test func wholeNumber_isReadInItsRange() throws {
        #expect(try entry("-10").integer(in: -10...10) == -10)
        #expect(try entry("+7").integer(in: -10...10) == 7)
        let fraction = try entry("1.0")
        expectRefusal("whole number") { _ = try fraction.integer(in: 0...2) }
    }

    @Test func switches_areOnOrOff() throws {
        #expect(try entry("on").isOn())
        #expect(try !entry("off").isOn())
        for text in ["true", "false", "yes", "1", "ON", "on off"] {
            let entry = try entry(text)
            expectRefusal("key = on") { _ = try entry.isOn() }
        }
    }

    @Test func word_isOneOfTheEnumeration() throws {
        #expect(try entry("solo-ambient").word(Category.self) == .soloAmbient)
        let unknown = try entry("loud")
        expectRefusal("ambient, solo-ambient, playback") { _ = try unknown.word(Category.self) }
    }

    @Test func text_resolvesEscapes() throws {
        #expect(try entry(#"\sa\tb\nc\\d;e\s"#).text() == " a\tb\nc\\d;e ")
        #expect(try entry("").text() == "")
        let unknown = try entry(#"ab\x"#)
        expectRefusal(9, "unknown escape") { _ = try unknown.text() }
        let open = try entry(#"ab\"#)
        expectRefusal(9, "at the end") { _ = try open.text() }
        let semicolon = try entry(#"a\;"#)
        expectRefusal(8, "unknown escape") { _ = try semicolon.text() }
    }

    @Test(arguments: [
        ("", []), ("a", ["a"]), ("a;", ["a"]), ("a;b", ["a", "b"]), ("a ; b c ;", ["a", "b c"]),
        (#"a\;b;c\\;d\s;"#, ["a;b", "c\\", "d "]),
    ])
    func list_isSplitAtSemicolons(text: String, items: [String]) throws {
        #expect(try entry(text).list() == items)
    }

    @Test(arguments: [(";", 7), ("a;;b", 9), ("a; ;b", 9), (";a", 7)])
    func emptyItem_isRefused(text: String, column: Int) throws {
        let entry = try entry(text)
        expectRefusal(column, "empty item") { _ = try entry.list() }
    }
}
