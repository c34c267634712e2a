import DBus
import Foundation
import TestSupport
import Testing

/// `sessionctl status --watch` on a terminal: it writes only changed lines, at their positions.
@Suite(.serialized) struct StatusWatchTests {
    private let stage: SessionctlStage
    private let opening = "\u{1B}[?1049h\u{1B}[?25l"

    init() throws { stage = try SessionctlStage() }

    private func watch(columns: UInt16 = 80, _ more: [String: String] = [:]) throws -> PseudoTerminal {
        let terminal = try PseudoTerminal(
            try builtProduct(named: "sessionctl"), ["status", "--watch"],
            environment: stage.environment.merging(["NO_COLOR": "1"]) { $1 }.merging(more) { $1 }, columns: columns)
        guard eventually({ terminal.text.contains("No sessions.\u{1B}[K") }) else {
            throw SupportError("no status: \(terminal.text)")
        }
        return terminal
    }

    /// The text of each row, according to the cursor movements in `bytes`; nil if they contain other control sequences.
    private func rows(_ bytes: Substring) -> [Int: String]? {
        var rows: [Int: String] = [:]
        for part in bytes.split(separator: "\u{1B}[") {
            if let found = part.wholeMatch(of: /(\d+);(\d+)H([^\u{1B}]*)/), let row = Int(found.output.1) {
                if found.output.2 == "1" { rows[row] = String(found.output.3) }
            } else if !["?2026h", "?2026l", "K", "J", "?25h", "?1049l"].contains(part) {
                return nil
            }
        }
        return rows
    }

    @Test func screen_isNeitherClearedNorScrolled() throws {
        let terminal = try watch()
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(eventually { terminal.text.contains("Music") })
        client.deactivate(music)
        #expect(client.call(music, "Close") == nil)
        #expect(eventually { terminal.text.components(separatedBy: "No sessions.").count == 3 })
        terminal.signal(SIGINT)
        #expect(terminal.wait() == .code(130))
        let text = terminal.text
        #expect(text.hasPrefix(opening))
        #expect(!text.contains("\u{1B}[2J") && !text.contains("\n") && !text.contains("\r"))
        // The previous screen is restored.
        #expect(text.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
        #expect(rows(text.dropFirst(opening.count)) != nil, "\(text.debugDescription)")
    }

    @Test func change_rewritesItsLinesAndNoOthers() throws {
        let terminal = try watch()
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        #expect(eventually { terminal.text.contains("Music") })
        var before = terminal.text.count
        try stage.daemon.manager("SetForeground", [.objectPath(music), .bool(false)])
        #expect(eventually { terminal.text.dropFirst(before).contains("in the background\u{1B}[K") })
        let changed = try #require(rows(terminal.text.dropFirst(before)))
        #expect(changed.count == 1 && changed.values.first?.hasPrefix("inactive") == true, "\(changed)")
        // An event that does not change the screen.
        before = terminal.text.count
        _ = client.call("/org/sessiond1/session/9", "Close")
        client.deactivate(music)
        terminal.signal(SIGINT)
        #expect(terminal.wait() == .code(130))
        let others = try #require(rows(terminal.text.dropFirst(before)))
        #expect(others.values.allSatisfy { $0.hasPrefix("inactive") }, "\(others)")
    }

    @Test func nothingHappens_nothingIsWritten() throws {
        let terminal = try watch()
        let before = terminal.text
        // Longer than the interval of the ages.
        #expect(!eventually(timeout: 2.5) { terminal.text != before })
    }

    @Test(arguments: [40, 60, 80, 120, 200] as [UInt16]) func line_isShorterThanTheTerminal(columns: UInt16) throws {
        let terminal = try watch(columns: columns)
        let client = try stage.daemon.client()
        client.activate(try client.session("A timer with a name that is longer than narrow terminals are"))
        client.activate(try client.session("Phone", category: "play-and-record", class: "call"))
        #expect(eventually { terminal.text.contains("interrupted") })
        let shown = try #require(rows(terminal.text.dropFirst(opening.count)))
        #expect(shown.values.allSatisfy { $0.count < Int(columns) }, "\(shown)")
    }

    @Test func terminalWithoutUTF8_getsASCII_andColoursOnlyWhereTheyAreWanted() throws {
        let plain = try watch(["LC_ALL": "C"])
        let client = try stage.daemon.client()
        _ = try client.session("Grüße → 音楽")
        #expect(eventually { plain.text.contains("Gr??e > ????") })
        #expect(plain.text.utf8.allSatisfy { $0 < 0x80 } && !plain.text.contains("\u{1B}[2m"))
        let coloured = try PseudoTerminal(
            try builtProduct(named: "sessionctl"), ["status", "--watch"], environment: stage.environment)
        #expect(eventually { coloured.text.contains("\u{1B}[2m") })
    }

    @Test func serviceStopsAndReturns_isShownOnTheSameScreen() throws {
        let terminal = try watch(columns: 40)
        stage.daemon.daemon.kill()
        #expect(
            eventually {
                terminal.text.contains("[1;1Hsessiond is not running; waiting for it\u{1B}[K\u{1B}[1;40H\u{1B}[J")
            })
        try stage.daemon.restart()
        #expect(eventually { terminal.text.components(separatedBy: "No sessions.").count == 3 })
        #expect(!terminal.text.contains("\n"))
    }
}
