import Enforcement

/// Names in the place of private texts: titles, tracks, and the folders of files. Equal texts have equal names, so a replay
/// without the texts decides the same.
struct Pseudonyms {
    private var names: [String: String] = [:]
    private var folders: [String: String] = [:]
    /// The private texts that are also names of programs or sessions, by ``hideName(_:)``.
    private var spoken: Set<String> = []

    /// The parts whose texts are private, with all that is in them: the title of a stream, a player's track, and the titles
    /// by which the pages of a browser are told apart.
    private static let privateParts: Set<String> = ["media.name", "track", "pages"]
    /// Folders that are the same on every computer.
    private static let commonFolders: Set<String> = [
        "app", "bin", "lib", "lib64", "newroot", "nix", "opt", "run", "sbin", "snap", "usr",
    ]

    init() {}

    /// Learns all private texts of a tree. Must be called with all trees before the first is hidden: a program without a name
    /// has the title of its stream as its name.
    mutating func learn(_ node: Node) {
        switch node {
        case .text: break
        case .parts(let parts):
            for name in Node.sorted(parts.keys) {
                guard let part = parts[name] else { continue }
                if Pseudonyms.privateParts.contains(name) { learnAll(part) } else { learn(part) }
            }
        }
    }

    private mutating func learnAll(_ node: Node) {
        switch node {
        case .text(let text):
            if !text.isEmpty, names[text] == nil { names[text] = "text\(names.count + 1)" }
        case .parts(let parts): for name in Node.sorted(parts.keys) { if let part = parts[name] { learnAll(part) } }
        }
    }

    mutating func hide(_ node: Node) -> Node {
        node.mapped { text, path in
            if path.contains(where: Pseudonyms.privateParts.contains) { return names[text] ?? text }
            return Pseudonyms.isName(path) ? hideName(text) : hidePath(text)
        }
    }

    /// Whether the part is the name of a program or a session. Other texts, such as words of the settings or names of ports,
    /// may be equal to a title by chance.
    private static func isName(_ path: [String]) -> Bool {
        guard let last = path.last else { return false }
        switch last {
        case "applicationName", "byName": return true
        case "name": return path.dropLast().last == "program"
        // By `Program.Key.name`.
        case "_0": return path.dropLast().last == "name"
        default: return path.dropLast().last == "names"
        }
    }

    /// The name of a program or a session, perhaps cut, or that of a guessed call.
    mutating func hideName(_ text: String) -> String {
        if let name = names[text] {
            spoken.insert(text)
            return name
        }
        if text.hasSuffix(Program.callSuffix) {
            let program = String(text.dropLast(Program.callSuffix.count))
            let name = hideName(program)
            if name != program { return name + Program.callSuffix }
        }
        if text.utf8.count >= 100, let whole = names.keys.filter({ $0.hasPrefix(text) }).min() {
            return names[whole] ?? text
        }
        return hidePath(text)
    }

    /// A message for users, which may have such a name in it.
    func hideNames(in message: String) -> String {
        spoken.reduce(message) { $0.replacingEach($1, by: names[$1] ?? "") }
    }

    /// The file keeps its name: it is that of a program. A folder has the same pseudonym in all paths.
    private mutating func hidePath(_ path: String) -> String {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard path.utf8.first == UInt8(ascii: "/"), parts.count > 2, !Pseudonyms.commonFolders.contains(parts[1]) else {
            return path
        }
        for place in 1..<parts.count - 1 where !parts[place].isEmpty {
            let name = folders[parts[place]] ?? "folder\(folders.count + 1)"
            folders[parts[place]] = name
            parts[place] = name
        }
        return parts.joined(separator: "/")
    }
}

extension String {
    fileprivate func replacingEach(_ part: String, by other: String) -> String {
        guard !part.isEmpty else { return self }
        var result: [UInt8] = []
        var rest = utf8[...]
        while !rest.isEmpty {
            if rest.starts(with: part.utf8) {
                result += Array(other.utf8)
                rest = rest.dropFirst(part.utf8.count)
            } else if let byte = rest.popFirst() {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
