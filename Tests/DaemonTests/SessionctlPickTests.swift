import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// `sessionctl library pick` on a terminal.
@Suite(.serialized) struct SessionctlPickTests {
    private final class Stage {
        let library: SessionctlMusicStage

        /// - Parameter count: songs beside the others.
        init(_ count: Int = 0) throws {
            library = try SessionctlMusicStage()
            try library.song("4.mp3", ["TIT2": "News", "TCON": "Podcast", "TALB": "Radio"])
            for number in 0..<count { try library.song("x\(number).mp3", ["TIT2": "Track \(1_000 + number)"]) }
            let added = try library.run("add", library.music)
            guard added.code == 0 else { throw SupportError("no library: \(added)") }
        }

        func uri(_ name: String) -> String { library.uri(name) }

        /// With the standard output in a file, as in `$(sessionctl library pick)`.
        func pick(_ arguments: [String] = []) throws -> PseudoTerminal {
            let program = try builtProduct(named: "sessionctl")
            return try PseudoTerminal(
                "/bin/sh",
                ["-c", "exec \"$@\" >'\(library.home.path)/picked'", "sh", program, "library", "pick"] + arguments,
                environment: library.environment)
        }

        var picked: [String] {
            let text = (try? String(contentsOfFile: library.home.path + "/picked", encoding: .utf8)) ?? ""
            return text.split(separator: "\n").map(String.init)
        }
    }

