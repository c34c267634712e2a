/// One key of the settings file: its name, type, range, meaning, and how it is read and written.
///
/// The table here is the only list of keys. Tests compare the manual page and the default file with it.
public struct SettingKey: Sendable {
    /// The type of a value.
    public enum Kind: Sendable, Hashable {
        case real(ClosedRange<Double>, unit: String)
        case integer(ClosedRange<Int>)
        case onOff
        case words([String])
        /// `any`, or a list of names.
        case holders
        /// `off`, `all`, or a list of these words.
        case kinds([String])
        /// A list of names, possibly empty.
        case names
        /// A category and, in any order, a mode, a class and options.
        case role
        /// Where films are shown, a ``MovieOutput``.
        case output
    }

    public let section: String
    /// `*` in a section whose keys are free (`roles`).
    public let key: String
    public let kind: Kind
    /// A sentence or two for the user, without the unit and range.
    public let meaning: String
    let set: @Sendable (inout Settings, KeyFile.Entry) throws(KeyFileError) -> Void
    private let get: @Sendable (Settings) -> [(key: String, value: String)]

    /// The values in these settings, as lines of a file; several for a free key.
    public func values(in settings: Settings) -> [(key: String, value: String)] { get(settings) }

    /// The row of that key, or nil.
    public static func find(section: String, key: String) -> SettingKey? {
        table.first { $0.section == section && ($0.key == key || $0.key == "*") }
    }

    /// The sections in the order of the table, without duplicates.
    public static let sections: [String] = table.map(\.section).reduce(into: []) { names, name in
        if names.last != name { names.append(name) }
    }

