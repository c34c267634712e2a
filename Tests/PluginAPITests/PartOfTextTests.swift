import PluginAPI
import Testing

@Suite struct PartOfTextTests {
    @Test(arguments: [
        ("", "", true), ("a", "", true), ("", "a", false), ("abc", "c", true), ("abc", "abcd", false),
        ("aab", "ab", true), ("Speaker → Headphones", " → ", true), ("Speaker", " → ", false),
    ])
    func text_includesItsParts(text: String, part: String, expected: Bool) {
        #expect(text.includes(part) == expected)
        #expect(text[...].includes(part) == expected)
    }
}
