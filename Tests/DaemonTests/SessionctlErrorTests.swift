import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// What `sessionctl` says when something fails: a sentence for people; the names for programs are in the JSON alone.
@Suite(.serialized) struct SessionctlErrorTests {
    private let stage: SessionctlStage

    init() throws { stage = try SessionctlStage() }

    /// No name of an error, no D-Bus name and no number of the platform.
    private func expectPlain(_ text: String, _ location: SourceLocation = #_sourceLocation) {
        for code in SessionError.Code.allCases {
            #expect(!text.contains(code.rawValue), "\(text)", sourceLocation: location)
            guard !code.platformCode.isEmpty else { continue }
            #expect(!text.contains("(\(code.platformCode))"), "\(text)", sourceLocation: location)
        }
        #expect(
            !text.contains("org.freedesktop.") && !text.contains("org.sessiond1"), "\(text)", sourceLocation: location)
    }

    /// Music was refused during a call.
    private func refuse() throws -> Client {
        let client = try stage.daemon.client()
        try client.beginCall("Phone")
        let music = try client.session("Music", category: "record")
        client.activate(music)
        return client
    }

    @Test(arguments: [
        ["run", "--category", "record", "--", "true"], ["run", "--mode", "voice-chat", "--", "true"],
        ["show", "nobody"],
        ["show", ""], ["route", "override", "Phone", "speaker"], ["cancel", "nothing"], ["inspect", "/nowhere.mp4"],
        ["library", "songs"],
    ]) func refusal_isASentence(command: [String]) throws {
        let client = try refuse()
        let outcome = try stage.run(command)
        #expect(outcome.code == 1, "\(outcome)")
        expectPlain(outcome.complaint)
        #expect(outcome.complaint.hasPrefix("sessionctl: ") && outcome.complaint.count > 24, "\(outcome.complaint)")
        withExtendedLifetime(client) {}
    }

    @Test func refusedSession_isExplainedInWords_andTheJSONHasTheName() throws {
        let client = try refuse()
        for command in [["explain", "Music"], ["history"]] {
            let outcome = try stage.run(command)
            #expect(outcome.code == 0 && outcome.text.contains("refused"), "\(outcome)")
            expectPlain(outcome.text)
        }
        let text = try stage.run(["explain", "Music", "--json"]).text
        #expect(text.contains("InsufficientPriority") && text.contains("(!pri)"))
        withExtendedLifetime(client) {}
    }

    @Test(arguments: [40, 60, 80] as [UInt16]) func longError_isWrappedBetweenWords(columns: UInt16) throws {
        let name = "a-session-that-does-not-exist"
        let terminal = try PseudoTerminal(
            try builtProduct(named: "sessionctl"), ["route", "override", name, "speaker"],
            environment: stage.environment,
            columns: columns)
        #expect(terminal.wait() == .code(1))
        let lines = terminal.text.replacingOccurrences(of: "\r", with: "").split(separator: "\n")
        for line in lines { #expect(line.count <= Int(columns), "\(line)") }
        let words = lines.joined(separator: " ").split(separator: " ").joined(separator: " ")
        #expect(words == "sessionctl: no session is '\(name)'; see 'sessionctl list'")
        #expect((lines.count > 1) == (words.count > Int(columns)))
    }

    @Test func errorInAPipe_isOneLine() throws {
        let name = String(repeating: "long ", count: 60) + "name"
        #expect(try stage.run(["show", name]).errors.count == 1)
    }

    @Test func serviceThatIsGone_tellsHowToStartIt() throws {
        let bus = try PrivateBus()
        let outcome = try SessionctlStage.outcome(
            of: try Child(
                try builtProduct(named: "sessionctl"), ["show", "x"], environment: SessionctlStage.environment(on: bus)),
            [])
        #expect(outcome.code == 69)
        expectPlain(outcome.complaint)
        #expect(outcome.complaint.contains("start"), "\(outcome.complaint)")
    }
}