    /// Every key, in the order of the default file. New keys are added here.
    public static let table: [SettingKey] = [
        real(
            "interruption", "grace", \.interruption.grace, 0...3600, "s",
            "The grace period: how long a session keeps its claim after its interruption ended."),
        real(
            "interruption", "max-age", \.interruption.maxAge, 0...604_800, "s",
            "The longest interruption that still ends with the should-resume hint. 0: no limit."),
        real(
            "interruption", "longest", \.interruption.longest, 0...86_400, "s",
            "How long a client may keep others interrupted without playing itself, until it is asked whether it still runs. If "
                + "it does not answer, it is deactivated. 0: never. Calls and alerts are not asked."),

        real("ducking", "gain", \.ducking.gain, -96...0, "dB", "The gain of ducked sessions."),
        real("ducking", "attack", \.ducking.attack, 0...10, "s", "How long ducking takes."),
        real("ducking", "release", \.ducking.release, 0...10, "s", "How long it takes to restore the volume."),
        real(
            "ducking", "hold", \.ducking.hold, 0...10, "s",
            "How long others stay ducked after a prompt ends, in case another prompt follows."),
        real(
            "ducking", "longest", \.ducking.longest, 0...86_400, "s",
            "How long a client may duck others without playing itself, until it is asked whether it still runs. If it does "
                + "not answer, it is deactivated, and the others come back up. 0: never. Calls and alerts are not asked."
        ),
        switched(
            "ducking", "screen-readers", \.ducking.screenReaders,
            "Whether known screen readers, and streams with the media.role a11y, duck others while they speak; calls and "
                + "alerts are not ducked. Their sound is measured, which costs some wake-ups a second while such a stream is "
                + "open. They are never silenced, whatever this says."),
        switched(
            "ducking", "alerts", \.ducking.alerts,
            "Whether sessions that duck others also duck alerts, for example the answer of an assistant a ringing alarm. "
                + "Calls are never ducked."),
        switched(
            "ducking", "silent-streams", \.ducking.silentStreams,
            "Whether the sound of a stream is measured if its media.role alone makes it duck others: then it ducks them only "
                + "from its first sound until 2 s after its last. off: for as long as it is not paused. on costs some "
                + "wake-ups a second while such a stream is open."),

        word(
            "enforcement", "mode", \.enforcement.mode,
            "What the daemon does at the sound server. off: nothing; cooperative: it silences sessions that play on after "
                + "they were interrupted; full: it also silences and ducks programs that do not use sessiond."),
        real(
            "enforcement", "deadline", \.enforcement.deadline, 0...10, "s",
            "How long a session may take to fall silent after it was interrupted; then its streams are silenced."),

        word(
            "adoption", "streams", \.adoption.streams,
            "Whether programs that do not use sessiond are adopted. off: no; calls: yes, a call or an alert silences those "
                + "that play when it begins, and prompts duck them, but they interrupt no session; all: as full sessions, "
                + "the newest interrupts the others."),
        names(
            "adoption", "never", \.adoption.never,
            "Programs that are never adopted, as with off: application ids or names, or paths or file names of "
                + "executables, also as they were started, separated by ;."),
        word(
            "adoption", "calls", \.adoption.calls,
            "Which activity counts as a call although no client declared one. off: none; labelled: streams with a "
                + "media.role to which [roles] gives the class call; known: in addition, a program that is known to make "
                + "calls, while it records from a microphone and plays; any: in addition, any program that does so."),
        switched(
            "adoption", "label-alone", \.adoption.labelAlone,
            "Whether a recording with a media.role to which [roles] gives the class call is a call even while its program "
                + "does not play. A voice assistant with such a label listens all day."),
        names(
            "adoption", "call-programs", \.adoption.callPrograms,
            "More programs that make calls, in addition to those that sessiond knows, named as in never; * at the end of a "
                + "name matches anything. They count whatever media.role their streams have."),
        names("adoption", "always", \.adoption.always, "Programs that are adopted as full sessions, as with all."),

        SettingKey(
            section: "roles", key: "*", kind: .role,
            meaning: "How a program with that media.role is adopted: a category and, in any order, a mode, a class "
                + "and options, separated by ;. Empty: the role is ignored.",
            set: { settings, entry throws(KeyFileError) in
                settings.roles[entry.key.lowercased()] = try Settings.Role(entry)
            },
            get: { settings in settings.roles.sorted { $0.key < $1.key }.map { ($0.key, $0.value.words) } }),

        word(
            "routes", "unplug", \.routes.unplug,
            "What falls silent when the output that it plays on is unplugged, and is kept from playing on another output. "
                + "off: nothing; on or players: the now-playing session, and adopted MPRIS players; all: in addition, every "
                + "program that plays, except games, calls and alerts: its sound is held until its user starts it again, or "
                + "the output is back."),
        names(
            "routes", "no-unplug", \.routes.noUnplug,
            "Programs that an unplug never pauses, named as in [adoption] never."),
        real(
            "routes", "replug", \.routes.replug, 0...86_400, "s",
            "How long after the unplug a replug still ends the pause with the should-resume hint. 0: never."),

        switched(
            "mpris", "pause", \.mpris.pause,
            "Whether players that are interrupted are paused through MPRIS, and resumed."),
        switched(
            "mpris", "resume", \.mpris.resume,
            "Whether players that were paused are resumed. off: they stay paused until somebody plays them."),
        switched(
            "mpris", "media-keys", \.mpris.mediaKeys,
            "Whether the player in front is also org.mpris.MediaPlayer2.sessiond on the bus, so that media keys, headset "
                + "buttons and playerctl reach it."),
        names(
            "mpris", "no-media-keys", \.mpris.noMediaKeys,
            "Players that media keys never reach: their names on the bus below org.mpris.MediaPlayer2, or names of their "
                + "programs as in [adoption] never."),

        switched(
            "sleep", "pause", \.sleep.pause,
            "Whether apps are interrupted before the machine sleeps, and players paused. The machine waits for that, at most "
                + "2 s. Calls and alerts are not interrupted."),
        switched(
            "sleep", "resume", \.sleep.resume,
            "Whether they are asked to resume when the machine has woken up. off: they stay paused until somebody plays them."
        ),

        holders("privileges", "call", \.privileges.call, "Which programs may use the class call."),
        holders("privileges", "alert", \.privileges.alert, "Which programs may use the class alert."),

        integer("limits", "sessions", \.limits.sessions, 1...65_536, "Most sessions at the same time."),
        integer(
            "limits", "sessions-per-client", \.limits.sessionsPerClient, 1...65_536, "Most sessions of one client."),
        integer("limits", "history", \.limits.history, 0...65_536, "Decisions that the history keeps."),
        integer(
            "limits", "string-length", \.limits.stringLength, 16...65_536,
            "Most bytes in a name or another text from a client."),

        real(
            "library", "interval", \.library.interval, 1...86_400, "s",
            "How often the music library checks folders for which the kernel reports no changes: on network file systems, "
                + "or if there are too many to be watched. Read when the library starts."),
        word(
            "library", "tag-encoding", \.library.tagEncoding,
            "The encoding of texts in old tags, which do not state one (ID3v1, and ID3v2 whose texts say that they are "
                + "latin-1, but often are not). After a change, sessionctl library scan --full reads the music again. Read "
                + "when the library starts."),

        real(
            "cache", "size", \.cache.size, 0.01...100_000, "GB",
            "The most that the cache for media of the web keeps; then what was not used for longest is removed. A twentieth "
                + "of the disk always stays free. Read when the cache starts, as the following."),
        switched(
            "cache", "fill", \.cache.fill,
            "Whether missing parts are fetched while no player waits for others, so that what was sought in is kept whole. "
                + "Not on a metered network. off: only what players read."),
        switched(
            "cache", "bounded", \.cache.bounded,
            "Whether a request to a server ends where the next part begins that is there already, so that nothing is fetched "
                + "twice. off: each goes to the end, and cancels the one before; with fill = off, only what one request "
                + "fetched is kept."),

        SettingKey(
            section: "player", key: "cache", kind: .kinds(PlaylistEntry.Spoken.allCases.map(\.word)),
            meaning:
                "What the players read from the web through the cache (sessiond-cache), so that it is kept, seeking is "
                + "quick, and what is whole plays without the network. off: nothing; all: everything but radios and "
                + "playlists; or podcasts and audiobooks, separated by a comma: items of these types, and everything in the "
                + "mode spoken-audio. Read when a player first plays from the web.",
            set: { settings, entry throws(KeyFileError) in settings.player.cache = try Settings.Player.Cached(entry) },
            get: { [("cache", $0.player.cache.words)] }),

        switched(
            "movie", "resume", \.movie.resume,
            "Whether a film of ten minutes or more goes on where its user left it. off: every film begins at its beginning, and "
                + "no place is kept. Read when the movie player starts."),
        SettingKey(
            section: "movie", key: "output", kind: .output,
            meaning:
                "Where films are shown to which no output was given. auto: in a window of X11 if a server answers, else in one "
                + "of Wayland, else nowhere; x11, wayland or none; pipewire or pipewire:NODE: as a node of PipeWire, from which "
                + "other programs read the pictures; x11:ID: in that window. Read when the movie player starts.",
            set: { settings, entry throws(KeyFileError) in settings.movie.output = try MovieOutput(entry) },
            get: { [("output", $0.movie.output.word)] }),

        word(
            "camera", "portal", \.camera.portal,
            "Whether cameras are used through the camera portal of the desktop, which asks the user. auto: if sessiond-capture "
                + "runs in a sandbox (Flatpak, snap); always; never: PipeWire and V4L2 directly. Read when the plugin starts."
        ),
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
            meaning: meaning + " any: every process of the user outside of sandboxes; or a list of desktop entry ids "
                + "and absolute paths of executables, separated by ;. Empty: none.",
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
            throw entry.refusal("'any' cannot be combined with names; write only any, or only names")
        } else if let relative = names.first(where: { $0.contains("/") && !$0.hasPrefix("/") }) {
            throw entry.refusal("\(quoted(relative)) is not an absolute path; start it with /")
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

extension PlaylistEntry.Spoken {
    /// The word of the settings.
    fileprivate var word: String { rawValue + "s" }
}

extension Settings.Player.Cached {
    fileprivate init(_ entry: KeyFile.Entry) throws(KeyFileError) {
        switch try entry.text() {
        case "all": self = .all
        case "off": self = .only([])
        case let text:
            var kinds: Set<PlaylistEntry.Spoken> = []
            for part in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "," || $0 == ";" }) {
                let word = part.filter { $0 != " " && $0 != "\t" }
                guard let kind = PlaylistEntry.Spoken.allCases.first(where: { $0.word == word }) else {
                    let known = PlaylistEntry.Spoken.allCases.map(\.word).joined(separator: ", ")
                    throw entry.refusal("cache cannot be \(quoted(word)); write off, all, or some of \(known)")
                }
                kinds.insert(kind)
            }
            self = .only(kinds)
        }
    }

    fileprivate var words: String {
        switch self {
        case .all: "all"
        case .only(let kinds) where kinds.isEmpty: "off"
        case .only(let kinds):
            PlaylistEntry.Spoken.allCases.filter(kinds.contains).map(\.word).joined(separator: ", ")
        }
    }
}

extension MovieOutput {
    fileprivate init(_ entry: KeyFile.Entry) throws(KeyFileError) {
        let word = try entry.text()
        do throws(SessionError) {
            self = try MovieOutput(word)
        } catch {
            throw entry.refusal(error.reason)
        }
    }
}

extension Settings.Role {
    /// The defaults for the roles that PulseAudio and PipeWire define.
    static let defaults: [String: Settings.Role] = {
        let call = Settings.Role(known(.playAndRecord, .voiceChat), sessionClass: .call)
        let video = Settings.Role(known(.playback, .moviePlayback))
        let event = Settings.Role(known(.ambient))
        return [
            "phone": call, "communication": call,
            "alarm": Settings.Role(known(.playback), sessionClass: .alert),
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

    /// Nil for an empty value: the role is ignored.
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
                    "\(quoted(word)) is unknown or given twice; write a category, at most one mode, "
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

    /// The words that describe this role, without words that others imply.
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
