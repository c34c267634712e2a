/// The contents of a `*.plugin` file: the identity of a plugin, the URIs that it opens, and its command.
public struct PluginManifest: Sendable, Hashable {
    /// Lower-case letters, digits, `-`, `_` and `.`, starting with a letter; at most 128 characters.
    public let id: String
    /// For display, by locale; the untranslated name has the empty string.
    public let names: [String: String]
    /// The kind (``PluginKind/word``); open, because third parties may define their own kinds.
    public let kind: String
    /// The program and its arguments. A program without `/` is searched next to the daemon's own, then in `PATH`. Empty
    /// for a plugin that is not installed but has registered itself.
    public let exec: [String]
    /// The plugin's own version, for display only.
    public let version: String
    /// URI schemes it opens, in lower case.
    public let schemes: [String]
    /// Media types it opens, `type/subtype` or `type/*`, in lower case.
    public let mimeTypes: [String]

    /// The version of the plugin interface that it implements; 1 if the manifest does not state it.
    public let interface: Int
    /// Seconds after which the daemon stops it when no client uses it; 0: never.
    public let idleTimeout: Int

    /// The version that this daemon supports.
    public static let supportedInterface = 1

    /// The untranslated name.
    public var name: String { names[""] ?? id }

    /// Whether it opens that scheme and, if known, that media type.
    public func opens(scheme: String, mimeType: String?) -> Bool {
        guard schemes.contains(scheme.lowercased()) else { return false }
        guard let mimeType = mimeType?.lowercased() else { return true }
        let family = mimeType.split(separator: "/").first.map { $0 + "/*" }
        return mimeTypes.isEmpty || mimeTypes.contains(mimeType) || mimeTypes.contains { $0 == family ?? "" }
    }

    /// How well it matches that media type, more is better; nil: it does not open it.
    ///
    /// A plugin that lists the type is better than one that lists its family, and that is better than one for
    /// everything.
    func fitness(scheme: String, mimeType: String?) -> Int? {
        guard opens(scheme: scheme, mimeType: mimeType) else { return nil }
        guard let mimeType else { return mimeTypes.isEmpty ? 1 : 0 }
        if mimeTypes.isEmpty { return 0 }
        return mimeTypes.contains(mimeType) ? 2 : 1
    }

    /// The plugin for a URI: the best match of that kind; of several, the first. Nil: none opens it.
    ///
    /// Installed plugins are preferred to those that only registered. A plugin with an unsupported interface version is
    /// chosen only if there is no other, so that the error can name it.
    public static func choose(from manifests: [PluginManifest], kind: String, uri: String) -> PluginManifest? {
        let scheme = uri.contains(":") ? String(uri.prefix { $0 != ":" }) : "file"
        let mimeType = MediaType.of(uri)
        var best: (manifest: PluginManifest, rank: Int)?
        for manifest in manifests where manifest.kind == kind {
            guard let fitness = manifest.fitness(scheme: scheme, mimeType: mimeType) else { continue }
            let rank =
                fitness + (manifest.exec.isEmpty ? 0 : 5) + (manifest.interface == supportedInterface ? 10 : 0)
            if rank > best?.rank ?? -1 { best = (manifest, rank) }
        }
        return best?.manifest
    }

    /// The description that a plugin without a manifest gives when it registers.
    public init(
        registered id: String, name: String?, kind: String?, version: String?, schemes: [String], mimeTypes: [String]
    ) {
        self.id = id
        names = ["": name ?? id]
        self.kind = kind ?? ""
        exec = []
        self.version = version ?? ""
        self.schemes = schemes.map { $0.lowercased() }
        self.mimeTypes = mimeTypes.map { $0.lowercased() }
        interface = PluginManifest.supportedInterface
        idleTimeout = 0
    }

    /// Reads a manifest. Throws at a missing, unknown or illegal key, naming the position.
    public init(bytes: [UInt8], file: String) throws(KeyFileError) {
        let parsed = try KeyFile(bytes: bytes, file: file)
        if let other = parsed.sections.first(where: { $0.name != Self.section }) {
            throw KeyFileError(
                file: file, position: other.position,
                "unknown section [\(other.name.prefix(64))]; a manifest has only [\(Self.section)]")
        }
        guard let section = parsed[Self.section] else {
            throw KeyFileError(
                file: file, position: KeyFile.Position(line: 1, column: 1),
                "no [\(Self.section)] section; start the file with it")
        }
        try self.init(section, file: file)
    }

    /// The only section of a manifest.
    public static let section = "sessiond Plugin"
    /// All keys; `Name` also with a locale, as in `Name[de]`.
    public static let keys = [
        "Id", "Name", "Kind", "Exec", "Version", "Schemes", "MimeTypes", "Interface", "IdleTimeout",
    ]

