import DBus
import Foundation
import TestSupport
import Testing

/// What plays or records without a session is listed, with the reason.
@Suite struct StreamListTests {
    private static func streams(_ stage: DaemonStage) throws -> [[String: Value]] {
        try stage.manager("ListStreams")[0].arrayValue?.compactMap(\.asProperties) ?? []
    }

    @Test(arguments: ServerKind.allCases) func programsWithoutASession_areShownWithTheReason(_ kind: ServerKind) throws
    {
        let pulse = try kind.server()
        let stage = try SessionctlStage(pulse: pulse, settings: "[adoption]\nnever = Quiet\n")
        #expect(stage.daemon.waitForServer())
        let quiet = try Tone.program(pulse, hertz: 440, name: "Quiet")
        let loud = try Tone.program(pulse, hertz: 550, name: "Loud")
        let taker = try Child(
            "parec", ["--client-name=Taker", "--device=speaker.monitor", "/dev/null"], environment: pulse.environment)
        func stream(_ program: String) throws -> [String: Value]? {
            try Self.streams(stage.daemon).first { $0["program"] == .string(program) }
        }
        #expect(try eventually { try stream("Loud")?["sessions"]?.objectPathsValue?.count == 1 })
        #expect(try eventually { try stream("Quiet") != nil && stream("Taker") != nil })
        #expect(try stream("Loud")?["reason"] == nil)
        #expect(try stream("Quiet")?["reason"] == .string("never"))
        #expect(try stream("Quiet")?["device"] == .string("speaker"))
        #expect(try stream("Quiet")?["running"] == .bool(true))
        #expect(try stream("Taker")?["reason"] == .string("recording"))
        #expect(try stream("Taker")?["direction"] == .string("record"))

        let why = "plays and is not known to sessiond, because Quiet is listed in [adoption] never"
        #expect(try stage.run(["explain", "quiet"]).output == ["Quiet", "  " + why])
        let json = try stage.json(["explain", "quiet"])
        #expect((json["Streams"] as? [[String: Any]])?.first?["reason"] as? String == "never")
        #expect(json["path"] as? String == "/" && json["Name"] as? String == "Quiet")
        #expect(try stage.run(["explain", "loud"]).output.first == "Loud")
        #expect(try stage.run(["explain", "nobody"]).code == 1)
        let lines = try stage.run(["status"]).output
        #expect(lines.contains { $0.hasPrefix("No session") && $0.contains("Quiet  " + why) }, "\(lines)")
        #expect(lines.contains { $0.contains("Taker  records and is not known to sessiond") }, "\(lines)")
        #expect((try stage.json(["status"])["Streams"] as? [Any])?.count ?? 0 >= 3)
        withExtendedLifetime((quiet, loud, taker)) {}
    }
}
