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

    /// What sessionctl itself finds wrong in the arguments is wrong usage, and the message names the option.
    @Test(arguments: [
        (["watch", "film.mp4", "--output", "x12"], "--output"), (["watch", "film.mp4", "--output", "x11:0"], "x11:0x"),
        (["live", "watch", "rtmp://host/live/a", "--output", "no"], "--output"),
        (["watch", ""], "empty"), (["play", "song.ogg", ""], "empty"),
        (["thumbnail", "film.mp4", "--at", "1,2", "-o", "one.jpg"], "%d"),
        (["thumbnail", "film.mp4", "--at", ",", "-o", "one.jpg"], "--at"),
        (["thumbnail", "film.mp4", "--at", "soon"], "--at"),
        (["thumbnail", "film.mp4", "--every", "1", "-o", "%x"], "%d"),
        (["record", "take.wav", "--rate", "5"], "1000 to 384000 Hz"),
        (["record", "take.wav", "--rate", "nan"], "--rate"),
        (["record", "take.wav", "--channels", "9"], "--channels"),
        (["record", "take.wav", "--bit-depth", "12"], "--bit-depth"),
        (["upload", "film.mp4", "notaurl"], "https://"), (["upload", "film.mp4", "http://"], "https://"),
        (["upload", "film.mp4", "http://host/", "--field", "x"], "NAME=VALUE"),
        (["upload", "film.mp4", "http://host/", "--header", "x"], "Name: value"),
        (["export", "film.mp4", "film.avi"], "--type"),
    ]) func wrongArgument_isWrongUsage(command: [String], text: String) throws {
        let outcome = try stage.run(command)
        #expect(outcome.code == 64 && outcome.complaint.contains(text), "\(outcome)")
        expectPlain(outcome.complaint)
    }

    /// Every command and the doctor give one advice, and it helps.
    @Test func stoppedService_isContinuedByTheCommandThatIsTold() throws {
        let process = stage.daemon.daemon.processID
        stage.daemon.daemon.suspend()
        defer { stage.daemon.daemon.resume() }
        let outcome = try stage.run(["list"], timeout: 30)
        #expect(outcome.code == 69 && outcome.complaint.contains("'kill -CONT \(process)'"), "\(outcome)")
        expectPlain(outcome.complaint)
        let doctor = try stage.run(["doctor"], timeout: 60)
        #expect(doctor.code == 1 && doctor.text.contains("→ kill -CONT \(process)"), "\(doctor)")
        try Child.run("sh", ["-c", "kill -CONT \(process)"])
        #expect(try stage.run(["list"]).code == 0)
    }

    /// The bus starts it, and it never takes its name.
    @Test func serviceThatNeverComes_isToldAsNotRunning() throws {
        let services = try PrivateFolder()
        _ = try services.file("org.sessiond1.service", "[D-BUS Service]\nName=org.sessiond1\nExec=/bin/sleep 60\n")
        let bus = try PrivateBus(services: [services.path])
        let outcome = try SessionctlStage.outcome(
            of: try Child(
                try builtProduct(named: "sessionctl"), ["list"], environment: SessionctlStage.environment(on: bus)),
            [], 30)
        #expect(outcome.code == 69 && outcome.complaint.contains("is not running: start it with"), "\(outcome)")
        expectPlain(outcome.complaint)
    }

    @Test(arguments: [["play"], ["watch"], ["watch", "--from", "1"], ["effect"], ["record", "--duration", "1"]])
    func noSoundServer_isToldWithTheCommandThatStartsOne(command: [String]) throws {
        let outcome = try stage.run(command + [stage.tone("one.wav", seconds: 0.2)], timeout: 60)
        let purpose = command[0] == "record" ? "record" : "play"
        let start = "sessionctl: no sound server is running: start one with '"
        #expect(outcome.code == 1 && outcome.errors.last?.hasPrefix(start) == true, "\(outcome)")
        #expect(outcome.errors.last?.hasSuffix("', then \(purpose) again") == true, "\(outcome)")
        expectPlain(outcome.complaint)
    }

    @Test func keyOfALiveStreamIsMissing_theOptionIsNamed() throws {
        let outcome = try stage.run(["live", "push", "rtmp://host/app", "--test"], timeout: 60)
        #expect(outcome.code == 1 && outcome.complaint.contains("--key-file"), "\(outcome)")
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
