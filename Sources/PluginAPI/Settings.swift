/// The daemon's settings, typed and validated.
///
/// Starts with the defaults; each merged file overrides the keys it contains. Pure: the caller reads the files. The
/// table in ``SettingKey`` describes each key.
public struct Settings: Sendable, Hashable, Codable {
    public var interruption = Interruption()
    public var ducking = Ducking()
    public var enforcement = Enforcement()
    public var adoption = Adoption()
    /// How a stream with a `media.role` is adopted, by the role in lower case; compare roles without case.
    public var roles: [String: Role] = Role.defaults
    public var routes = Routes()
    public var mpris = MPRIS()
    public var privileges = Privileges()
    public var limits = Limits()
    public var sleep = Sleep()
    public var library = Library()
    public var cache = Cache()
    public var player = Player()
    public var movie = Movie()
    public var camera = Camera()

    /// How long claims last.
    public struct Interruption: Sendable, Hashable, Codable {
        /// The grace period in seconds.
        public var grace = 5.0
        /// Seconds after which an interruption ends without the should-resume hint; 0: no limit.
        public var maxAge = 0.0
        /// Seconds after which a client that interrupts others without playing is asked whether it still runs; 0: never.
        public var longest = 0.0
    }

    /// How other sessions are ducked.
    public struct Ducking: Sendable, Hashable, Codable {
        /// Decibels, at most 0.
        public var gain = -12.0
        /// Seconds of the ramp down.
        public var attack = 0.08
        /// Seconds of the ramp up.
        public var release = 0.4
        /// Seconds to stay ducked between prompts.
        public var hold = 0.25
        /// Whether a stream that ducks others only because of its role does so only while it makes a sound.
        public var silentStreams = false
        /// Seconds after which a client that lowers others without playing is asked whether it still runs; 0: never.
        public var longest = 45.0
        /// Whether screen readers, and streams with the role `a11y`, duck others while they speak.
        public var screenReaders = false
        /// Whether alerts are ducked, too.
        public var alerts = false
    }

    /// How the daemon enforces the rules at the sound server.
    public struct Enforcement: Sendable, Hashable, Codable {
        /// Which sessions it silences.
        public enum Mode: String, CaseIterable, Sendable, Hashable, Codable {
            /// None.
            case off
            /// Sessions that continue to play after they were interrupted.
            case cooperative
            /// Also adopted programs.
            case full
        }
        public var mode = Mode.full
        /// Seconds in which an interrupted session must fall silent.
        public var deadline = 0.25
    }

    /// Whether programs that do not use sessiond are adopted.
    public struct Adoption: Sendable, Hashable, Codable {
        /// How they are adopted.
        public enum Streams: String, CaseIterable, Sendable, Hashable, Codable {
            /// Not at all.
            case off
            /// Silent during calls and alerts and ducked by prompts; they never interrupt each other.
            case calls
            /// As full sessions: the newest interrupts the others.
            case all
        }
        public var streams = Streams.calls
        /// Which activity counts as a call although no client declared one.
        public enum Calls: String, CaseIterable, Sendable, Hashable, Codable {
            /// None, not even a stream with a label.
            case off
            /// Streams whose `media.role` is that of a call.
            case labelled
            /// In addition, programs that are known to make calls, while they record from a real source and play.
            case known
            /// In addition, any program that does so.
            case any
        }
        public var calls = Calls.known
        /// More programs that make calls, in addition to ``knownCallPrograms``, named as in ``never``; `*` at the end
        /// matches anything.
        public var callPrograms: [String] = []
        /// Whether a recording with the label of a call is a call although its program does not play.
        public var labelAlone = false
        /// Programs that are never adopted: by application id, application name, or the path or file name of the
        /// executable, also by the name under which it was started.
        public var never: [String] = []
        /// Programs that are always adopted as full sessions, named likewise; ``never`` has priority.
        public var always: [String] = []
        /// Whether no program is adopted at all.
        public var isOff: Bool { streams == .off && always.isEmpty }
    }

    /// The session for streams with a role.
    public struct Role: Sendable, Hashable, Codable {
        public let configuration: Configuration
        public let sessionClass: SessionClass

        public init(_ configuration: Configuration, sessionClass: SessionClass = .app) {
            self.configuration = configuration
            self.sessionClass = sessionClass
        }
    }

    /// The consequences of unplugging an output and plugging it in again.
    public struct Routes: Sendable, Hashable, Codable {
        /// What falls silent when its output is unplugged.
        public enum Unplug: String, CaseIterable, Sendable, Hashable, Codable {
            /// Nothing.
            case off
            /// The now-playing session and adopted MPRIS players.
            case on
            /// The same as ``on``.
            case players
            /// In addition, programs that can only be held at the sound server.
            case all
        }
        public var unplug = Unplug.on
        /// Programs that an unplug never pauses, named as in ``Adoption/never``.
        public var noUnplug: [String] = []
        /// Seconds within which a replug ends that pause with the should-resume hint; 0: never.
        public var replug = 30.0
    }

    /// How MPRIS players are controlled.
    public struct MPRIS: Sendable, Hashable, Codable {
        /// Pause and resume players that are interrupted through MPRIS.
        public var pause = true
        /// Resume the players that were paused.
        public var resume = true
        /// Whether the player in front is `org.mpris.MediaPlayer2.sessiond`.
        public var mediaKeys = true
        /// Players that media keys never reach, named as in ``Adoption/never``, or by their names on the bus.
        public var noMediaKeys: [String] = []
    }

