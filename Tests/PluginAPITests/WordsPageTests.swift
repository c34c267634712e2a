import Testing

@testable import PluginAPI

/// The words in docs/rules.md and in the comments of data/dbus are those of the sources.
@Suite struct WordsPageTests {
    /// The rows of the table of docs/rules.md whose first heading this is.
    private func rows(_ heading: String) throws -> [[String]] {
        let lines = try Repository.text("docs/rules.md").split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix("| \(heading) |") })
        return lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast().map(trimmed)
        }
    }

    private func trimmed(_ cell: Substring) -> String {
        var cell = cell
        while cell.first == " " { cell.removeFirst() }
        while cell.last == " " { cell.removeLast() }
        return String(cell)
    }

    private func code(_ words: [String]) -> String { words.map { "`\($0)`" }.joined(separator: ", ") }

    private func code(_ categories: Set<PluginAPI.Category>) -> String {
        let all = PluginAPI.Category.allCases
        return categories.count == all.count ? "all" : code(all.filter(categories.contains).map(\.rawValue))
    }

    @Test func categories_areThoseOfTheSources() throws {
        let mixing = Options.table.first { $0.option == .mixWithOthers }?.legalCategories ?? []
        let expected = PluginAPI.Category.allCases.map { category in
            [
                "`\(category.rawValue)`", category.hasInput ? "yes" : "no", category.hasOutput ? "yes" : "no",
                category == .ambient ? "always" : mixing.contains(category) ? "with an option" : "never",
            ]
        }
        #expect(try rows("category").map { [$0[0]] + $0[2...] } == expected)
    }

    @Test func modes_areThoseOfTheSources() throws {
        let expected = Mode.allCases.map { mode in
            ["`\(mode.rawValue)`", code(mode.legalCategories), code(mode.impliedOptions.names)]
        }
        #expect(try rows("mode").map { [$0[0], $0[1], $0[3]] } == expected)
    }

    @Test func options_areThoseOfTheSources() throws {
        let expected = Options.table.map { entry in
            ["`\(entry.name)`", code(entry.legalCategories), code(entry.implies.names)]
        }
        #expect(try rows("option").map { [$0[0], $0[1], $0[3]] } == expected)
    }

    @Test func classesReasonsAndErrors_areThoseOfTheSources() throws {
        #expect(try rows("class").map { $0[0] } == SessionClass.allCases.map { "`\($0.rawValue)`" })
        let reasons = InterruptionReason.allCases.map { "`\($0.rawValue)`" }
        #expect(try rows("reason of an interruption").map { $0[0] } == reasons)
        let errors = SessionError.Code.allCases.map { error in
            ["`\(error.rawValue)`", error.platformCode.isEmpty ? "" : "`\(error.platformCode)`"]
        }
        #expect(try rows("error").map { Array($0[..<2]) } == errors)
    }

    @Test func interfaces_listTheSameWords() throws {
        func text(_ name: String) throws -> String {
            let text = try Repository.text("data/dbus/org.sessiond1.\(name).xml")
            return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
        let manager = try text("Manager")
        for words in [
            PluginAPI.Category.allCases.map(\.rawValue), Mode.allCases.map(\.rawValue), Options.table.map(\.name),
            SessionClass.allCases.map(\.rawValue), SessionError.Code.allCases.map(\.rawValue),
        ] {
            #expect(manager.contains(": \(words.joined(separator: ", "))."))
        }
        let reasons = InterruptionReason.allCases.map(\.rawValue)
        #expect(try text("Session").contains("Reasons: \(reasons.joined(separator: ", "))."))
    }
}
