/// One key of the settings file: its name, type, range, meaning, and how it is read and written.
///
/// The one list of keys: the parser, the manual page and the default file are held to it.
public struct SettingKey: Sendable {
    /// What a value may be.
    public enum Kind: Sendable, Hashable {
        case real(ClosedRange<Double>, unit: String)
        case integer(ClosedRange<Int>)
        case onOff
        case words([String])
        /// `any`, or a list of names.
        case holders
        /// A list of names, possibly empty.
        case names
        /// A category and, in any order, a mode, a class and options.
        case role
    }

    public let section: String
    /// `*` in a section whose keys are free (`roles`).
    public let key: String
    public let kind: Kind
    /// What it means, a sentence or two without the unit and range.
    public let meaning: String
    let set: @Sendable (inout Settings, KeyFile.Entry) throws(KeyFileError) -> Void
    private let get: @Sendable (Settings) -> [(key: String, value: String)]

    /// What the settings hold, as lines of a file would have it; several for a free key.
    public func values(in settings: Settings) -> [(key: String, value: String)] { get(settings) }

    /// The row of that key, or nil.
    public static func find(section: String, key: String) -> SettingKey? {
        table.first { $0.section == section && ($0.key == key || $0.key == "*") }
    }

    /// In the order of the table, each once.
    public static let sections: [String] = table.map(\.section).reduce(into: []) { names, name in
        if names.last != name { names.append(name) }
    }

    /// Every key there is, in the order of contract §6. The one place to add one.
    public static let table: [SettingKey] = [
        real(
            "interruption", "grace", \.interruption.grace, 0...3600, "s",
            "How long a session that was told its interruption ended keeps its claim without coming back."),
        real(
            "interruption", "max-age", \.interruption.maxAge, 0...604_800, "s",
            "How long an interruption may last and still end with should-resume. 0: for ever."),

        real("ducking", "gain", \.ducking.gain, -96...0, "dB", "By how much other sessions are lowered."),
        real("ducking", "attack", \.ducking.attack, 0...10, "s", "How long going down takes."),
        real("ducking", "release", \.ducking.release, 0...10, "s", "How long coming back up takes."),
        real(
            "ducking", "hold", \.ducking.hold, 0...10, "s",
            "How long others stay lowered after a prompt, in case another follows."),

        word(
            "enforcement", "mode", \.enforcement.mode,
            "What is done at the sound server. off: nothing; cooperative: a session that plays on after it was told to "
                + "fall silent is silenced; full: programs that never spoke to the daemon are silenced and lowered, "
                + "too."),
        real(
            "enforcement", "deadline", \.enforcement.deadline, 0...10, "s",
            "How long a session that was told has to fall silent before it is silenced."),

        word(
            "adoption", "streams", \.adoption.streams,
            "Whether streams of programs that never spoke to the daemon count as sessions. off: no; calls: they are "
                + "silent during calls and alerts and lowered by prompts, but never interrupt each other; all: as if "
                + "they had asked for it themselves, so that the newest interrupts the others."),
        names(
            "adoption", "never", \.adoption.never,
            "Programs that are never taken for sessions, as with off: by application id or name, or by the path or "
                + "file name of the executable, with ; between."),
        word(
            "adoption", "calls", \.adoption.calls,
            "What counts as a call that no client declared. off: nothing; labelled: streams with a media.role that [roles] "
                + "gives the class call; known: besides, a program that is known to make calls, while it records from a "
                + "microphone and plays; any: any program that does so."),
        names(
            "adoption", "call-programs", \.adoption.callPrograms,
            "Programs that are known to make calls beside those that sessiond knows, named as in never; * at the end "
                + "stands for anything. They count whatever media.role their streams have."),
        names("adoption", "always", \.adoption.always, "Programs that are taken for full sessions, as with all."),

        SettingKey(
            section: "roles", key: "*", kind: .role,
            meaning: "What a stream of that media.role counts as: a category and, in any order, a mode, a class "
                + "and options, with ; between. Empty: the role means nothing.",
            set: { settings, entry throws(KeyFileError) in
                settings.roles[entry.key.lowercased()] = try Settings.Role(entry)
            },
            get: { settings in settings.roles.sorted { $0.key < $1.key }.map { ($0.key, $0.value.words) } }),

        switched(
            "routes", "unplug", \.routes.unplug,
            "Whether the now-playing session is paused when its output goes, and its sound kept from every other output; "
                + "so are MPRIS players of programs that never spoke to the daemon."
        ),
        real(
            "routes", "replug", \.routes.replug, 0...86_400, "s",
            "How long after its output went a session that was paused by it is offered to resume when that output "
                + "comes back. 0: never."),

        switched(
            "mpris", "pause", \.mpris.pause,
            "Whether players that are interrupted are paused and resumed through MPRIS."),
        switched(
            "mpris", "media-keys", \.mpris.mediaKeys,
            "Whether the player in front by the rules is also org.mpris.MediaPlayer2.sessiond on the bus, so that "
                + "media keys, headset buttons and playerctl reach it."),

        holders("privileges", "call", \.privileges.call, "Who may take the class call."),
        holders("privileges", "alert", \.privileges.alert, "Who may take the class alert."),

        integer("limits", "sessions", \.limits.sessions, 1...65_536, "Sessions there may be altogether."),
        integer(
            "limits", "sessions-per-client", \.limits.sessionsPerClient, 1...65_536, "Sessions one client may own."),
        integer("limits", "history", \.limits.history, 0...65_536, "Decisions that are remembered."),
        integer(
            "limits", "string-length", \.limits.stringLength, 16...65_536,
            "Bytes a name or another text from a client may have."),
    ]