    /// What happens when the machine sleeps.
    public struct Sleep: Sendable, Hashable, Codable {
        /// Interrupt apps before the machine sleeps.
        public var pause = true
        /// Whether they get the should-resume hint when it has woken up.
        public var resume = false
    }

    /// Which programs may use a privileged class.
    public struct Privileges: Sendable, Hashable, Codable {
        /// The programs that may use a class.
        public enum Holder: Sendable, Hashable, Codable {
            /// Every process of the user outside of sandboxes.
            case anyone
            /// Desktop entry ids, and absolute paths of executables; empty: none.
            case only([String])
        }
        public var call = Holder.anyone
        public var alert = Holder.anyone
    }

    /// Limits, so that no client exhausts the daemon.
    public struct Limits: Sendable, Hashable, Codable {
        /// Most sessions at the same time.
        public var sessions = 1024
        public var sessionsPerClient = 32
        /// Decisions that the history keeps.
        public var history = 512
        /// Most bytes of UTF-8 in a name or uid from a client.
        public var stringLength = 255
    }

    /// The cache for media of the web.
    public struct Cache: Sendable, Hashable, Codable {
        /// The most that it keeps, in gigabytes (10⁹ bytes).
        public var size = 1.0
        /// Whether missing parts are fetched while no player waits for others.
        public var fill = true
        /// Whether a request ends where the next part begins that is there.
        public var bounded = true
    }

    /// The players.
    public struct Player: Sendable, Hashable, Codable {
        /// What they read from the web through the cache.
        public enum Cached: Sendable, Hashable, Codable {
            /// Only these; empty: nothing.
            case only(Set<PlaylistEntry.Spoken>)
            case all

            /// Whether it includes an item.
            /// - Parameter spoken: what the item is; nil: music, or unknown.
            public func includes(_ spoken: PlaylistEntry.Spoken?) -> Bool {
                switch self {
                case .all: true
                case .only(let kinds): spoken.map(kinds.contains) ?? false
                }
            }
        }
        public var cache = Cached.only([])
    }

    /// The movie player.
    public struct Movie: Sendable, Hashable, Codable {
        /// Whether a long film goes on where its user left it.
        public var resume = true
        /// Where a player shows films to which no output was given.
        public var output = MovieOutput.automatic
    }

    /// Cameras.
    public struct Camera: Sendable, Hashable, Codable {
        /// Whether cameras are used through the camera portal of the desktop, which asks the user.
        public enum Portal: String, Sendable, Hashable, CaseIterable, Codable {
            case always
            /// In a sandbox only.
            case automatic = "auto"
            case never

            /// - Parameter isSandboxed: whether the program that uses the cameras is in a sandbox.
            public func isUsed(isSandboxed: Bool) -> Bool {
                switch self {
                case .automatic: isSandboxed
                case .always: true
                case .never: false
                }
            }
        }
        public var portal = Portal.automatic
    }

    /// The music library.
    public struct Library: Sendable, Hashable, Codable {
        /// The interval at which folders are checked for which the kernel reports no changes, in seconds.
        public var interval = 300.0
        /// The encoding of texts in tags that do not state one.
        public var tagEncoding = TagEncoding.latin1
    }

    /// An encoding of texts; the values are the words of the settings.
    public enum TagEncoding: String, Sendable, Hashable, CaseIterable, Codable {
        case cp1250, cp1251, cp1252, cp1253, cp1254, cp1255, cp1256, cp1257
        case latin1 = "latin-1"
        case koi8r = "koi8-r"
        case koi8u = "koi8-u"
        case shiftJIS = "shift-jis"
        case eucKR = "euc-kr"
        case gbk, big5
    }

    public init() {}

    /// Applies the keys of the file. Throws at the first error and then leaves the settings unchanged.
    public mutating func merge(_ file: KeyFile) throws(KeyFileError) {
        var result = self
        for section in file.sections {
            guard SettingKey.sections.contains(section.name) else {
                throw KeyFileError(
                    file: file.file, position: section.position,
                    "unknown section [\(section.name.prefix(64))]; use one of "
                        + SettingKey.sections.joined(separator: ", "))
            }
            for entry in section.entries {
                guard let key = SettingKey.find(section: section.name, key: entry.key) else {
                    let known = SettingKey.table.filter { $0.section == section.name }.map(\.key)
                    throw entry.keyRefusal(
                        "unknown key \(quoted(entry.key)) in [\(section.name)]; use one of "
                            + known.joined(separator: ", "))
                }
                try key.set(&result, entry)
            }
        }
        self = result
    }

    /// Parses the bytes of a file and applies it. Throws like ``merge(_:)``.
    public mutating func merge(bytes: [UInt8], file: String) throws(KeyFileError) {
        try merge(KeyFile(bytes: bytes, file: file))
    }

    /// The defaults with the files merged in order: the main file, then its drop-ins by name.
    public init(files: [(name: String, bytes: [UInt8])]) throws(KeyFileError) {
        for file in files { try merge(bytes: file.bytes, file: file.name) }
    }
}
