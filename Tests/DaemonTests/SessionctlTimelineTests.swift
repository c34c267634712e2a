import DBus
import Foundation
import TestSupport
import Testing

/// `sessionctl timeline` on the real daemon.
@Suite(.serialized) struct SessionctlTimelineTests {
    private let stage: SessionctlStage

    /// A call has come over music and has ended; the music plays again.
    init() throws {
        stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let music = try client.session("Music <b> & 音楽")
        client.activate(music)
        let phone = try client.session("Phone", category: "play-and-record", class: "call")
        client.activate(phone)
        client.deactivate(phone)
        client.activate(music)
        _ = try stage.daemon.manager("SetSilentMode", [.bool(true)])
        self.client = client
    }

    private let client: Client

    private func row(_ name: String, _ lines: [String]) throws -> String {
        try #require(lines.first { $0.hasPrefix(name) }, "\(lines)")
    }

    @Test func callOverMusic_hasARowForEach_andTheSwitchIsMarked() throws {
        let outcome = try stage.run(["timeline"])
        #expect(outcome.code == 0)
        #expect(try row("Music", outcome.output).contains("Music"))
        #expect(try row("Music", outcome.output).contains("█"))
        #expect(try row("Phone", outcome.output).contains("Call"))
        #expect(outcome.text.contains("heard") && outcome.text.contains("waiting"))
        #expect(outcome.output.last?.hasSuffix("  silent switch on") == true)
    }

    @Test func nothingInThePeriod_saysSo() throws {
        let empty = try SessionctlStage()
        let outcome = try empty.run(["timeline", "--since", "90s"])
        #expect(outcome.code == 0)
        #expect(outcome.text.hasPrefix("Nobody was heard from "))
    }

    @Test func picture_isWrittenWithTheNamesEscaped() throws {
        let file = stage.file("timeline.svg")
        let outcome = try stage.run(["timeline", "--svg", file])
        #expect(outcome.code == 0 && outcome.text == "Wrote \(file).")
        let svg = try String(contentsOfFile: file, encoding: .utf8)
        #expect(svg.hasPrefix("<svg ") && svg.hasSuffix("</svg>\n"))
        #expect(svg.contains("Music &lt;b&gt; &amp; 音楽: interrupted by Phone, ") && !svg.contains("<b>"))
    }

    @Test func page_tellsWhatHappened_andReplacesAnOlderOne() throws {
        let file = stage.file("timeline.html")
        try String(repeating: "x", count: 1_000_000).write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try stage.run(["timeline", "--since", "1h", "--html", file]).code == 0)
        let html = try String(contentsOfFile: file, encoding: .utf8)
        #expect(html.hasPrefix("<!doctype html>") && html.hasSuffix("</html>\n"))
        #expect(html.contains("What happened") && html.contains("interrupted by Phone"))
        #expect(html.contains("silent switch on"))
    }

    @Test func watch_showsANewSession_andEndsWithControlC() throws {
        let terminal = try PseudoTerminal(
            try builtProduct(named: "sessionctl"), ["timeline", "--watch"], environment: stage.environment, columns: 80)
        #expect(eventually { terminal.text.contains("Phone") })
        client.activate(try client.session("Alarm"))
        #expect(eventually { terminal.text.contains("Alarm") })
        terminal.signal(SIGINT)
        #expect(terminal.wait() == .code(130))
    }

    @Test(arguments: [
        ["--since", "10x"], ["--since", "0"], ["--since", "-1"], ["--since", "99999999999999999999d"],
        ["--svg", "a", "--html", "b"], ["--watch", "--svg", "a"],
    ]) func wrongUsage_exits64(arguments: [String]) throws {
        let outcome = try stage.run(["timeline"] + arguments)
        #expect(outcome.code == 64 && outcome.output.isEmpty)
    }

    @Test func fileThatCannotBeWritten_isNamed() throws {
        let outcome = try stage.run(["timeline", "--svg", "/nonexistent/a.svg"])
        #expect(outcome.code == 1)
        #expect(outcome.complaint.contains("/nonexistent/a.svg cannot be written: No such file or directory"))
    }
}
