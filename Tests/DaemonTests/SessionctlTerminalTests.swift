import DBus
import Foundation
import TestSupport
import Testing

/// `sessionctl play` and `record` on a terminal: their keys, and the terminal's mode afterwards.
@Suite(.serialized) struct SessionctlTerminalTests {
    let pulse: any PrivateServer
    let stage: SessionctlStage

    init() throws {
        pulse = try ServerKind.standard.server()
        stage = try SessionctlStage(on: pulse)
    }

    private func terminal(
        _ arguments: [String], columns: UInt16 = 100, _ more: [String: String] = [:]
    ) throws -> PseudoTerminal {
        try PseudoTerminal(
            try builtProduct(named: "sessionctl"), arguments, environment: stage.environment.merging(more) { $1 },
            columns: columns)
    }

    /// Starts a player, and waits until its status line says that it plays.
    private func player(columns: UInt16 = 100, _ more: [String: String] = [:]) throws -> PseudoTerminal {
        let path = try sine(440, seconds: 60, in: stage.daemon.bus.folder).dropFirst("file://".count)
        let terminal = try terminal(["play", "--name", "Tune", String(path)], columns: columns, more)
        try #require(terminal.shows("playing"), "\(terminal.text)")
        #expect(terminal.isRaw)
        return terminal
    }

    @Test func keys_pauseSeekChangeTheVolumeAndQuit() throws {
        let terminal = try player()
        #expect(terminal.text.contains("space pause"))
        #expect(terminal.shows { $0.contains("▮") && $0.contains("/ 1:00") && $0.contains("━") }, "\(terminal.line)")
        terminal.type(" ")
        #expect(terminal.shows("paused"))
        #expect(try stage.session("Tune")?["State"]?.stringValue == "inactive")
        terminal.type(" ")
        #expect(terminal.shows("playing"))
        terminal.type("\u{1B}[C\u{1B}OC\u{1B}[C\u{1B}[C\u{1B}[C\u{1B}[C")
        #expect(terminal.shows { $0.contains("0:3") }, "\(terminal.line)")
        for _ in 0..<10 { terminal.type("\u{1B}[D") }
        #expect(terminal.shows { $0.contains("0:0") }, "\(terminal.line)")
        terminal.type("\u{1B}[B")
        #expect(terminal.shows("volume 95 %"))
        terminal.type("\u{1B}[A")
        #expect(terminal.shows("volume 100 %"))
        terminal.type("r")
        #expect(terminal.shows("repeat all"))
        // Other keys do nothing.
        terminal.type("x\u{1B}[5~é\u{7F}\t")
        terminal.type("q")
        #expect(terminal.wait() == .code(0))
        #expect(!terminal.isRaw)
        // The status line is erased before the shell prints its prompt.
        #expect(terminal.text.hasSuffix("\r\u{1B}[K"))
        #expect(try eventually { try stage.session("Tune") == nil })
    }

    @Test(arguments: [40, 60, 80, 120, 200] as [UInt16], [false, true])
    func line_isShorterThanTheTerminal_andUsesOnlyItsCharacters(columns: UInt16, isPlain: Bool) throws {
        let terminal = try player(columns: columns, isPlain ? ["NO_COLOR": "1", "LC_ALL": "C"] : [:])
        #expect(terminal.shows { $0.contains(/0:0[1-9]/) }, "\(terminal.line)")
        terminal.type("q")
        #expect(terminal.wait() == .code(0))
        // Without its control sequences, each status line is narrower than the terminal.
        let drawn = terminal.text.components(separatedBy: "\r\n").last?.split(separator: "\r") ?? []
        let widths = drawn.map { $0.replacing(/\u{1B}\[[0-9;]*[A-Za-z]/, with: "").count }
        #expect(widths.count > 5 && widths.allSatisfy { $0 < Int(columns) }, "\(widths)")
        #expect(terminal.text.contains("\u{1B}[32m") != isPlain)
        if isPlain { #expect(terminal.text.utf8.allSatisfy { $0 < 0x80 }, "\(terminal.line)") }
    }

    /// 0 is the key Ctrl-C. SIGSEGV and SIGTRAP are crashes.
    @Test(arguments: [(0, 130), (SIGTERM, 143), (SIGHUP, 129), (SIGSEGV, nil), (SIGTRAP, nil)] as [(Int32, Int32?)])
    func playerEndsBySignal_terminalIsRestored(signal: Int32, code: Int32?) throws {
        let terminal = try player()
        if signal == 0 { terminal.type("\u{3}") } else { terminal.signal(signal) }
        let exit = try #require(terminal.wait())
        if let code { #expect(exit == .code(code)) } else { #expect(exit != .code(0)) }
        #expect(!terminal.isRaw)
        #expect(try eventually { try stage.session("Tune") == nil })
    }

    @Test func suspendedPlayer_isSilentAndRestoresTheTerminal_andContinuesAfterwards() throws {
        let terminal = try player()
        terminal.type("\u{1A}")
        #expect(eventually { !terminal.isRaw })
        #expect(try eventually { try stage.session("Tune")?["State"]?.stringValue == "inactive" })
        terminal.signal(SIGCONT)
        #expect(eventually { terminal.isRaw })
        #expect(terminal.shows("playing"))
        #expect(try eventually { try stage.session("Tune")?["State"]?.stringValue == "active" })
        terminal.type("q")
        #expect(terminal.wait() == .code(0))
    }

    @Test func recording_isPausedByKeyAndEndedWithQ() throws {
        let path = stage.daemon.bus.folder.path + "/take.wav"
        let terminal = try terminal(["record", path])
        #expect(terminal.shows { $0.contains("recording") && $0.contains("▯") }, "\(terminal.text)")
        #expect(terminal.isRaw)
        terminal.type(" ")
        #expect(terminal.shows("paused"))
        terminal.type(" ")
        #expect(terminal.shows("recording"))
        terminal.type("q")
        #expect(terminal.wait() == .code(0))
        #expect(!terminal.isRaw)
        #expect(terminal.text.contains("take.wav  "))
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(size ?? 0 > 44)
    }
}
