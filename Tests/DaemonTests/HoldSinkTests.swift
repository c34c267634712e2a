import Foundation
import PluginAPI
import TestSupport
import Testing

/// PulseAudio's hold sink fetches no sound from its streams, and looks to programs like a sink that runs.
@Suite(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: PipeWire has no module-pipe-sink"))
struct HoldSinkTests {
    private func hold(_ body: (ForeignCrashTests.House, _ folder: String) throws -> Void) throws {
        let house = try ForeignCrashTests.House(.pulseAudio, modules: ["module-suspend-on-idle timeout=0"])
        let folder = try PrivateFolder()
        let stage = try DaemonStage(pulse: house.pulse, environment: ["XDG_RUNTIME_DIR": folder.path])
        #expect(try eventually { try stage.listedSessions().count == 1 })
        let phone = try stage.foreigner()
        for _ in 0..<2 {
            let call = phone.create("Phone", category: "play-and-record", class: "call")
            #expect(phone.ask("activate \(call)") == "ok")
            #expect(try eventually { try house.isHeld() }, "\(house.description)")
            try body(house, folder.path)
            #expect(phone.ask("deactivate \(call)") == "ok")
            #expect(try eventually { try house.isUntouched() }, "\(house.description)")
        }
    }

    /// MPD gives up if its sink is suspended when it wants to write.
    @Test func heldProgram_isOnARunningSink_andNoPipeIsLeft() throws {
        try hold { house, folder in
            try #expect(state(of: house.pulse).hasSuffix("\tRUNNING"))
            try #expect(state(of: house.pulse).contains("\tmodule-pipe-sink.c\t"))
            #expect(!FileManager.default.fileExists(atPath: folder + "/sessiond.hold"))
        }
    }

    /// A folder is in the place of the pipe. It stays, and streams are held on a suspended sink.
    @Test func pipeCannotBeMade_holdSinkIsSuspended() throws {
        let house = try ForeignCrashTests.House(.pulseAudio)
        let folder = try PrivateFolder()
        let obstacle = try folder.folder("sessiond.hold")
        let stage = try DaemonStage(pulse: house.pulse, environment: ["XDG_RUNTIME_DIR": folder.path])
        #expect(try eventually { try stage.listedSessions().count == 1 })
        let phone = try stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(try eventually { try house.isHeld() }, "\(house.description)")
        try #expect(state(of: house.pulse).hasSuffix("\tSUSPENDED"))
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(try eventually { try house.isUntouched() }, "\(house.description)")
        #expect(FileManager.default.fileExists(atPath: obstacle))
    }

    private func state(of pulse: any PrivateServer) throws -> String {
        try pulse.pactl(["list", "short", "sinks"]).split(separator: "\n").map(String.init)
            .first { $0.contains("\tsessiond.hold\t") } ?? "none"
    }
}
