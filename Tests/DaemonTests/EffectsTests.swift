import DBus
import EventLoop
import Foundation
import SessionBus
import TestSupport
import Testing

/// `sessiond-effects` on a real sound server.
@Suite(.serialized) struct EffectsTests {
    private final class Effects {
        let stage: PlayerStage
        let child: Child
        let connection: Connection
        let busName: String
        private(set) var completed: [String] = []
        private var subscription: Subscription?

        init(_ kind: ServerKind = .standard) throws {
            stage = try PlayerStage(kind)
            let child = try stage.program("sessiond-effects")
            self.child = child
            busName = "org.sessiond1.SoundEffects.instance\(child.processID)"
            connection = try Connection(.custom(stage.daemon.bus.address), loop: stage.daemon.loop)
            subscription = connection.subscribe(
                path: ObjectPath.soundEffects, interface: BusName.soundEffects, member: "Completed", sender: busName
            ) { [weak self] message in
                let values = (try? message.arguments()) ?? []
                guard values.count == 3 else { return }
                let numbers = values.prefix(2).compactMap(\.uint32Value).map(String.init).joined(separator: " ")
                self?.completed.append("\(numbers) \(values[2].boolValue == true)")
            }
            guard eventually(timeout: 30, { get("Loaded") != nil || !child.isRunning }), child.isRunning else {
                throw SupportError("sessiond-effects does not serve: \(child.errors)")
            }
        }

        func get(_ name: String) -> UInt32? {
            try? connection.callAndWait(
                busName, ObjectPath.soundEffects, StandardName.properties, "Get",
                [.string(BusName.soundEffects), .string(name)], timeout: 5)[0].unwrapped.uint32Value
        }

        func call(_ member: String, _ argument: Value) throws(Failure) -> [Value] {
            try connection.callAndWait(
                busName, ObjectPath.soundEffects, BusName.soundEffects, member, [argument], timeout: 20)
        }

        func load(_ path: String) throws -> UInt32 { try call("Load", .string(path))[0].uint32Value ?? 0 }
        func play(_ effect: UInt32) throws -> UInt32 { try call("Play", .uint32(effect))[0].uint32Value ?? 0 }

        func refusal(_ path: String) -> String {
            do throws(Failure) {
                _ = try call("Load", .string(path))
                return ""
            } catch {
                return error.name == "org.sessiond1.Error.BadParameter" ? error.message : error.name
            }
        }

        func hasCompleted(_ count: Int) -> Bool {
            stage.daemon.loop.iterate(timeout: 20) { completed.count >= count } && completed.count == count
        }

        var sessionState: String {
            let sessions = (try? stage.daemon.sessions()) ?? [:]
            let mine = sessions.values.first { $0["ProcessId"]?.uint32Value == UInt32(child.processID) }
            return mine?["State"]?.stringValue ?? ""
        }

        func sine(_ hertz: Double, seconds: Double) throws -> String {
            String(try stage.sine(hertz, seconds: seconds).dropFirst("file://".count))
        }
    }

    @Test(arguments: ServerKind.allCases) func loadedOnce_playsTwiceAndReportsEachEnd(_ kind: ServerKind) throws {
        let effects = try Effects(kind)
        let values = try effects.call("Load", .string(effects.sine(1_000, seconds: 0.5)))
        let effect = values[0].uint32Value ?? 0
        #expect(abs((values[1].doubleValue ?? 0) - 0.5) < 0.001)
        for round in 1...2 {
            let number = try effects.play(effect)
            #expect(effects.sessionState == "active")
            #expect(effects.stage.ear.waitUntil(1_000, above: -20))
            #expect(effects.hasCompleted(round))
            #expect(effects.completed.last == "\(effect) \(number) true")
            #expect(effects.stage.ear.waitUntil(1_000, below: -70))
        }
        #expect(eventually { effects.sessionState == "inactive" })
        _ = try effects.call("Unload", .uint32(effect))
        #expect(throws: Failure.self) { try effects.play(effect) }
        #expect(try effects.stage.pulse.pactl(["list", "short", "samples"]) == "")
    }

    /// A stand-in for feedbackd, the haptics service, on the test's bus.
    private final class Feedback {
        let connection: Connection
        var asked: [[Value]] = []

        init(_ stage: DaemonStage) throws {
            connection = try Connection(.custom(stage.bus.address), loop: stage.loop)
            let name = "org.sigxcpu.Feedback"
            _ = try connection.requestName(name)
            let methods = [
                Interface<Feedback>.Method("TriggerFeedback", "ssa{sv}i") { feedback, call in
                    feedback.asked.append(call.arguments)
                    call.reply([.uint32(1)])
                }
            ]
            connection.objects.export(
                self, at: "/org/sigxcpu/Feedback",
                interfaces: [Interface(name: name, introspection: "<interface name=\"\(name)\"/>", methods: methods)])
        }
    }