    private init(_ section: KeyFile.Section, file: String) throws(KeyFileError) {
        var names: [String: String] = [:]
        for entry in section.entries where entry.key.hasPrefix("Name[") {
            names[String(entry.key.dropFirst(5).dropLast())] = try entry.nonEmptyText()
        }
        if let unknown = section.entries.first(where: { !$0.key.hasPrefix("Name[") && !Self.keys.contains($0.key) }) {
            throw unknown.keyRefusal(
                "unknown key \(quoted(unknown.key)); use one of \(Self.keys.joined(separator: ", "))")
        }
        func required(_ key: String) throws(KeyFileError) -> KeyFile.Entry {
            guard let entry = section[key] else {
                throw KeyFileError(
                    file: file, position: section.position, "no \(key) in [\(section.name)]; add \(key)=…")
            }
            return entry
        }
        id = try required("Id").identifier(allowing: "-_.")
        names[""] = try required("Name").nonEmptyText()
        self.names = names
        kind = try required("Kind").identifier(allowing: "-")
        exec = try required("Exec").command()
        version = try required("Version").nonEmptyText()
        schemes = try section["Schemes"]?.lowercasedList { isScheme($0) } ?? []
        mimeTypes = try section["MimeTypes"]?.lowercasedList { isMimeType($0) } ?? []
        interface = try section["Interface"]?.integer(in: 1...1_000) ?? 1
        idleTimeout = try section["IdleTimeout"]?.integer(in: 0...86_400) ?? 60
    }
}

extension KeyFile.Entry {
    fileprivate func nonEmptyText() throws(KeyFileError) -> String {
        let text = try text()
        guard !text.isEmpty else { throw refusal("\(key) is empty; write \(key)=…") }
        return text
    }

    fileprivate func identifier(allowing punctuation: String) throws(KeyFileError) -> String {
        let text = try nonEmptyText()
        let legal = text.unicodeScalars.allSatisfy {
            ("a"..."z").contains($0) || ("0"..."9").contains($0) || punctuation.unicodeScalars.contains($0)
        }
        guard legal, let first = text.unicodeScalars.first, ("a"..."z").contains(first), text.utf8.count <= 128 else {
            throw refusal(
                "\(key) cannot be \(quoted(text)); start with a lower-case letter, then lower-case letters, digits "
                    + "and any of \(quoted(punctuation)), 128 at most")
        }
        return text
    }

    fileprivate func lowercasedList(_ isLegal: (String) -> Bool) throws(KeyFileError) -> [String] {
        var items: [String] = []
        for item in try list().map({ $0.lowercased() }) {
            guard isLegal(item) else { throw refusal("\(quoted(item)) cannot be one of \(key); remove it") }
            guard !items.contains(item) else { throw refusal("\(quoted(item)) is given twice; remove one") }
            guard items.count < 256 else { throw refusal("\(key) has more than 256 items; shorten it") }
            items.append(item)
        }
        return items
    }

    /// Words separated by spaces; `"…"` keeps spaces, and a backslash in it keeps the next character (desktop entry
    /// `Exec`).
    fileprivate func command() throws(KeyFileError) -> [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        var isEscaped = false
        for scalar in try text().unicodeScalars {
            if isEscaped {
                word?.unicodeScalars.append(scalar)
                isEscaped = false
            } else if isQuoted, scalar == "\\" {
                isEscaped = true
            } else if scalar == "\"" {
                isQuoted.toggle()
                word = word ?? ""
            } else if !isQuoted, scalar == " " || scalar == "\t" {
                if let finished = word { words.append(finished) }
                word = nil
            } else if !isQuoted, "'`$\\<>~|&;*?#()%\n\r".unicodeScalars.contains(scalar) {
                throw refusal("\(quoted(String(scalar))) outside quotes; no shell reads \(key), put it in \"…\"")
            } else {
                word = (word ?? "") + String(scalar)
            }
        }
        guard !isQuoted else { throw refusal("a quote in \(key) is not closed; add \"") }
        if let finished = word { words.append(finished) }
        guard let program = words.first, !program.isEmpty else {
            throw refusal("\(key) names no program; write its name or its absolute path")
        }
        guard !program.contains("/") || program.hasPrefix("/") else {
            throw refusal("\(quoted(program)) is neither a name nor an absolute path; write one of them")
        }
        return words
    }
}

/// RFC 3986 §3.1.
private func isScheme(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, ("a"..."z").contains(first) else { return false }
    return text.unicodeScalars.allSatisfy {
        ("a"..."z").contains($0) || ("0"..."9").contains($0) || $0 == "+" || $0 == "-" || $0 == "."
    }
}

private func isMimeType(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == 2
        && parts.allSatisfy { part in
            !part.isEmpty
                && part.unicodeScalars.allSatisfy {
                    ("a"..."z").contains($0) || ("0"..."9").contains($0) || "!#$&-^_.+*".unicodeScalars.contains($0)
                }
        }
}
