import PluginAPI
import Testing

@Suite struct KeyFileTests {
    @Test func ordinaryFile_isReadInOrderWithPositions() throws {
        let file = try KeyFile(
            "# a comment\n\n[first]\nkey = a value \n  other\t=\n[Second Section]\nName[pt_BR]=ü=x;#\n", file: "f")
        #expect(file.sections.map(\.name) == ["first", "Second Section"])
        let first = try #require(file["first"])
        #expect(first.position == KeyFile.Position(line: 3, column: 1))
        #expect(first.entries.map(\.rawValue) == ["a value", ""])
        #expect(first["key"]?.valuePosition == KeyFile.Position(line: 4, column: 7))
        #expect(first["other"]?.position == KeyFile.Position(line: 5, column: 3))
        #expect(file["Second Section"]?["Name[pt_BR]"]?.rawValue == "ü=x;#")
        #expect(file["absent"] == nil)
    }

    @Test func emptyFile_hasNoSections() throws {
        for text in ["", "\n", "# only\n#\n", "\u{FEFF}"] {
            #expect(try KeyFile(text, file: "f").sections.isEmpty)
        }
    }

    @Test func carriageReturnsAndByteOrderMark_changeNothing() throws {
        let plain = try KeyFile("[s]\na = 1\nb = 2", file: "f")
        #expect(try KeyFile("\u{FEFF}[s]\r\na = 1\r\nb = 2\r\n", file: "f") == plain)
    }

    @Test(arguments: [
        Mistake("key = 1", 1, 1, "before the first"), Mistake("[s]\nword", 2, 1, "add '='"),
        Mistake("[s]\n = 1", 2, 2, "no key"),
        Mistake("[s", 1, 3, "not closed"), Mistake("[]", 1, 2, "no name"), Mistake("[a[b]", 1, 3, "brackets"),
        Mistake("[ä]", 1, 2, "ASCII"),
        Mistake("[s] x", 1, 5, "separate line"), Mistake("[s]\n[t]\n[s]", 3, 1, "line 1"),
        Mistake("[s]\na=1\n a=2", 3, 2, "line 2"),
        Mistake("[s]\na b=1", 2, 2, "illegal character"), Mistake("[s]\nname[d e]=1", 2, 7, "locale"),
        Mistake("[s]\n[a]=1", 2, 4, "separate line"),
        Mistake("[s]\na = x\u{0}y", 2, 6, "U+0"), Mistake("[s]\na = x\u{1B}[2J", 2, 6, "U+1B"),
        Mistake("[s]\na=\rb", 2, 3, "U+D"),
        Mistake("[s]\nö\u{0}", 2, 2, "U+0"), Mistake("[s]\na = \u{85}", 2, 5, "U+85"),
    ])
    func mistake_isRefusedAtItsPosition(mistake: Mistake) {
        let error = #expect(throws: KeyFileError.self) { try KeyFile(mistake.text, file: "my file") }
        #expect(error?.position == KeyFile.Position(line: mistake.line, column: mistake.column))
        #expect(error?.message.contains(mistake.hint) == true, "\(String(describing: error))")
        #expect(error?.description.hasPrefix("my file:\(mistake.line):\(mistake.column): ") == true)
    }

