import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

/// The app of Examples/iOS/VoiceNotes, ported: it runs, and the page about it tells the truth.
@Suite(.serialized) struct PortedNotesTests {
    private func app(_ stage: KitStage) throws -> Child {
        let environment = stage.environment.merging(stage.daemon.bus.environment) { $1 }
        return try Child(try builtProduct(named: "example-ported-notes"), environment: environment)
    }

    @Test func portedApp_recordsPlaysAndIsControlled() throws {
        let stage = try KitStage()
        let app = try app(stage)
        let note = stage.media.path + "/note.wav"
        app.send("record \(note) 1.5")
        #expect(app.line(timeout: 60) { $0.hasPrefix("recording with ") } != nil, "\(app.errors)")
        #expect(app.line { $0 == "recorded" } != nil, "\(app.text) \(app.errors)")
        #expect(try eventually { try stage.sessions() == ["Ported notes inactive"] })
        app.send("play \(note)")
        #expect(app.line(timeout: 30) { $0 == "playing 2 s" || $0 == "playing 1 s" } != nil, "\(app.text)")
        #expect(app.line { $0 == "finished" } != nil, "\(app.text)")
        #expect(try eventually { try stage.sessions() == ["Ported notes inactive"] })
        app.send("play \(try stage.sine(440, seconds: 60).dropFirst("file://".count))")
        #expect(app.line { $0 == "playing 60 s" } != nil, "\(app.text)")
        #expect(stage.ear.waitUntil(440, above: -20))
        let (name, path) = ("org.mpris.MediaPlayer2.Ported_notes.instance\(app.processID)", "/org/mpris/MediaPlayer2")
        let interface = "org.mpris.MediaPlayer2.Player"
        for (member, isHeard) in [("Pause", false), ("Play", true)] {
            _ = try stage.daemon.observer.callAndWait(name, path, interface, member, [], timeout: 10)
            #expect(isHeard ? stage.ear.waitUntil(440, above: -25) : stage.ear.waitUntil(440, below: -80))
        }
        let client = try stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(app.line { $0 == "interrupted" } != nil, "\(app.text)")
        #expect(stage.ear.waitUntil(440, below: -80))
        client.deactivate(call, notify: true)
        #expect(app.line { $0 == "playing on" } != nil, "\(app.text)")
        #expect(stage.ear.waitUntil(440, above: -25))
        _ = try stage.daemon.observer.callAndWait(
            name, path, interface, "Seek", [.int64(59_500_000)], timeout: 10)
        app.send("quit")
        #expect(app.wait() == .code(0), "\(app.errors)")
    }

    /// The picker of the library, on the terminal of the app; what is picked is heard.
    @Test func portedApp_playsWhatIsPicked() async throws {
        let stage = try await MusicStage()
        let environment = try stage.environmentOfATerminal()
        let ear = try Ear(stage.pulse, sink: "speaker")
        let terminal = try PseudoTerminal(
            try builtProduct(named: "example-ported-notes"), ["music"], environment: environment)
        #expect(eventually(timeout: 30) { terminal.text.contains("Music behind the notes") }, "\(terminal.text)")
        terminal.type("thunder\r")
        #expect(ear.waitUntil(440, above: -30), "\(terminal.text)")
        terminal.signal(SIGTERM)
        #expect(terminal.wait() != nil)
    }

    private static let folder = repository.path + "/Sources/Kits/SessionKit/SessionKit.docc/"
    private static let original = repository.path + "/Examples/iOS/VoiceNotes/Sound.swift"

    @Test func page_tellsHowManyLinesChanged() throws {
        let port = repository.path + "/Examples/Ported/Sound.swift"
        let differences = try Child("diff", [Self.original, port])
        #expect(differences.wait() == .code(1))
        let changed = differences.text.split(separator: "\n").count { $0.hasPrefix("< ") || $0 == "<" }
        let all = try String(contentsOfFile: Self.original, encoding: .utf8).count { $0 == "\n" }
        let page = try String(contentsOfFile: Self.folder + "FromAVFoundation.md", encoding: .utf8)
        #expect(page.contains("\(changed) of its \(all) lines"), "\(changed) of its \(all) lines")
    }

    /// Each name of Apple's in the sample is in a table, with its counterpart or "none".
    @Test func everyNameOfTheSample_isInATable() throws {
        let source = try String(contentsOfFile: Self.original, encoding: .utf8)
        let words = Set(source.matches(of: /[A-Za-z]+/).map { String($0.output) })
        let tables = try ["FromAVAudioSession", "FromMediaPlayer", "FromAVFoundation"].map {
            try String(contentsOfFile: Self.folder + $0 + ".md", encoding: .utf8)
        }.joined(separator: "\n")
        for word in words.sorted() where word.wholeMatch(of: /(AV|MP)[A-Z].+/) != nil {
            #expect(tables.contains(word), "\(word)")
        }
        let rows = tables.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let named = Set(rows.flatMap { $0.split(separator: "|")[0].matches(of: /`\.?([A-Za-z]+)/).map { $0.output.1 } })
        #expect(words.intersection(named.map(String.init)).count >= 25)
    }
}