    /// The lines of the latest picture, without colours.
    private func lines(_ terminal: PseudoTerminal) -> [String] {
        let frame = terminal.text.components(separatedBy: "\u{1B}[H").last ?? ""
        // The terminal adds a return to each new line.
        return frame.replacingOccurrences(of: "\r", with: "").components(separatedBy: "\n").map {
            $0.replacing(/\u{1B}\[[?0-9;]*[A-Za-z]/, with: "")
        }
    }

    private func shows(_ terminal: PseudoTerminal, _ test: ([String]) -> Bool) -> Bool {
        eventually(timeout: 20) {
            let lines = lines(terminal)
            return lines.count == 24 && test(lines)
        }
    }

    /// The lines of the list, the current one with its mark.
    private func rows(_ terminal: PseudoTerminal) -> [String] {
        lines(terminal).dropFirst(2).dropLast().map { line in
            line.split(separator: " ", omittingEmptySubsequences: true).prefix(3).joined(separator: " ")
        }.filter { !$0.isEmpty }
    }

    @Test func item_isFilteredMovedToAndPicked() throws {
        let stage = try Stage()
        let terminal = try stage.pick(["--prompt", "Play what?"])
        #expect(shows(terminal) { $0[0] == "Play what?" && $0[1].hasSuffix(" 4") }, "\(terminal.text)")
        #expect(terminal.isRaw)
        #expect(rows(terminal).map { $0.split(separator: " ").prefix(2).joined(separator: " ") }[0] == "▸ Hunter")
        terminal.type("\u{1B}[B")
        #expect(shows(terminal) { $0[3].hasPrefix("▸  Jóga  Björk – Homogenic") }, "\(lines(terminal))")
        terminal.type("bjö")
        #expect(shows(terminal) { $0[1].hasPrefix("> bjö") && $0[1].hasSuffix(" 2") }, "\(lines(terminal))")
        // A filter begins at its first item.
        terminal.type("\u{1B}[B\r")
        #expect(terminal.wait() == .code(0))
        #expect(stage.picked == [stage.uri("1.mp3")])
        #expect(!terminal.isRaw)
        // The screen is as it was before.
        #expect(terminal.text.contains("\u{1B}[?1049h") && terminal.text.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
    }

    @Test func several_areMarkedInAnyOrderAndPrintedAsJSON() throws {
        let stage = try Stage()
        let terminal = try stage.pick(["--several", "--json", "--media-type", "music"])
        #expect(shows(terminal) { $0[1].hasSuffix(" 3") }, "\(terminal.text)")
        terminal.type("thunder")
        #expect(shows(terminal) { $0[1].hasSuffix(" 1") })
        terminal.type("\t")
        #expect(shows(terminal) { $0[1].hasSuffix("1, 1 marked") }, "\(lines(terminal))")
        // Control-U empties the filter, and marks stay.
        terminal.type("\u{15}")
        #expect(shows(terminal) { $0[1].hasSuffix("3, 1 marked") })
        terminal.type("\t")
        #expect(shows(terminal) { $0[1].hasSuffix("3, 2 marked") })
        terminal.type("\t\u{1B}[A\t")
        #expect(shows(terminal) { $0[1].hasSuffix("3, 2 marked") && $0[4].hasPrefix("▸* Thunderstruck") })
        terminal.type("\r")
        #expect(terminal.wait() == .code(0))
        let object = try SessionctlStage.object(stage.picked.joined())
        let items = object["Items"] as? [[String: Any]] ?? []
        #expect(items.compactMap { $0["title"] as? String } == ["Thunderstruck", "Hunter"])
        #expect(object["Schema"] as? String == "items/1" && object["Count"] as? Int == 2)
    }

    @Test func longList_isReadWhileItIsScrolled() throws {
        let stage = try Stage(500)
        let terminal = try stage.pick()
        #expect(shows(terminal) { $0[1].hasSuffix(" 504") })
        terminal.type("\u{1B}[F")
        #expect(shows(terminal) { $0.contains { $0.hasPrefix("▸  Track 1499") } }, "\(lines(terminal))")
        terminal.type("\u{1B}[5~")
        #expect(shows(terminal) { $0.contains { $0.hasPrefix("▸  Track 1478") } }, "\(lines(terminal))")
        terminal.type("\u{1B}[H\u{1B}[6~")
        #expect(shows(terminal) { $0.contains { $0.hasPrefix("▸  Track 1017") } }, "\(lines(terminal))")
        // No line is wider than the terminal, nor are there more than it has.
        #expect(lines(terminal).allSatisfy { $0.count < 100 } && lines(terminal).count == 24)
        terminal.type("\u{1B}")
        #expect(terminal.wait() == .code(1))
    }

    /// 0 is the key Ctrl-C.
    @Test(
        arguments: [
            ("\u{1B}", 0, 1), ("\u{3}", 0, 130), ("", SIGTERM, 143), ("", SIGHUP, 129),
        ] as [(String, Int32, Int32)])
    func cancelled_printsNothingAndRestoresTheTerminal(key: String, signal: Int32, code: Int32) throws {
        let stage = try Stage()
        let terminal = try stage.pick(["--several"])
        #expect(shows(terminal) { $0[1].hasSuffix(" 4") })
        terminal.type("\t")
        #expect(shows(terminal) { $0[1].hasSuffix("1 marked") })
        if signal == 0 { terminal.type(key) } else { terminal.signal(signal) }
        #expect(terminal.wait() == .code(code))
        #expect(stage.picked == [] && !terminal.isRaw)
        #expect(terminal.text.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
    }

    @Test func libraryGoesAway_pickIsCancelledAtOnce() throws {
        let stage = try Stage()
        let terminal = try stage.pick()
        #expect(shows(terminal) { $0[1].hasSuffix(" 4") })
        let names = try stage.library.daemon.observer.askBusAndWait("ListNames", timeout: 5).first?.stringsValue ?? []
        let name = try #require(names.first { $0.hasPrefix(PluginKind.library.busName) })
        let process = try stage.library.daemon.observer.credentialsAndWait(of: name, timeout: 5).processID ?? 0
        kill(Int32(process), SIGKILL)
        #expect(terminal.wait() == .code(1))
        #expect(terminal.text.hasSuffix("sessionctl: cancelled: the music library has ended\r\n"))
        #expect(stage.picked == [] && !terminal.isRaw)
    }

    @Test func suspended_givesTheTerminalBackAndGoesOn() throws {
        let stage = try Stage()
        let terminal = try stage.pick()
        #expect(shows(terminal) { $0[1].hasSuffix(" 4") })
        terminal.type("\u{1A}")
        #expect(eventually { !terminal.isRaw })
        terminal.signal(SIGCONT)
        #expect(eventually { terminal.isRaw })
        // A song that comes meanwhile is in the list.
        try stage.library.song("9.mp3", ["TIT2": "Aardvark"])
        #expect(shows(terminal) { $0[1].hasSuffix(" 5") && $0[2].contains("Aardvark") }, "\(lines(terminal))")
        terminal.type("aard\r")
        #expect(terminal.wait() == .code(0))
        #expect(stage.picked == [stage.uri("9.mp3")])
    }

    @Test func withoutATerminal_theErrorSaysWhatToDo() throws {
        let stage = try Stage()
        let program = try builtProduct(named: "sessionctl")
        // A session without a terminal.
        let child = try Child("setsid", ["-w", program, "library", "pick"], environment: stage.library.environment)
        #expect(child.wait() == .code(1))
        #expect(child.errors.first?.contains("needs a terminal") == true, "\(child.errors)")
        let dumb = try PseudoTerminal(
            program, ["library", "pick"], environment: stage.library.environment.merging(["TERM": "dumb"]) { $1 })
        #expect(dumb.wait() == .code(1))
        let wrong = try Child(program, ["library", "pick", "--sideways"], environment: stage.library.environment)
        #expect(wrong.wait() == .code(64))
    }
}
