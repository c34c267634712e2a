import Foundation
import TestSupport
import Testing

@testable import ReferenceModel

/// The table in docs/rules.md must agree with the table that `MatrixTests` compares the rules with.
@Suite struct RulesPageTests {
    private static func title(_ row: SpecMatrix.Row) -> String {
        switch row {
        case .mixing: "mixes: `ambient`, or `mix-with-others`"
        case .ducking: "`duck-others`"
        case .interruptingSpoken: "`interrupt-spoken-audio-and-mix-with-others`"
        case .navigation: "both of these options: a navigation prompt"
        case .playback: "`playback`"
        case .soloAmbientOrProcessing: "`solo-ambient`, `audio-processing`"
        case .recording: "`record`, `play-and-record`, `multi-route`"
        case .alert: "class `alert`"
        case .call: "class `call`"
        }
    }

    private static func title(_ column: SpecMatrix.Column) -> String {
        switch column {
        case .mixable: "one that mixes"
        case .mixableSpoken: "one that mixes, spoken"
        case .nonMixable: "one that does not mix"
        case .nonMixableSpoken: "one that does not mix, spoken"
        case .call: "a call"
        case .alert: "an alert"
        }
    }

    /// The words of a cell, with the page's note ¹ if only a session with a microphone is refused.
    private static func words(_ row: SpecMatrix.Row, _ column: SpecMatrix.Column) -> String {
        let cell = SpecMatrix.cell(row, hasInput: false, over: column)
        let differs = SpecMatrix.cell(row, hasInput: true, over: column) != cell
        let words =
            switch cell {
            case .mix: "both play"
            case .duck: "ducks it"
            case .interrupt: "interrupts it"
            case .refused: "is refused"
            }
        return differs ? words + "¹" : words
    }

    @Test func table_agreesWithTheRules() throws {
        func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }
        let columns = SpecMatrix.Column.allCases
        var table = [line(["the new session"] + columns.map(Self.title))]
        table.append("|" + String(repeating: "---|", count: columns.count + 1))
        table += SpecMatrix.Row.allCases.map { row in
            line([Self.title(row)] + columns.map { Self.words(row, $0) })
        }
        let page = try String(contentsOfFile: repository.path + "/docs/rules.md", encoding: .utf8)
        #expect(page.contains(table.joined(separator: "\n") + "\n"), "it must be:\n\(table.joined(separator: "\n"))")
    }
}
