import Foundation

/// A fenced code block in README or in a page of docs.
public struct PageBlock: Sendable, CustomStringConvertible {
    /// The page's path in the repository.
    public let page: String
    /// The number of the block's first line of code.
    public let line: Int
    /// The text after the fence: a language, and sometimes a mark. Empty for pictures made of text.
    public let tag: String
    public let text: String

    public var description: String { "\(page):\(line)" }

    /// Every block in README, docs and the design decisions.
    public static let all: [PageBlock] = pages.flatMap { page in
        blocks(of: page, (try? String(contentsOfFile: repository.path + "/" + page, encoding: .utf8)) ?? "")
    }

    private static var pages: [String] {
        func files(in folder: String) -> [String] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: repository.path + "/" + folder)) ?? []
            return names.filter { $0.hasSuffix(".md") }.sorted().map { folder + "/" + $0 }
        }
        return ["README.md"] + files(in: "docs") + files(in: "docs/adr")
    }

    private static func blocks(of page: String, _ text: String) -> [PageBlock] {
        var found: [PageBlock] = []
        var open: (line: Int, tag: String, indent: Int, lines: [Substring])?
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let indent = line.prefix { $0 == " " }.count
            let code = line.dropFirst(indent)
            if let block = open {
                if code == "```" {
                    found.append(
                        PageBlock(
                            page: page, line: block.line, tag: block.tag, text: block.lines.joined(separator: "\n")))
                    open = nil
                } else {
                    open?.lines.append(line.dropFirst(min(indent, block.indent)))
                }
            } else if code.hasPrefix("```") {
                open = (number + 2, String(code.dropFirst(3)), indent, [])
            }
        }
        return found
    }
}
