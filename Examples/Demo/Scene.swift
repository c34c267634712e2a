import EventLoop
import Foundation
import SessionBus
import TestSupport

/// The steps of the demonstration. For each, it prints what happens, and compares the measured sound with the expected.
final class Scene {
    /// The level of a tone on the monitor in dBFS. A tone above `heard` counts as heard, and one below `silent` as
    /// silent. The tones play at −10 dBFS.
    private static let heard = -30.0
    private static let silent = -70.0
    static let music = 440.0
    static let voice = 1000.0

    private let stage: Stage
    /// The lines above the sessions in the last step.
    private var header: [String] = []
    private var failures: [String] = []
    private var number = 0
    /// A file with a tone of one minute. The file exists as long as the scene.
    private(set) var musicFile = ""

    init(_ stage: Stage) { self.stage = stage }

    /// Whether the right sound was heard in every step.
    var succeeded: Bool { failures.isEmpty }

    func play() throws {
        musicFile = try writeTone("music", Scene.music, seconds: 60)
        let messageFile = try writeTone("message", Scene.voice, seconds: 2)
        let callFile = try writeTone("call", Scene.voice, seconds: 2.5)

        let music = try Player("Music", musicFile, on: stage)
        step("Music plays", music: true, voice: false)

        let message = try Player("Voice message", messageFile, on: stage)
        step("A voice message interrupts the music, which gets \"began\" and falls silent", music: false, voice: true)
        let began = music.told.last
        check(isBegan(began), "the music got \"began\"", "")
        let left = try music.position()

        _ = message.process.wait(timeout: 10)
        step(
            "The message ends and notifies others: the music gets \"ended\" with the should-resume hint, and resumes",
            music: true, voice: false)
        check(music.told.contains(where: isEndedResuming), "the music got \"ended\" with the should-resume hint", "")
        let back = try music.position()
        check(
            back >= left && back - left < 2, "it resumes at the same place",
            String(format: "%.2f s → %.2f s", left, back))

        let phone = try Player(
            "Phone", callFile, arguments: ["--class", "call", "--category", "play-and-record"], on: stage)
        step("A call interrupts all others", music: false, voice: true)

        _ = phone.process.wait(timeout: 10)
        step("The call ends: the music resumes", music: true, voice: false)

        try stage.unplugHeadphones()
        step("The headphones are unplugged: the music pauses and is silent on every output", music: false, voice: false)
        check(try music.state() != "playing", "the player is paused", try music.state())
    }

    // MARK: Looking and listening

    /// Waits until the right sound is heard, then measures half a second of it and shows the status.
    private func step(_ title: String, music: Bool, voice: Bool) {
        number += 1
        say("\n\(number). \(title)")
        let isRight = eventually(timeout: 10) {
            loopOnce()
            let (m, v) = (level(Scene.music, 0.1), level(Scene.voice, 0.1))
            return (music ? m > Scene.heard : m < Scene.silent) && (voice ? v > Scene.heard : v < Scene.silent)
        }
        // Measures half a second after that.
        let end = monotonicNow() + 0.5
        eventually(timeout: 2) {
            loopOnce()
            return monotonicNow() >= end
        }
        let (m, v) = (level(Scene.music, 0.4), level(Scene.voice, 0.4))
        say(status())
        say("   measured on the monitors: \(describe("music 440 Hz", m)), \(describe("voice 1 kHz", v))")
        check(
            isRight && (m > Scene.heard) == music, music ? "the music is heard" : "the music is silent",
            describe("440 Hz", m))
        check(
            isRight && (v > Scene.heard) == voice, voice ? "the voice is heard" : "the voice is silent",
            describe("1 kHz", v))
    }

    /// The level on the loudest output.
    private func level(_ hertz: Double, _ seconds: Double) -> Double {
        stage.audible.map { $0.ear.level(of: hertz, last: seconds) }.max() ?? -120
    }

    private func loopOnce() { stage.loop.iterate(blocking: false) }

    /// The sessions, and above them what has changed since the last step. The streams without a session are those that
    /// measure what is heard.
    private func status() -> String {
        var parts = text(of: "status").split(separator: "\n\n", omittingEmptySubsequences: true).map(String.init)
        parts.removeAll { $0.hasPrefix("No session ") }
        if parts.count > 1 {
            let lines = parts[0].split(separator: "\n").map(String.init)
            parts[0] = lines.filter { !header.contains($0) }.joined(separator: "\n")
            header = lines
            if parts[0].isEmpty { parts.removeFirst() }
        }
        return Self.indented(parts.joined(separator: "\n\n").trimmingCharacters(in: .newlines))
    }

    /// Who was heard in all steps.
    var timeline: String { Self.indented(text(of: "timeline")) }

    private func text(of command: String) -> String {
        (try? builtProduct(named: "sessionctl"))
            .flatMap { try? Child.run($0, [command], environment: stage.environment) }
            ?? "(sessionctl \(command) failed)"
    }

    private static func indented(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { "   │ \($0)" }.joined(separator: "\n")
    }

    private func describe(_ what: String, _ level: Double) -> String {
        "\(what) " + (level < Scene.silent ? "silent" : String(format: "%.1f dBFS", level))
    }

    private func check(_ condition: Bool, _ what: String, _ seen: String) {
        say("   \(condition ? "✓" : "✗") \(what)" + (seen.isEmpty ? "" : " (\(seen))"))
        if !condition { failures.append("\(number). \(what): \(seen)") }
    }

    private func isBegan(_ event: SessionEvent?) -> Bool {
        if case .interruptionBegan = event { true } else { false }
    }

    private func isEndedResuming(_ event: SessionEvent) -> Bool {
        if case .interruptionEnded(shouldResume: true, _, _) = event { true } else { false }
    }

    /// A sine at −10 dBFS, 48 kHz mono 16 bit.
    private func writeTone(_ name: String, _ hertz: Double, seconds: Double) throws -> String {
        let count = Int(seconds * 48_000)
        var data = Data()
        func append<T>(_ value: T) { withUnsafeBytes(of: value) { data.append(contentsOf: $0) } }
        data.append(contentsOf: Array("RIFF".utf8))
        append(UInt32(36 + count * 2).littleEndian)
        data.append(contentsOf: Array("WAVEfmt ".utf8))
        append(UInt32(16).littleEndian)
        append(UInt16(1).littleEndian)
        append(UInt16(1).littleEndian)
        append(UInt32(48_000).littleEndian)
        append(UInt32(96_000).littleEndian)
        append(UInt16(2).littleEndian)
        append(UInt16(16).littleEndian)
        data.append(contentsOf: Array("data".utf8))
        append(UInt32(count * 2).littleEndian)
        for index in 0..<count {
            append(Int16(10_362 * sin(2 * .pi * hertz * Double(index) / 48_000)).littleEndian)
        }
        let path = folder.path + "/\(name).wav"
        try data.write(to: URL(fileURLWithPath: path))
        return path
    }

    private lazy var folder: PrivateFolder = {
        do { return try PrivateFolder() } catch { fatalError("no temporary folder: \(error)") }
    }()

    /// The last line of the output.
    var summary: String {
        succeeded
            ? "The right sound was heard in every step."
            : "These steps failed:\n  " + failures.joined(separator: "\n  ")
    }
}
