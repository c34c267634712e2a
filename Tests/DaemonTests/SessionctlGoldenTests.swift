import Foundation
import TestSupport
import Testing

/// Compares the complete output of every reading command with `Tests/Golden/sessionctl.txt`, on terminals of every kind and
/// with a pipe.
@Suite(.serialized) struct SessionctlGoldenTests {
    private let stage: SessionctlStage
    private let environment: [String: String]
    private let client: Client

    /// A call has interrupted music, and the daemon has refused a timer.
    init() throws {
        stage = try SessionctlStage()
        let data = try stage.daemon.bus.folder.folder("data")
        environment = stage.environment.merging([
            "XDG_DATA_DIRS": data, "XDG_CONFIG_HOME": data, "XDG_RUNTIME_DIR": data,
        ]) { $1 }
        client = try stage.daemon.client()
        let music = try client.session("Grüße → 音楽")
        let phone = try client.session("Phone", category: "play-and-record", class: "call")
        let timer = try client.session("A timer with a name that is longer than narrow terminals are")
        client.activate(music)
        client.activate(phone)
        client.activate(timer)
    }

    private static let scenario = repository.appendingPathComponent(
        "Examples/Scenarios/navigation-over-podcast.scenario"
    )
    .path

    private static let reading = [
        ["status"], ["list"], ["show", "Phone"], ["explain", "Gr"], ["history"], ["history", "--before", "3"],
        ["route"], ["plugins"], ["doctor"], ["simulate", scenario],
    ]
    /// Commands whose columns are equally wide in each run.
    private static let steady = [
        [], ["show", "Phone"], ["explain", "Gr"], ["history"], ["route"], ["plugins"], ["simulate", scenario],
        ["--help"],
    ]

    private func masked(_ text: String) -> String { GoldenFile.masked(text, of: stage.daemon) }

    private func piped(_ arguments: [String], _ more: [String: String] = [:]) throws -> String {
        let child = try Child(
            try builtProduct(named: "sessionctl"), arguments, environment: environment.merging(more) { $1 })
        let outcome = try SessionctlStage.outcome(of: child, arguments, 60)
        return outcome.text + (outcome.errors.isEmpty ? "" : "\n! " + outcome.complaint)
    }

    private func shown(_ arguments: [String], columns: UInt16, _ more: [String: String] = [:]) throws -> String {
        let terminal = try PseudoTerminal(
            try builtProduct(named: "sessionctl"), arguments, environment: environment.merging(more) { $1 },
            columns: columns)
        #expect(terminal.wait() != nil)
        return terminal.text.replacingOccurrences(of: "\r\n", with: "\n")
    }

    @Test func everyReadingCommand_printsTheExpectedText() throws {
        var sections: [String] = []
        for command in Self.reading {
            let words = masked(command.joined(separator: " "))
            sections.append("$ sessionctl \(words)\n" + masked(try piped(command)))
            sections.append("$ sessionctl \(words) --json\n" + masked(try piped(command + ["--json"])))
        }
        try GoldenFile(name: "sessionctl.txt").expect(sections)
    }

    /// Tests where columns are cut and lines are wrapped.
    @Test func steadyOutput_matchesTheGoldenFile_onNarrowAndWideTerminals() throws {
        var sections: [String] = []
        for columns: UInt16 in [40, 60, 80, 120, 200] {
            for command in Self.steady {
                let words = masked(command.joined(separator: " "))
                let text = try shown(command, columns: columns, ["NO_COLOR": "1"]).dropLast()
                sections.append("\(columns) columns $ sessionctl \(words)\n" + masked(String(text)))
            }
        }
        try GoldenFile(name: "widths.txt").expect(sections)
    }

    /// No line is wider than the terminal.
    @Test(arguments: [40, 60, 80, 120, 200] as [UInt16]) func terminalOfAnyWidth_hasNoLineWiderThanItself(
        columns: UInt16
    ) throws {
        for command in Self.reading {
            let lines = try shown(command, columns: columns, ["NO_COLOR": "1"]).components(separatedBy: "\n")
            for line in lines {
                #expect(Self.columns(of: line) <= Int(columns), "\(command) at \(columns): \(line)")
            }
            #expect(lines.count > 1, "\(command)")
        }
    }

    /// The width of a line. Only the wide characters of the names above take two columns.
    private static func columns(of line: String) -> Int {
        line.reduce(0) { $0 + ("音楽".contains($1) ? 2 : 1) }
    }

    @Test func colours_areUsedOnlyOnTerminalsThatWantThem() throws {
        // `route` prints nothing in colour.
        for command in Self.reading where command != ["route"] {
            // Wide enough that no name is cut, with any width of the ages.
            let coloured = try shown(command, columns: 200)
            #expect(coloured.contains("\u{1B}["), "\(command)")
            let plain = try shown(command, columns: 200, ["NO_COLOR": "1"])
            #expect(!plain.contains("\u{1B}"), "\(command)")
            let bare = coloured.replacingOccurrences(
                of: "\u{1B}\\[[0-9]*m", with: "", options: .regularExpression)
            func words(_ text: String) -> [Substring] { masked(text).split { $0 == " " || $0 == "\n" } }
            #expect(words(bare) == words(plain), "\(command): the text must be the same without colours")
            #expect(!(try shown(command, columns: 100, ["TERM": "dumb"])).contains("\u{1B}"), "\(command)")
            #expect(!(try piped(command)).contains("\u{1B}"), "\(command)")
            #expect(try piped(command, ["CLICOLOR_FORCE": "1"]).contains("\u{1B}["), "\(command)")
        }
    }

    @Test func terminalWithoutUTF8_getsASCIIOfTheSameWidth() throws {
        for command in Self.reading {
            func usual() throws -> [Int] { widths(try shown(command, columns: 100, ["NO_COLOR": "1"])) }
            func widths(_ text: String) -> [Int] { masked(text).components(separatedBy: "\n").map(Self.columns) }
            var plain = ""
            var before: [Int] = []
            // An age may become wider meanwhile, so the test compares outputs between which none did.
            repeat {
                before = try usual()
                plain = try shown(command, columns: 100, ["NO_COLOR": "1", "LC_ALL": "C"])
            } while try usual() != before
            #expect(plain.utf8.allSatisfy { $0 < 0x80 }, "\(command): \(plain)")
            #expect(before == widths(plain), "\(command)")
            // The JSON stays valid.
            let json = try shown(command + ["--json"], columns: 100, ["LC_ALL": "C"])
            #expect(json.utf8.allSatisfy { $0 < 0x80 })
            let piped = try piped(command + ["--json"])
            #expect(try Self.value(of: json).keys.sorted() == Self.value(of: piped).keys.sorted(), "\(command)")
        }
        let list = try SessionctlStage.object(try shown(["list", "--json"], columns: 100, ["LC_ALL": "C"]))
        let names = (list["Sessions"] as? [[String: Any]])?.compactMap { $0["Name"] as? String }
        #expect(names?.first == "Grüße → 音楽")
    }

    private static func value(of line: String) throws -> [String: Any] {
        try SessionctlStage.object(line.trimmingCharacters(in: .newlines))
    }
}
