import Foundation
import TestSupport
import Testing

/// A satellite of Home Assistant that ducks music while it speaks (`Examples/Wyoming`), measured on the speaker's
/// monitor.
@Suite(.serialized) struct SatelliteTests {
    private static let music = 440.0
    private static let voice = 1_000.0

    private let pulse: any PrivateServer
    private let desk: Desk
    private let ear: Ear
    private let tone: Tone

    /// Starts music of a program that does not use sessiond.
    init() throws {
        pulse = try ServerKind.standard.server()
        desk = try Desk(pulse: pulse)
        ear = try Ear(pulse, sink: "speaker")
        tone = try Tone(pulse, hertz: Self.music, name: "Music")
        guard ear.waitUntil(Self.music, above: -30, window: 0.2) else { throw SupportError("no music") }
    }

    /// Writes three seconds of the voice in the format of an answer: 22.05 kHz, 16 bits, mono.
    private func answer() throws -> String {
        let samples = WaveFile.sines([(Self.voice, 3)], rate: 22_050)
        let data = samples.withUnsafeBytes { Data($0) }
        try data.write(to: URL(fileURLWithPath: desk.path("answer.raw")))
        return desk.path("answer.raw")
    }

    /// While the voice is heard, the music is 12 dB softer. Afterwards it is as loud as before.
    private func expectDucked(_ before: Double, by speaker: Child) throws {
        #expect(ear.waitUntil(Self.voice, above: -40, window: 0.05, timeout: 20), "\(speaker.errors)")
        #expect(ear.waitUntil(Self.music, below: before - 11, window: 0.05))
        let ducked = ear.steadyLevel(of: Self.music)
        #expect(abs(before - ducked - 12) < 0.5, "\(before) dB, then \(ducked) dB")
        let status = try desk.sessionctl("status")
        #expect(status.contains("ducked 12 dB by Assistant"), "\(status)")
        #expect(ear.waitUntil(Self.voice, below: -70, window: 0.05, timeout: 20))
        #expect(ear.waitUntil(Self.music, above: before - 0.5, window: 0.1, timeout: 20))
        #expect(eventually { (try? desk.sessionctl("list"))?.contains("Assistant") == false })
        print("music \(before) dB, \(ducked) dB while it speaks")
    }

    /// Runs the sound command of the example like a satellite: writes the answer to it and closes its input.
    @Test func soundCommand_ducksWhileItPlaysItsInput() throws {
        let fake = try PrivateFolder()
        // Replaces the satellite, and prints its sound command.
        let program = try fake.file("satellite", "#!/bin/sh\nprintf '%s\\n' \"$4\"\n")
        chmod(program, 0o755)
        let example = repository.path + "/Examples/Wyoming/satellite"
        let command = try Child.run(
            example, environment: desk.environment.merging(["WYOMING_SATELLITE": program]) { $1 })
        #expect(command.hasPrefix("sessionctl run "))
        let before = ear.steadyLevel(of: Self.music)
        let speaker = try desk.start("exec \(command) <\(try answer())")
        try expectDucked(before, by: speaker)
        #expect(speaker.wait() == .code(0), "\(speaker.errors)")
    }

    /// Uses the real program, if `Scripts/check wyoming` has downloaded it from PyPI and passes the path of its Python.
    /// A script with the same library replaces Home Assistant: it connects and sends answers.
    @Test func wyomingSatellite_ducksWhileItSpeaks_ifItIsInstalled() throws {
        guard let python = ProcessInfo.processInfo.environment["SESSIOND_EXAMPLE_SATELLITE"] else { return }
        let address = "unix://" + desk.path("satellite")
        let satellite = try Child(
            repository.path + "/Examples/Wyoming/satellite", ["--uri", address, "--no-zeroconf", "--name", "Kitchen"],
            environment: desk.environment.merging(["WYOMING_SATELLITE": python + " -m wyoming_satellite"]) { $1 })
        #expect(
            eventually(timeout: 20) { FileManager.default.fileExists(atPath: desk.path("satellite")) },
            "\(satellite.errors)")
        let before = ear.steadyLevel(of: Self.music)
        let assistant = try Child(
            python, ["-u", "-c", Self.assistant, address, try answer()], environment: desk.environment)
        for _ in 0..<2 {
            assistant.send("speak")
            try expectDucked(before, by: satellite)
        }
        assistant.closeInput()
        #expect(assistant.wait() == .code(0), "\(assistant.errors) \(satellite.errors)")
        satellite.kill()
    }

    private static let assistant = """
        import asyncio, sys
        from wyoming.audio import AudioChunk, AudioStart, AudioStop
        from wyoming.client import AsyncClient
        from wyoming.satellite import RunSatellite
        form = dict(rate=22050, width=2, channels=1)
        async def speak(client):
            sound = open(sys.argv[2], 'rb').read()
            await client.write_event(AudioStart(**form).event())
            for start in range(0, len(sound), 2048):
                await client.write_event(AudioChunk(audio=sound[start:start + 2048], **form).event())
            await client.write_event(AudioStop().event())
        async def main():
            client = AsyncClient.from_uri(sys.argv[1])
            await client.connect()
            await client.write_event(RunSatellite().event())
            async def read():
                while await client.read_event(): pass
            reader = asyncio.create_task(read())
            loop = asyncio.get_running_loop()
            while await loop.run_in_executor(None, sys.stdin.readline): await speak(client)
            reader.cancel()
            await client.disconnect()
        asyncio.run(main())
        """
}
