import Foundation
import TestSupport
import Testing

/// Programs in other languages that use this project: compiled examples, generated code, and pkg-config. These tests
/// need compilers and headers, so they run where the project is built.
@Suite(.serialized) struct BindingsTests {
    private let examples = repository.path + "/Examples"

    /// Compiles with all warnings as errors, and returns the program.
    private func compile(_ sources: [String], _ package: String, into folder: PrivateFolder) throws -> String {
        let program = folder.path + "/program"
        let flags = try Child.run("pkg-config", ["--cflags", "--libs", package]).split(separator: " ").map(String.init)
        try Child.run(
            CompilerOfC.name, ["-Wall", "-Wextra", "-Werror", "-I", folder.path, "-o", program] + sources + flags,
            timeout: 120)
        return program
    }

    @Test func radioInC_isSilentDuringACall_andResumes() throws {
        let desk = try Desk()
        let folder = try PrivateFolder()
        let radio = try Child(
            try compile([examples + "/C/radio.c"], "dbus-1", into: folder), environment: desk.environment)
        try desk.expectSilentDuringACall(radio)
    }

    @Test func radioInJavaScript_isSilentDuringACall_andResumes() throws {
        let desk = try Desk()
        let radio = try Child(examples + "/JavaScript/radio.js", environment: desk.environment)
        try desk.expectSilentDuringACall(radio)
    }

    /// Two apps in two languages. One interrupts the other, which plays on afterwards.
    @Test func radioInCAndAlarmInPython_takeTurns() throws {
        let desk = try Desk()
        let folder = try PrivateFolder()
        let radio = try Child(
            try compile([examples + "/C/radio.c"], "dbus-1", into: folder), environment: desk.environment)
        #expect(radio.line { $0 == "playing" } != nil, "\(radio.errors)")
        try Child.run(examples + "/Python/alarm.py", ["true"], environment: desk.environment)
        #expect(radio.line { $0 == "playing on" } != nil)
        #expect(radio.output == ["playing", "silent: interrupted by Alarm", "playing on"])
    }

    @Test func codeGeneratedByGLib_compilesAndTalksToTheDaemon() throws {
        let desk = try Desk()
        let folder = try PrivateFolder()
        let interfaces = repository.path + "/data/dbus"
        let files = try FileManager.default.contentsOfDirectory(atPath: interfaces).filter { $0.hasSuffix(".xml") }
        try Child.run(
            "gdbus-codegen",
            [
                "--interface-prefix", "org.sessiond1.", "--c-namespace", "Sessiond", "--c-generate-object-manager",
                "--c-generate-autocleanup", "all", "--output-directory", folder.path, "--generate-c-code", "sessiond",
            ] + files.map { interfaces + "/" + $0 })
        let program = try compile(
            [examples + "/GDBus/sessions.c", folder.path + "/sessiond.c"], "gio-unix-2.0", into: folder)
        let call = try desk.call()
        let lines = try Child.run(program, environment: desk.environment).split(separator: "\n").map(String.init)
        #expect(lines.count == 2 && lines[0].hasPrefix("sessiond ") && lines[1] == "Phone: active", "\(lines)")
        call.closeInput()
    }

    @Test func pkgConfig_printsTheFolderOfTheInterfaces() throws {
        let folder = try PrivateFolder()
        let text = try String(contentsOfFile: repository.path + "/data/pkgconfig/sessiond.pc.in", encoding: .utf8)
        _ = try folder.file(
            "sessiond.pc",
            text.replacingOccurrences(of: "@prefix@", with: "/opt/x").replacingOccurrences(of: "@version@", with: "1.2")
        )
        let environment = ["PKG_CONFIG_PATH": folder.path, "PATH": "/usr/bin:/bin"]
        func ask(_ words: String...) throws -> String {
            try Child.run("pkg-config", words + ["sessiond"], environment: environment)
        }
        #expect(try ask("--validate") == "")
        #expect(try ask("--modversion") == "1.2")
        #expect(try ask("--variable=interfacesdir") == "/opt/x/share/dbus-1/interfaces")
        #expect(try ask("--variable=pluginsdir") == "/opt/x/share/sessiond/plugins")
    }

    /// Runs the command of the drop-in for MPD unchanged.
    @Test func mpdWithTheDropIn_isSilentDuringACallAndPlaysOn() throws {
        let dropIn = try String(contentsOfFile: examples + "/systemd/session.conf", encoding: .utf8)
        let command = try #require(
            dropIn.split(separator: "\n").last { $0.hasPrefix("ExecStart=sessionctl ") }?.dropFirst("ExecStart=".count))
        let pulse = try ServerKind.standard.server()
        let desk = try Desk(pulse: pulse)
        let music = try PrivateFolder()
        try WaveFile.write(WaveFile.sines([(440, 30)], rate: 48_000), rate: 48_000, to: music.path + "/music.wav")
        _ = try desk.bus.folder.file(
            ".mpdconf",
            """
            music_directory "\(music.path)"
            bind_to_address "\(desk.path("mpd"))"
            audio_output {
                type "pulse"
                name "sound"
            }
            """)
        let ear = try Ear(pulse, sink: "speaker")
        let service = try desk.start("exec " + command)
        #expect(
            eventually(timeout: 20) { FileManager.default.fileExists(atPath: desk.path("mpd")) }, "\(service.errors)")
        try Child.run(
            "python3",
            [
                "-c",
                """
                import socket, sys
                mpd = socket.socket(socket.AF_UNIX)
                mpd.connect(sys.argv[1])
                mpd.sendall(b'add "file://%s"\\nplay\\nclose\\n' % sys.argv[2].encode())
                while mpd.recv(1000): pass
                """, desk.path("mpd"), music.path + "/music.wav",
            ], environment: desk.environment)
        #expect(ear.waitUntil(440, above: -40), "\(service.errors)")
        let call = try desk.call()
        #expect(ear.waitUntil(440, below: -80))
        call.closeInput()
        #expect(ear.waitUntil(440, above: -40))
        service.signal(SIGTERM)
        #expect(service.wait() != nil)
    }

    @Test func dropIn_isAcceptedBySystemd() throws {
        let desk = try Desk()
        let folder = try PrivateFolder()
        let unit = try folder.file("mpd.service", "[Service]\nType=notify\nExecStart=/bin/true\n")
        let place = try folder.folder("mpd.service.d")
        // systemd searches programs in the system's folders, but sessionctl is not installed there.
        try String(contentsOfFile: examples + "/systemd/session.conf", encoding: .utf8)
            .replacingOccurrences(of: "=sessionctl", with: "=" + (try builtProduct(named: "sessionctl")))
            .write(toFile: place + "/session.conf", atomically: true, encoding: .utf8)
        // The drop-in refers to this unit.
        _ = try folder.file("sessiond.service", "[Service]\nExecStart=/bin/true\n")
        let said = try Child(
            "systemd-analyze", ["--user", "verify", unit],
            environment: desk.environment.merging([
                "SYSTEMD_UNIT_PATH": folder.path + ":", "XDG_RUNTIME_DIR": folder.path,
            ]) { $1 })
        #expect(said.wait() == .code(0), "\(said.errors)")
        #expect(!said.errors.contains { $0.contains("session.conf") }, "\(said.errors)")
    }
}
