import PluginAPI
import Testing

/// The words for where films are shown.
@Suite struct MovieOutputTests {
    private static let table: [(word: String, output: MovieOutput)] = [
        ("auto", .automatic), ("x11", .x11), ("wayland", .wayland), ("none", .none),
        ("x11:0x3a00007", .window(0x3A0_0007)), ("x11:7", .window(7)), ("x11:0xffffffff", .window(.max)),
        ("pipewire", .pipewire(node: "sessiond-movie")), ("pipewire:sessiond-movie", .pipewire(node: "sessiond-movie")),
        ("pipewire:Film 1", .pipewire(node: "Film 1")), ("pipewire:a:b", .pipewire(node: "a:b")),
        ("pipewire:Kinö", .pipewire(node: "Kinö")),
    ]

    @Test(arguments: table) func word_isAnOutput_andItsWordAgain(word: String, output: MovieOutput) throws {
        #expect(try MovieOutput(word) == output)
        #expect(try MovieOutput(output.word) == output)
    }

    @Test(arguments: [
        "", "x12", "X11", "x11:", "x11:0", "x11:0x", "x11:0xzz", "x11:4294967296", "wayland:1", "pipewire:",
        "pipewire:a\nb", "pipewire:\u{7f}", "pipewire:\u{85}", "pipewire:" + String(repeating: "n", count: 65),
        "kms", "none:",
    ])
    func otherWord_isRefusedWithTheReason(word: String) {
        do {
            _ = try MovieOutput(word)
            Issue.record("'\(word)' was accepted")
        } catch {
            #expect(error.code == .badParameter && !error.message.isEmpty)
        }
    }
}