    @Test(
        arguments: [
            [0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80],
        ] as [[UInt8]])
    func badUTF8_isRefusedAtItsPosition(bytes: [UInt8]) {
        let error = #expect(throws: KeyFileError.self) {
            try KeyFile(bytes: Array("[s]\nä = ".utf8) + bytes, file: "f")
        }
        #expect(error?.position == KeyFile.Position(line: 2, column: 5))
        #expect(error?.message.contains("UTF-8") == true)
    }

    /// The description escapes control characters, so that logs contain none.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let text: String
        let line: Int
        let column: Int
        let hint: String

        init(_ text: String, _ line: Int, _ column: Int, _ hint: String) {
            self.text = text
            self.line = line
            self.column = column
            self.hint = hint
        }

        var testDescription: String { quoted(text) }
    }

    @Test func sameKeyInAnotherSection_isAnotherKey() throws {
        #expect(try KeyFile("[a]\nk=1\n[b]\nk=2", file: "f").sections.count == 2)
    }

    @Test func overlongLine_isRefused() throws {
        let longest = "k=" + String(repeating: "x", count: KeyFile.maximumLineBytes - 2)
        #expect(try KeyFile("[s]\n" + longest, file: "f")["s"]?["k"]?.rawValue.utf8.count == 8190)
        let error = #expect(throws: KeyFileError.self) { try KeyFile("[s]\n" + longest + "x", file: "f") }
        #expect(error?.position.line == 2)
    }

    @Test func tenMegabytes_areRefusedAtOnce() {
        #expect(throws: KeyFileError.self) { try KeyFile(bytes: Array(repeating: 0x0A, count: 10_000_000), file: "f") }
    }

    /// A quadratic parser would need hours for these.
    @Test(.timeLimit(.minutes(5)))
    func largestFiles_areReadInLinearTime() throws {
        let limit = KeyFile.maximumBytes
        #expect(try KeyFile(bytes: Array(repeating: 0x0A, count: limit), file: "f").sections.isEmpty)
        let keys = "[s]\n" + (0..<80_000).map { "k\($0)=\n" }.joined()
        #expect(try KeyFile(keys, file: "f")["s"]?.entries.count == 80_000)
        let sections = (0..<80_000).map { "[s\($0)]\n" }.joined()
        #expect(try KeyFile(sections, file: "f").sections.count == 80_000)
        let list = "[s]\nk=" + String(repeating: "a ;", count: 2_000)
        #expect(try KeyFile(list, file: "f")["s"]?["k"]?.list().count == 2_000)
    }

    /// Random bytes that resemble a key file. The parser must not trap, must report errors inside the text, and must
    /// give the same result twice.
    @Test func randomBytes_areReadOrRefusedWithAPosition() throws {
        var random = SeededRandom(seed: 1)
        let pieces: [[UInt8]] = [
            "[", "]", "=", "#", ";", "\n", "\r\n", " ", "\t", "\\", "\\s", "[s]\n", "key = ", "ä", "🎵", "\u{FEFF}",
            "-1.5", "on",
        ].map { Array($0.utf8) }
        for _ in 0..<20_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0...30, using: &random) {
                if Int.random(in: 0..<20, using: &random) == 0 {
                    bytes.append(UInt8.random(in: 0...255, using: &random))
                } else {
                    bytes += pieces.randomElement(using: &random) ?? []
                }
            }
            do {
                let file = try KeyFile(bytes: bytes, file: "f")
                #expect(try KeyFile(bytes: bytes, file: "f") == file)
                for entry in file.sections.flatMap(\.entries) { readEveryWay(entry) }
            } catch {
                let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
                #expect((1...lines.count).contains(error.position.line))
                #expect((1...(lines[error.position.line - 1].count + 1)).contains(error.position.column))
            }
        }
    }

    private func readEveryWay(_ entry: KeyFile.Entry) {
        let end = entry.valuePosition.column + entry.rawValue.unicodeScalars.count
        for read in [
            { _ = try entry.text() }, { _ = try entry.list() }, { _ = try entry.real(in: -1...1, unit: "") },
            { _ = try entry.integer(in: -1...1) }, { _ = try entry.isOn() }, { _ = try entry.word(Category.self) },
        ] as [() throws -> Void] {
            do { try read() } catch {
                let position = (error as? KeyFileError)?.position
                #expect(position?.line == entry.valuePosition.line)
                #expect((entry.valuePosition.column...end).contains(position?.column ?? 0))
            }
        }
    }
}

/// SplitMix64: the same sequence for the same seed everywhere.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
