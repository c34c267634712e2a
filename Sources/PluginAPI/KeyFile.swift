/// A parsed key file: `[section]` headers, `key = value` lines and `#` comments, as in desktop files.
///
/// The only parser for settings, plugin manifests and desktop entries. It is strict: it refuses what it does not
/// understand, with file, line and column. Pure, and linear in the size of the text; the caller reads the file.
public struct KeyFile: Sendable, Hashable {
    /// A position: line and column, both counted from 1, the column in Unicode scalars.
    public struct Position: Sendable, Hashable {
        public let line: Int
        public let column: Int

        public init(line: Int, column: Int) {
            self.line = line
            self.column = column
        }
    }

    /// A `[name]` and the keys under it, in the order of the file.
    public struct Section: Sendable, Hashable {
        public let name: String
        /// The position of its `[`.
        public let position: Position
        public internal(set) var entries: [Entry]

        /// The entry of that key, or nil.
        public subscript(key: String) -> Entry? { entries.first { $0.key == key } }
    }

    /// One `key = value`; read it with the typed readers (``real(in:unit:)``, ``isOn()``, …).
    public struct Entry: Sendable, Hashable {
        /// The file it came from, for messages.
        public let file: String
        public let section: String
        public let key: String
        /// The position of the key's first character.
        public let position: Position
        /// The text after `=` without surrounding spaces, escapes not yet resolved.
        public let rawValue: String
        /// The position of the value's first character; after the end of the line if the value is empty.
        public let valuePosition: Position
    }

    /// The path given to the initializer, for messages.
    public let file: String
    /// In the order of the file; names are unique.
    public let sections: [Section]

    /// A larger text is refused at once; no settings file is that large.
    public static let maximumBytes = 1 << 20
    /// A longer line, in bytes, is refused.
    public static let maximumLineBytes = 8192

    /// Parses the text of `file`. Throws at the first mistake.
    public init(_ text: String, file: String) throws(KeyFileError) {
        try self.init(bytes: Array(text.utf8), file: file)
    }

    /// Parses the bytes of `file`: UTF-8, a byte order mark and CRLF line ends allowed. Throws at the first mistake.
    public init(bytes: [UInt8], file: String) throws(KeyFileError) {
        guard bytes.count <= Self.maximumBytes else {
            throw KeyFileError(
                file: file, position: Position(line: 1, column: 1),
                "the file has \(bytes.count) bytes, more than \(Self.maximumBytes); is it the right file?")
        }
        var parser = Parser(file: file)
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var rest = bytes[...]
        if rest.starts(with: mark) { rest = rest.dropFirst(mark.count) }
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
            try parser.take(line: rest[..<end])
            rest = rest[min(end + 1, rest.endIndex)...]
        }
        self.file = file
        sections = parser.sections
    }

    /// The section of that name, or nil.
    public subscript(section: String) -> Section? { sections.first { $0.name == section } }
}

/// Why a key file was refused, and where.
public struct KeyFileError: Error, Sendable, Hashable, CustomStringConvertible {
    public let file: String
    public let position: KeyFile.Position
    /// The error and how to correct it, in one line. Text from the file is quoted and shortened.
    public let message: String

    init(file: String, position: KeyFile.Position, _ message: String) {
        self.file = file
        self.position = position
        self.message = message
    }

    /// `file:line:column: message`, the format that editors understand.
    public var description: String { "\(file):\(position.line):\(position.column): \(message)" }
}

/// The state of one pass over the lines.
private struct Parser {
    let file: String
    var sections: [KeyFile.Section] = []
    private var line = 0
    /// The names so far, so that a duplicate is found without searching the list.
    private var sectionLines: [String: Int] = [:]
    private var keyLines: [String: Int] = [:]

    init(file: String) { self.file = file }

    mutating func take(line bytes: ArraySlice<UInt8>) throws(KeyFileError) {
        line += 1
        guard bytes.count <= KeyFile.maximumLineBytes else {
            throw refusal(1, "the line has \(bytes.count) bytes, more than \(KeyFile.maximumLineBytes); shorten it")
        }
        let scalars = try decoded(bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes)
        guard let start = scalars.firstIndex(where: { !isBlank($0) }), scalars[start] != "#" else { return }
        if scalars[start] == "[" {
            try takeHeader(scalars, from: start)
        } else {
            try takeEntry(scalars, from: start)
        }
    }

