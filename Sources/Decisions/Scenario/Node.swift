/// A value as a tree of texts: its parts by their names, the elements of a list by their numbers.
///
/// In a scenario each text is one word, `path=text`, where the path has the names of the parts with `/` between them. A part
/// without parts of its own is a word without `=`. Compared with another tree, only what differs is written, and `-path`
/// is a part that is no longer there.
enum Node: Sendable, Hashable {
    case text(String)
    case parts([String: Node])

    static let nothing = Node.parts([:])

    /// Nil: it has no such part, or is a text.
    subscript(name: String) -> Node? {
        get { if case .parts(let parts) = self { parts[name] } else { nil } }
        set {
            guard case .parts(var parts) = self else { return }
            self = .nothing
            parts[name] = newValue
            self = .parts(parts)
        }
    }

    /// The tree with every text replaced. `path`: the names of the parts in which the text is.
    func mapped(_ path: [String] = [], _ body: (String, _ path: [String]) -> String) -> Node {
        switch self {
        case .text(let text): return .text(body(text, path))
        case .parts(let parts):
            var result: [String: Node] = [:]
            for name in Node.sorted(parts.keys) { result[name] = parts[name]?.mapped(path + [name], body) }
            return .parts(result)
        }
    }

    // MARK: Words

    /// The words that make the other tree of this one. In a fixed order.
    func words(to new: Node, at path: String = "") -> [String] {
        if self == new { return [] }
        guard case .parts(let before) = self, case .parts(let after) = new else {
            if case .parts(let before) = self, !path.isEmpty, !before.isEmpty {
                return ["-" + path] + new.words(at: path)
            }
            return new.words(at: path)
        }
        var words: [String] = []
        for name in Node.sorted(Set(before.keys).union(after.keys)) {
            let part = path.isEmpty ? Node.escaped(name) : path + "/" + Node.escaped(name)
            switch (before[name], after[name]) {
            case (let old?, let new?): words += old.words(to: new, at: part)
            case (nil, let new?): words += new.words(at: part)
            case (_, nil): words.append("-" + part)
            }
        }
        return words
    }

    private func words(at path: String) -> [String] {
        switch self {
        case .text(let text): return [path + "=" + Node.value(text)]
        case .parts(let parts):
            if parts.isEmpty { return path.isEmpty ? [] : [path] }
            return Node.sorted(parts.keys).flatMap { name in
                parts[name]?.words(at: path.isEmpty ? Node.escaped(name) : path + "/" + Node.escaped(name)) ?? []
            }
        }
    }

    /// Applies words as made by ``words(to:at:)``.
    mutating func apply(_ words: some Sequence<Token>) throws(LineError) {
        for word in words {
            let isRemoval = word.value == nil && word.word.utf8.first == UInt8(ascii: "-")
            var path: [String] = []
            for name in (isRemoval ? word.word.dropFirst() : word.word[...]).split(separator: "/") {
                guard let name = Node.unescaped(name) else {
                    throw LineError(word, "\(quotedWord(word)) is not a path of names with '/' between them")
                }
                path.append(name)
            }
            guard !path.isEmpty, path.count <= 32 else {
                throw LineError(word, "\(quotedWord(word)) is not a path of names with '/' between them")
            }
            set(path[...], isRemoval ? nil : word.value.map(Node.text) ?? .nothing)
        }
    }

    private func quotedWord(_ word: Token) -> String { "'" + String(word.word.unicodeScalars.prefix(64)) + "'" }

    private mutating func set(_ path: ArraySlice<String>, _ new: Node?) {
        guard let name = path.first else { return }
        var parts: [String: Node] = [:]
        if case .parts(let present) = self { parts = present }
        self = .nothing
        if path.count == 1 {
            parts[name] = new
        } else if new != nil || parts[name] != nil {
            var part = parts[name] ?? .nothing
            parts[name] = nil
            part.set(path.dropFirst(), new)
            parts[name] = part
        }
        self = .parts(parts)
    }

    /// Numbers by their value, before names.
    static func sorted(_ names: some Sequence<String>) -> [String] {
        names.sorted { one, other in
            switch (Int(one), Int(other)) {
            case (let one?, let other?): one < other
            case (nil, nil): one < other
            case (let one, _): one != nil
            }
        }
    }

    /// Without quotes if possible.
    private static func value(_ text: String) -> String {
        !text.isEmpty && text.utf8.allSatisfy(isPlain) ? text : written(text)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// A name with every other byte as `%` and two hexadecimal digits.
    private static func escaped(_ name: String) -> String {
        if name.utf8.allSatisfy(isPlain), name.utf8.first != UInt8(ascii: "-"), !name.isEmpty { return name }
        var result = ""
        for (place, byte) in name.utf8.enumerated() {
            if isPlain(byte), place > 0 || byte != UInt8(ascii: "-") {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return name.isEmpty ? "%" : result
    }

    private static func unescaped(_ text: Substring) -> String? {
        if text == "%" { return "" }
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let digits = String(rest.prefix(2)), let number = UInt8(digits, radix: 16) else { return nil }
            bytes.append(number)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