    @Test func alert_vibratesToo_andOnlySoundsWithoutFeedbackd() throws {
        let effects = try Effects()
        let effect = try effects.load(effects.sine(1_000, seconds: 0.3))
        _ = try effects.call("PlayAlert", .uint32(effect))
        #expect(effects.hasCompleted(1))
        let feedback = try Feedback(effects.stage.daemon)
        _ = try effects.call("PlayAlert", .uint32(effect))
        #expect(effects.stage.ear.waitUntil(1_000, above: -20))
        #expect(effects.stage.daemon.loop.iterate(timeout: 10) { !feedback.asked.isEmpty })
        // The profile "quiet" asks feedbackd not to play its own sound.
        #expect(feedback.asked.first?[2].asProperties?["profile"]?.stringValue == "quiet")
        _ = try effects.play(effect)
        #expect(effects.hasCompleted(3))
        #expect(feedback.asked.count == 1)
        #expect(throws: Failure.self) { try effects.call("PlayAlert", .uint32(99)) }
    }

    @Test func fourHundredLoadsAtOnce_succeedUpToTheLimit() throws {
        let effects = try Effects()
        let path = try effects.sine(1_000, seconds: 0.05)
        var (done, refused) = (0, 0)
        for _ in 0..<400 {
            let message = try Message.methodCall(
                destination: effects.busName, path: ObjectPath.soundEffects, interface: BusName.soundEffects,
                member: "Load")
            message.append([.string(path)])
            effects.connection.call(message, timeout: 120) { answer in
                if case .success = answer { done += 1 } else { refused += 1 }
            }
        }
        #expect(
            eventually(timeout: 120) {
                effects.connection.loop.iterate(blocking: false)
                return done + refused == 400
            })
        #expect(done == 256 && refused == 144, "\(done) \(refused)")
        #expect(effects.get("Loaded") == 256)
        #expect(effects.child.isRunning)
    }

    @Test(arguments: ServerKind.allCases) func thirtyTwoAtOnce_areMixedAndReported(_ kind: ServerKind) throws {
        let effects = try Effects(kind)
        // Longer than a busy machine needs to start all of them.
        let effect = try effects.load(effects.sine(1_000, seconds: 8))
        var numbers: Set<UInt32> = []
        for _ in 0..<32 { numbers.insert(try effects.play(effect)) }
        #expect(numbers.count == 32)
        // PipeWire lists a stream some time after it has begun.
        #expect(try eventually { try effects.stage.pulse.control.streams().count == 32 })
        #expect(effects.hasCompleted(32))
        #expect(effects.completed.allSatisfy { $0.hasSuffix("true") })
    }

    @Test(arguments: ["aiff", "caf"]) func formatsOfApple_arePlayed(ending: String) throws {
        let effects = try Effects()
        let file = effects.stage.media.path + "/tone." + ending
        if ending == "aiff" {
            try Child.run(
                "gst-launch-1.0",
                [
                    "-q", "audiotestsrc", "freq=1000", "num-buffers=40", "!", "audio/x-raw,rate=44100", "!", "aiffmux",
                    "!", "filesink", "location=\(file)",
                ])
        } else {
            try EffectsTests.coreAudio(hertz: 1_000, seconds: 1).write(to: URL(fileURLWithPath: file))
        }
        _ = try effects.play(effects.load(file))
        #expect(effects.stage.ear.waitUntil(1_000, above: -20))
    }

    @Test(arguments: ["adpcm_ima_qt caf", "adpcm_ima_qt aiff", "adpcm_ima_wav wav"], [1, 2])
    func compressedFormats_arePlayedWithTheirFullDuration(format: String, channels: Int) throws {
        let effects = try Effects()
        let words = format.split(separator: " ").map(String.init)
        let file = effects.stage.media.path + "/tone." + words[1]
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=1000:sample_rate=22050:duration=0.9"]
                + ["-af", "volume=2", "-ac", String(channels), "-c:a", words[0], file])
        let values = try effects.call("Load", .string(file))
        // The encoder may fill up the last packet: by up to 64 samples, in a WAV file by about 2000.
        let duration = values[1].doubleValue ?? 0
        #expect(duration > 0.899 && duration < (words[1] == "wav" ? 1 : 0.904), "\(duration)")
        _ = try effects.play(values[0].uint32Value ?? 0)
        #expect(effects.stage.ear.waitUntil(1_000, above: -20))
        // Only the tone is played, without noise: another frequency is silent.
        #expect(effects.stage.ear.level(of: 3_100, last: 0.1) < -45)
        #expect(effects.hasCompleted(1))
    }

    @Test func unsuitableFile_isRefusedWithTheReason() throws {
        let effects = try Effects()
        #expect(effects.refusal(try effects.sine(440, seconds: 30.5)).contains("longer than 30 s"))
        #expect(effects.refusal(try effects.sine(440, seconds: 30)) == "")
        #expect(effects.refusal(effects.stage.media.path + "/absent.wav").contains("No such file"))
        #expect(effects.refusal(effects.stage.media.path).contains("folder"))
        #expect(effects.refusal("/dev/zero").contains("device"))
        #expect(effects.refusal("click.wav").contains("absolute"))
        let noise = effects.stage.media.path + "/noise.wav"
        try Data((0..<40_000).map { _ in UInt8.random(in: 0...255) }).write(to: URL(fileURLWithPath: noise))
        #expect(!effects.refusal(noise).isEmpty)
        var lying = try EffectsTests.coreAudio(hertz: 440, seconds: 0.1)
        for cut in [5, 15, 30, 60, 70] {
            let file = effects.stage.media.path + "/cut.caf"
            try lying.prefix(cut).write(to: URL(fileURLWithPath: file))
            #expect(!effects.refusal(file).isEmpty, "\(cut) bytes")
        }
        let whole = effects.stage.media.path + "/ima4."
        for ending in ["caf", "aiff"] {
            let sine = try effects.sine(440, seconds: 0.2)
            try Child.run("ffmpeg", ["-nostdin", "-v", "error", "-i", sine, "-c:a", "adpcm_ima_qt", whole + ending])
            let bytes = try Data(contentsOf: URL(fileURLWithPath: whole + ending))
            // The plugin must answer and survive, wherever the file is cut off or overwritten.
            for place in stride(from: 4, to: 120, by: 3) {
                var broken = bytes
                broken[place..<place + 4] = Data([0xff, 0xff, 0xff, UInt8(place)])
                for damaged in [bytes.prefix(place), broken] {
                    try damaged.write(to: URL(fileURLWithPath: noise))
                    _ = effects.refusal(noise)
                }
            }
        }
        #expect(effects.child.isRunning)
        lying.replaceSubrange(12..<20, with: [0x7f, 255, 255, 255, 255, 255, 255, 255])
        try lying.write(to: URL(fileURLWithPath: noise))
        #expect(!effects.refusal(noise).isEmpty)
        #expect(effects.child.isRunning)
    }

    @Test(arguments: ServerKind.allCases) func callBegins_effectEndsAndIsNotPlayedLater(_ kind: ServerKind) throws {
        let effects = try Effects(kind)
        let effect = try effects.load(effects.sine(1_000, seconds: 20))
        let number = try effects.play(effect)
        #expect(effects.stage.ear.waitUntil(1_000, above: -20))
        let client = try effects.stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(effects.hasCompleted(1))
        #expect(effects.completed == ["\(effect) \(number) false"])
        #expect(effects.stage.ear.waitUntil(1_000, below: -70))
        client.deactivate(call)
    }

    @Test(arguments: ServerKind.allCases) func silentSwitchIsOn_effectEndsAtOnce(_ kind: ServerKind) throws {
        let effects = try Effects(kind)
        let effect = try effects.load(effects.sine(1_000, seconds: 0.3))
        try effects.stage.daemon.manager("SetSilentMode", [.bool(true)])
        #expect(
            try eventually {
                _ = try effects.play(effect)
                effects.stage.daemon.loop.iterate(timeout: 0.05) { false }
                return effects.get("Playing") == 0 && !effects.completed.isEmpty
            })
    }

    @Test(arguments: ServerKind.allCases) func soundServerRestarts_loadedEffectPlaysAgain(_ kind: ServerKind) throws {
        let effects = try Effects(kind)
        let effect = try effects.load(effects.sine(1_000, seconds: 0.3))
        _ = try effects.play(effect)
        #expect(effects.hasCompleted(1))
        try effects.stage.pulse.restart()
        #expect(eventually { (try? effects.play(effect)) != nil })
        #expect(effects.stage.daemon.loop.iterate(timeout: 10) { effects.completed.last?.hasSuffix("true") == true })
    }

    /// A CAF as `afconvert -f caff -d BEI16` makes it: 44.1 kHz, mono, 16 bit.
    private static func coreAudio(hertz: Double, seconds: Double) throws -> Data {
        func bytes<T: FixedWidthInteger>(_ value: T) -> Data { withUnsafeBytes(of: value.bigEndian) { Data($0) } }
        let count = Int(seconds * 44_100)
        var file = Data("caff".utf8) + bytes(UInt16(1)) + bytes(UInt16(0))
        file += Data("desc".utf8) + bytes(Int64(32)) + bytes(44_100.0.bitPattern) + Data("lpcm".utf8)
        file += bytes(UInt32(0)) + bytes(UInt32(2)) + bytes(UInt32(1)) + bytes(UInt32(1)) + bytes(UInt32(16))
        file += Data("free".utf8) + bytes(Int64(4)) + bytes(UInt32(0))
        file += Data("data".utf8) + bytes(Int64(4 + count * 2)) + bytes(UInt32(0))
        for place in 0..<count { file += bytes(Int16(8_192 * sin(2 * .pi * hertz * Double(place) / 44_100))) }
        return file
    }
}
