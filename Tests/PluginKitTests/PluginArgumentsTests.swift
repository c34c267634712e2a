import PluginAPI
import Testing

@testable import PluginKit

/// The command line of plugin programs, for all kinds and for a kind without a session.
@Suite struct PluginArgumentsTests {
    /// A kind without a session.
    private static let library = PluginKind(
        word: "library", id: "org.example.library", program: "example-library", interfaces: ["org.example.Library"],
        objectPath: "/org/example/library", busName: "org.example.Library", sessions: .none, item: "FOLDER",
        action: "Lists FOLDER")

    private func usage(_ kind: PluginKind) -> String {
        if case .print(let text) = PluginArguments.parse(["--help"], kind) { text } else { "" }
    }

    private func complaint(_ words: [String], _ kind: PluginKind) -> String {
        if case .wrong(let text) = PluginArguments.parse(words, kind) { text } else { "" }
    }

    @Test func executableOfSeveralPlugins_isChosenByNameOrFirstArgument() {
        func chosen(_ words: String...) -> String {
            guard let (index, rest) = PluginProgram.choose(from: PluginKind.all, words) else { return "none" }
            return ([PluginKind.all[index].word] + rest).joined(separator: " ")
        }
        #expect(chosen("/usr/bin/sessiond-player", "a.wav") == "player a.wav")
        #expect(chosen("sessiond-recorder", "player") == "recorder player")
        #expect(chosen("sessiond-plugin", "sound-effects", "--id", "x") == "sound-effects --id x")
        #expect(chosen("/usr/bin/sessiond-plugin") == "none")
        #expect(chosen("sessiond-plugin", "film") == "none")
        #expect(chosen() == "none")
    }

    @Test func usage_describesTheKind() {
        for kind in PluginKind.all {
            let text = usage(kind)
            let item = kind.item.isEmpty ? ("", ": serves") : (" [\(kind.item)]", "; without it,")
            #expect(text.hasPrefix("Usage: \(kind.program) [OPTION]...\(item.0)\n\n\(kind.action)\(item.1)"))
            #expect(text.contains("(default: \(kind.category?.rawValue ?? "none"))") == (kind.category != nil))
            #expect(text.contains("--input") == kind.records && text.contains("--duration") == kind.records)
            #expect(text.hasSuffix("  --help             print this help\n"))
        }
    }

    @Test func kindWithoutASession_hasNoSessionOptions() {
        let text = usage(Self.library)
        #expect(text.contains("--name NAME        the name of the plugin"))
        for option in ["--category", "--mode", "--option", "--class"] {
            #expect(!text.contains(option))
            #expect(complaint([option, "playback"], Self.library).hasPrefix("unknown argument '\(option)'"))
        }
        guard case .run(let arguments) = PluginArguments.parse(["--name", "Books", "--id", "x", "a"], Self.library)
        else {
            Issue.record("the arguments were refused")
            return
        }
        #expect(arguments.session.name == "Books" && arguments.pluginID == "x" && arguments.item == "a")
    }

    @Test func inputAndDuration_areOnlyForRecorders() {
        #expect(complaint(["--duration", "1"], .player).hasPrefix("unknown argument"))
        guard case .run(let arguments) = PluginArguments.parse(["--duration=2", "--input", "mic"], .recorder) else {
            Issue.record("the arguments were refused")
            return
        }
        #expect(arguments.duration == 2 && arguments.input == "mic" && arguments.session.category == .record)
    }
}
