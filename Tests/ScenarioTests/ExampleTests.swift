import Foundation
import Scenario
import Testing

/// Every example in the repository and in its documentation does what it says.
@Suite struct ExampleTests {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        .standardized

    static let files: [URL] = {
        let folder = root.appendingPathComponent("Examples/Scenarios")
        let found = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return found.filter { $0.pathExtension == "scenario" }.sorted { $0.path < $1.path }
    }()

    /// The fenced blocks of a page that are scenarios, each with the line it starts in.
    static func blocks(of page: String) throws -> [(line: Int, text: String)] {
        let text = try String(contentsOf: root.appendingPathComponent(page), encoding: .utf8)
        var blocks: [(line: Int, text: String)] = []
        var open: (line: Int, lines: [String])?
        for (number, line) in text.components(separatedBy: "\n").enumerated() {
            if let block = open {
                if line == "```" {
                    blocks.append((block.line, block.lines.joined(separator: "\n")))
                    open = nil
                } else {
                    open?.lines.append(line)
                }
            } else if line == "```scenario" {
                open = (number + 2, [])
            }
        }
        return blocks
    }

    @Test(arguments: files) func example_meetsItsExpectations(file: URL) throws {
        var run = Run(try Scenario(bytes: Array(Data(contentsOf: file)), file: file.lastPathComponent))
        run.perform()
        #expect(run.failures == [])
    }

    @Test func examples_areThere() {
        #expect(Self.files.count >= 12)
    }

    @Test func documentation_meetsItsExpectations() throws {
        let blocks = try Self.blocks(of: "docs/scenarios.md")
        #expect(blocks.count >= 5)
        for block in blocks {
            var run = Run(try Scenario(block.text, file: "docs/scenarios.md+\(block.line)"))
            run.perform()
            #expect(run.failures == [], "docs/scenarios.md, the block in line \(block.line)")
        }
    }
}