    private typealias Path<Value> = any WritableKeyPath<Settings, Value> & Sendable

    private static func real(
        _ section: String, _ key: String, _ path: Path<Double>, _ range: ClosedRange<Double>, _ unit: String,
        _ meaning: String
    ) -> SettingKey {
        SettingKey(
            section: section, key: key, kind: .real(range, unit: unit), meaning: meaning,
            set: { settings, entry throws(KeyFileError) in
                settings[keyPath: path] = try entry.real(in: range, unit: unit)
            },
            get: { [(key, "\($0[keyPath: path])")] })
    }

    private static func integer(
        _ section: String, _ key: String, _ path: Path<Int>, _ range: ClosedRange<Int>, _ meaning: String
    ) -> SettingKey {
        SettingKey(
            section: section, key: key, kind: .integer(range), meaning: meaning,
            set: { settings, entry throws(KeyFileError) in settings[keyPath: path] = try entry.integer(in: range) },
            get: { [(key, "\($0[keyPath: path])")] })
    }

    private static func switched(
        _ section: String, _ key: String, _ path: Path<Bool>, _ meaning: String
    ) -> SettingKey {
        SettingKey(
            section: section, key: key, kind: .onOff, meaning: meaning,
            set: { settings, entry throws(KeyFileError) in settings[keyPath: path] = try entry.isOn() },
            get: { [(key, $0[keyPath: path] ? "on" : "off")] })
    }

    private static func word<Word: RawRepresentable<String> & CaseIterable & Sendable>(
        _ section: String, _ key: String, _ path: Path<Word>, _ meaning: String
    ) -> SettingKey {
        SettingKey(
            section: section, key: key, kind: .words(Word.allCases.map(\.rawValue)), meaning: meaning,
            set: { settings, entry throws(KeyFileError) in settings[keyPath: path] = try entry.word() },
            get: { [(key, $0[keyPath: path].rawValue)] })
    }

    private static func names(
        _ section: String, _ key: String, _ path: Path<[String]>, _ meaning: String
    ) -> SettingKey {
        SettingKey(
            section: section, key: key, kind: .names, meaning: meaning,
            set: { settings, entry throws(KeyFileError) in settings[keyPath: path] = try entry.list() },
            get: { [(key, $0[keyPath: path].joined(separator: "; "))] })
    }