    private mutating func takeHeader(_ scalars: [Unicode.Scalar], from start: Int) throws(KeyFileError) {
        guard let close = scalars.firstIndex(of: "]") else {
            throw refusal(scalars.count + 1, "the section's name is not closed; write [name]")
        }
        if let extra = scalars[(close + 1)...].firstIndex(where: { !isBlank($0) }) {
            throw refusal(extra + 1, "text after the section's name; put it on a separate line")
        }
        let characters = scalars[(start + 1)..<close]
        guard !characters.isEmpty else { throw refusal(start + 2, "the section has no name; write [name]") }
        if let illegal = characters.firstIndex(where: { !$0.isASCII || $0 == "[" }) {
            throw refusal(illegal + 1, "a section's name is ASCII without brackets; remove this character")
        }
        let name = string(characters)
        if let first = sectionLines.updateValue(line, forKey: name) {
            throw refusal(start + 1, "section [\(name)] already exists, at line \(first); merge the two")
        }
        keyLines.removeAll()
        let position = KeyFile.Position(line: line, column: start + 1)
        sections.append(KeyFile.Section(name: name, position: position, entries: []))
    }

    private mutating func takeEntry(_ scalars: [Unicode.Scalar], from start: Int) throws(KeyFileError) {
        guard let equals = scalars.firstIndex(of: "=") else {
            throw refusal(start + 1, "neither [section], key = value nor # comment; add '=', or start the line with #")
        }
        let keyEnd = scalars[start..<equals].lastIndex { !isBlank($0) }.map { $0 + 1 } ?? start
        guard keyEnd > start else { throw refusal(start + 1, "no key before '='; write key = value") }
        try checkKey(scalars[start..<keyEnd])
        guard let section = sections.last?.name else {
            throw refusal(start + 1, "a key before the first [section]; put it in a section")
        }
        let key = string(scalars[start..<keyEnd])
        if let first = keyLines.updateValue(line, forKey: key) {
            throw refusal(start + 1, "\(quoted(key)) is already set, at line \(first); keep one of the two")
        }
        let valueStart = scalars[(equals + 1)...].firstIndex { !isBlank($0) } ?? scalars.endIndex
        let valueEnd = scalars[valueStart...].lastIndex { !isBlank($0) }.map { $0 + 1 } ?? valueStart
        sections[sections.count - 1].entries.append(
            KeyFile.Entry(
                file: file, section: section, key: key, position: KeyFile.Position(line: line, column: start + 1),
                rawValue: string(scalars[valueStart..<valueEnd]),
                valuePosition: KeyFile.Position(line: line, column: valueStart + 1)))
    }

    /// Letters, digits, `-`, `_` and `.`, then at most one `[locale]`, as in desktop files.
    private func checkKey(_ key: ArraySlice<Unicode.Scalar>) throws(KeyFileError) {
        var name = key
        if key.last == "]", let open = key.firstIndex(of: "["), open > key.startIndex {
            name = key[..<open]
            let locale = key[(open + 1)..<(key.endIndex - 1)]
            if let illegal = locale.firstIndex(where: { !isKeyCharacter($0) && $0 != "@" }) {
                throw refusal(illegal + 1, "illegal character in the key's locale; write it as in Name[pt_BR]")
            }
        }
        if let illegal = name.firstIndex(where: { !isKeyCharacter($0) }) {
            throw refusal(illegal + 1, "illegal character in the key; use letters, digits, '-', '_' and '.'")
        }
    }

    /// The line as scalars; throws at the first byte that is not UTF-8 and at control characters other than tab.
    private func decoded(_ bytes: ArraySlice<UInt8>) throws(KeyFileError) -> [Unicode.Scalar] {
        var scalars: [Unicode.Scalar] = []
        scalars.reserveCapacity(bytes.count)
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.decode(&iterator) {
            case .scalarValue(let scalar):
                guard scalar == "\t" || scalar.properties.generalCategory != .control else {
                    let code = String(scalar.value, radix: 16, uppercase: true)
                    throw refusal(scalars.count + 1, "control character U+\(code); remove it")
                }
                scalars.append(scalar)
            case .emptyInput: return scalars
            case .error: throw refusal(scalars.count + 1, "not UTF-8; save the file in that encoding")
            }
        }
    }

    private func refusal(_ column: Int, _ message: String) -> KeyFileError {
        KeyFileError(file: file, position: KeyFile.Position(line: line, column: column), message)
    }
}

private func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }

private func isKeyCharacter(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "A"..."Z", "a"..."z", "0"..."9", "-", "_", ".": true
    default: false
    }
}

func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    var view = String.UnicodeScalarView()
    view.append(contentsOf: scalars)
    return String(view)
}
