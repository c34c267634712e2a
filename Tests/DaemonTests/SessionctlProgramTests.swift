import DBus
import Foundation
import TestSupport
import Testing

/// The output of `sessionctl run`, `play`, `record`, `effect` and the commands that change something, without a
/// terminal.
@Suite(.serialized) struct SessionctlProgramTests {
    let pulse: any PrivateServer
    let stage: SessionctlStage

    init() throws {
        pulse = try ServerKind.standard.server()
        stage = try SessionctlStage(on: pulse)
    }

    /// The complete output of a command that has ended.
    private func section(_ words: [String], _ child: Child, timeout: Double = 60) throws -> String {
        let outcome = try SessionctlStage.outcome(of: child, words, timeout)
        let lines = outcome.output + outcome.errors.map { "! " + $0 } + ["exit \(outcome.code)"]
        let text = (["$ sessionctl " + words.joined(separator: " ")] + lines).joined(separator: "\n")
        return GoldenFile.masked(text, of: stage.daemon)
    }

    private func ended(_ words: [String]) throws -> String { try section(words, try stage.start(words)) }

    @Test func everyChangingCommand_matchesTheGoldenFile() throws {
        let client = try stage.daemon.client()
        let phone = try client.session("Phone", category: "play-and-record", class: "call")
        var sections: [String] = []

        sections.append(try ended(["silent", "on"]))
        sections.append(try ended(["silent", "off"]))
        sections.append(try ended(["route", "override", "Phone", "speaker"]))
        sections.append(try ended(["route", "input", "Phone", "desk"]))
        sections.append(try ended(["show", "nobody"]))
        sections.append(try ended(["run", "--", "echo", "heard"]))
        sections.append(try ended(["run", "--mode", "voice-chat", "--", "echo", "BAD"]))

        let run = ["run", "--name", "Music", "--", "sleep", "60"]
        let (music, process) = try stage.guarded("Music", [], ["sleep", "60"])
        client.activate(phone)
        #expect(music.line { $0.contains("interrupted by Phone") } != nil)
        client.deactivate(phone, notify: true)
        #expect(music.line { $0.hasSuffix("continues") } != nil)
        let other = try client.session("Other")
        client.activate(other)
        #expect(music.line { $0.contains("interrupted by Other") } != nil)
        // The command stops only when it gets a processor.
        #expect(eventually { SessionctlStage.isStopped(process) })
        client.deactivate(other)
        #expect(music.line { $0.contains("kill -CONT") } != nil)
        #expect(SessionctlStage.isStopped(process))
        music.signal(SIGTERM)
        sections.append(try section(run, music))

        sections.append(
            try ended(["play", try stage.tone("one.wav", seconds: 1.2), try stage.tone("two.wav", seconds: 0.2)]))
        let play = ["play", "--name", "Tune", try stage.tone("long.wav", seconds: 60)]
        let player = try stage.start(play)
        #expect(player.line { $0.hasPrefix("playing ") } != nil)
        client.activate(phone)
        #expect(player.line { $0 == "interrupted by Phone" } != nil)
        client.deactivate(phone, notify: true)
        #expect(player.line { $0 == "resumed" } != nil)
        player.signal(SIGINT)
        sections.append(try section(play, player))

        sections.append(try ended(["record", "--duration", "0.5", stage.file("take.wav")]))
        let record = ["record", "--name", "Memo", stage.file("memo.wav")]
        let recorder = try stage.start(record)
        #expect(recorder.line { $0.hasPrefix("recording ") } != nil)
        // More than the header of the file. Otherwise the command would report that the input sent no data.
        #expect(eventually { (FileManager.default.contents(atPath: stage.file("memo.wav"))?.count ?? 0) > 1_000 })
        client.activate(phone)
        #expect(recorder.line { $0 == "interrupted by Phone" } != nil)
        client.deactivate(phone, notify: true)
        #expect(recorder.line { $0 == "resumed" } != nil)
        recorder.signal(SIGINT)
        sections.append(try section(record, recorder))

        sections.append(try ended(["effect", try stage.tone("click.wav", seconds: 0.2)]))
        try GoldenFile(name: "programs.txt").expect(sections)
    }

    @Test func forcedColours_addNoneToPipedOutput() throws {
        let forced = ["CLICOLOR_FORCE": "1"]
        let run = try stage.run(["run", "--", "echo", "heard"], more: forced)
        #expect(run.output == ["heard"] && run.errors.isEmpty)
        let play = try stage.run(["play", stage.tone("one.wav", seconds: 0.2)], more: forced, timeout: 60)
        #expect(play.code == 0 && !play.text.contains("\u{1B}"), "\(play)")
    }
}
