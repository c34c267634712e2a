import Foundation
import Scenario
import TestSupport
import Testing

/// Runs every scenario in Examples and in the documentation. All their expectations must be met.
@Suite struct ExampleTests {
    static let files: [URL] = {
        let folder = repository.appendingPathComponent("Examples/Scenarios")
        let found = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return found.filter { $0.pathExtension == "scenario" }.sorted { $0.path < $1.path }
    }()

    @Test(arguments: files) func example_meetsItsExpectations(file: URL) throws {
        var run = Run(try Scenario(bytes: Array(Data(contentsOf: file)), file: file.lastPathComponent))
        run.perform()
        #expect(run.failures == [])
    }

    @Test func examples_exist() {
        #expect(Self.files.count >= 12)
    }

    @Test func documentation_meetsItsExpectations() throws {
        let blocks = PageBlock.all.filter { $0.tag == "scenario" }
        #expect(blocks.count >= 8)
        for block in blocks {
            var run = Run(try Scenario(block.text, file: "\(block)"))
            run.perform()
            #expect(run.failures == [], "\(block)")
        }
    }
}