    private static func holders(
        _ section: String, _ key: String, _ path: Path<Settings.Privileges.Holder>, _ meaning: String
    ) -> SettingKey {
        SettingKey(
            section: section, key: key, kind: .holders,
            meaning: meaning + " any: every unsandboxed process of the user; else desktop entries and absolute paths "
                + "of executables, with ; between; empty: nobody.",
            set: { settings, entry throws(KeyFileError) in
                settings[keyPath: path] = try Settings.Privileges.Holder(entry)
            },
            get: { [(key, $0[keyPath: path].words)] })
    }
}

extension Settings.Privileges.Holder {
    fileprivate init(_ entry: KeyFile.Entry) throws(KeyFileError) {
        let names = try entry.list()
        if names == ["any"] {
            self = .anyone
        } else if names.contains("any") {
            throw entry.refusal("'any' together with names; write any alone, or the names alone")
        } else if let relative = names.first(where: { $0.contains("/") && !$0.hasPrefix("/") }) {
            throw entry.refusal("\(quoted(relative)) is not an absolute path; write it from / on")
        } else {
            self = .only(names)
        }
    }

    fileprivate var words: String {
        switch self {
        case .anyone: "any"
        case .only(let names): names.joined(separator: "; ")
        }
    }
}

extension Settings.Role {
    /// What the daemon assumes of the roles PulseAudio and PipeWire know.
    static let defaults: [String: Settings.Role] = {
        let call = Settings.Role(known(.playAndRecord, .voiceChat), sessionClass: .call)
        let video = Settings.Role(known(.playback, .moviePlayback))
        let event = Settings.Role(known(.ambient))
        return [
            "phone": call, "communication": call,
            "music": Settings.Role(known(.playback)), "production": Settings.Role(known(.playback)),
            "video": video, "movie": video,
            "a11y": Settings.Role(known(.playback, .voicePrompt, .duckOthers)),
            "event": event, "notification": event, "animation": event, "game": event,
        ]
    }()

    private static func known(_ category: Category, _ mode: Mode = .default, _ options: Options = []) -> Configuration {
        // The literals above are legal triples; a test reads them all.
        guard let configuration = try? Configuration(category: category, mode: mode, options: options) else {
            preconditionFailure("illegal default role")
        }
        return configuration
    }

    /// Nil for an empty value: the role means nothing.
    fileprivate init?(_ entry: KeyFile.Entry) throws(KeyFileError) {
        let words = try entry.list()
        guard !words.isEmpty else { return nil }
        var category: Category?
        var mode: Mode?
        var sessionClass: SessionClass?
        var options: Options = []
        for word in words {
            if let value = Category(rawValue: word), category == nil {
                category = value
            } else if let value = Mode(rawValue: word), mode == nil {
                mode = value
            } else if let value = SessionClass(rawValue: word), sessionClass == nil {
                sessionClass = value
            } else if let value = Options(name: word), options.isDisjoint(with: value) {
                options.insert(value)
            } else {
                throw entry.refusal(
                    "\(quoted(word)) is unknown or one too many; write a category, at most one mode, "
                        + "at most one class, and options")
            }
        }
        guard let category else {
            let names = Category.allCases.map(\.rawValue).joined(separator: ", ")
            throw entry.refusal("role \(quoted(entry.key)) has no category; add one of \(names)")
        }
        do {
            let configuration = try Configuration(category: category, mode: mode ?? .default, options: options)
            self.init(configuration, sessionClass: sessionClass ?? .app)
        } catch {
            throw entry.refusal(error.reason)
        }
    }

    /// The words that give this role again, without what others of them imply.
    fileprivate var words: String {
        var words = [configuration.category.rawValue]
        if configuration.mode != .default { words.append(configuration.mode.rawValue) }
        if sessionClass != .app { words.append(sessionClass.rawValue) }
        let set = Options.table.filter { configuration.options.contains($0.option) }
        var implied = configuration.mode.impliedOptions
        for entry in set { implied.formUnion(entry.implies) }
        let legal = set.filter { $0.legalCategories.contains(configuration.category) && !implied.contains($0.option) }
        return (words + legal.map(\.name)).joined(separator: "; ")
    }
}
