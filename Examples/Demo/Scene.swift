import EventLoop
import Foundation
import SessionBus
import TestSupport

/// The scene, step by step: what happens, what must be heard, what was measured.
final class Scene {
    /// Louder counts as heard, softer as silent: dBFS of a pitch on the monitor. The tones play at −10.
    private static let heard = -30.0
    private static let silent = -70.0
    static let music = 440.0
    static let voice = 1000.0

    private let stage: Stage
    private var failures: [String] = []
    private var number = 0
    /// A minute of tone, there for as long as the scene is.
    private(set) var musicFile = ""

    init(_ stage: Stage) { self.stage = stage }

    /// Whether every step sounded as it should.
    var succeeded: Bool { failures.isEmpty }

    func play() throws {
        musicFile = try writeTone("music", Scene.music, seconds: 60)
        let messageFile = try writeTone("message", Scene.voice, seconds: 2)
        let callFile = try writeTone("call", Scene.voice, seconds: 2.5)

        let music = try Player("Music", musicFile, on: stage)
        step("Music plays", music: true, voice: false)

        let message = try Player("Voice message", messageFile, on: stage)
        step("A voice message takes over: the music is told \"began\" and is silent", music: false, voice: true)
        let began = music.told.last
        check(isBegan(began), "the music was told \"began\"", "")
        let left = try music.position()

        _ = message.process.wait(timeout: 10)
        step(
            "The message ends and notifies others: the music is told \"ended, should resume\" and goes on",
            music: true, voice: false)
        check(music.told.contains(where: isEndedResuming), "the music was told \"ended, should resume\"", "")
        let back = try music.position()
        check(back >= left && back - left < 2, "it goes on where it was", String(format: "%.2f s → %.2f s", left, back))

        let phone = try Player(
            "Phone", callFile, arguments: ["--class", "call", "--category", "play-and-record"], on: stage)
        step("A call interrupts everybody", music: false, voice: true)

        _ = phone.process.wait(timeout: 10)
        step("The call ends: the music goes on", music: true, voice: false)

        try stage.unplugHeadphones()
        step("The headphones are unplugged: the music pauses, on every output", music: false, voice: false)
        check(try music.state() != "playing", "the player has paused", try music.state())
    }

    // MARK: Looking and listening

    /// Waits until it sounds as it should, then measures half a second of it and shows the status.
    private func step(_ title: String, music: Bool, voice: Bool) {
        number += 1
        say("\n\(number). \(title)")
        let isRight = eventually(timeout: 10) {
            loopOnce()
            let (m, v) = (level(Scene.music, 0.1), level(Scene.voice, 0.1))
            return (music ? m > Scene.heard : m < Scene.silent) && (voice ? v > Scene.heard : v < Scene.silent)
        }
        // Half a second of nothing but the state that was reached.
        let end = monotonicNow() + 0.5
        eventually(timeout: 2) {
            loopOnce()
            return monotonicNow() >= end
        }
        let (m, v) = (level(Scene.music, 0.4), level(Scene.voice, 0.4))
        say(status())
        say("   heard on the monitors: \(describe("music 440 Hz", m)), \(describe("voice 1 kHz", v))")
        check(
            isRight && (m > Scene.heard) == music, music ? "the music is heard" : "the music is silent",
            describe("440 Hz", m))
        check(isRight && (v > Scene.heard) == voice, voice ? "the voice is heard" : "no voice", describe("1 kHz", v))
    }

    /// On the loudest of the outputs: wherever it comes out.
    private func level(_ hertz: Double, _ seconds: Double) -> Double {
        stage.audible.map { $0.ear.level(of: hertz, last: seconds) }.max() ?? -120
    }

    private func loopOnce() { stage.loop.iterate(blocking: false) }

    private func status() -> String {
        let text = (try? builtProduct(named: "sessionctl"))
            .flatMap { try? Child.run($0, ["status"], environment: stage.environment) }
        return (text ?? "(sessionctl status failed)").split(separator: "\n", omittingEmptySubsequences: false)
            .map { "   │ \($0)" }.joined(separator: "\n")
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

    /// For the last line.
    var summary: String {
        succeeded
            ? "Every step sounded as it should."
            : "It did not sound as it should:\n  " + failures.joined(separator: "\n  ")
    }
}
