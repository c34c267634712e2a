/// The daemon's settings, typed and in range (contract §6).
///
/// Starts at the defaults; each file that is merged overrides what it names. Pure: the caller reads the files. The
/// table of keys in ``SettingKey`` says what each one means.
public struct Settings: Sendable, Hashable {
    public var interruption = Interruption()
    public var ducking = Ducking()
    public var enforcement = Enforcement()
    public var adoption = Adoption()
    /// What a stream's `media.role` makes of it, by the role in lower case; compare roles without regard to case.
    public var roles: [String: Role] = Role.defaults
    public var routes = Routes()
    public var mpris = MPRIS()
    public var privileges = Privileges()
    public var limits = Limits()

    /// How long claims last.
    public struct Interruption: Sendable, Hashable {
        /// Seconds an `ended` session that does not come back keeps its claim.
        public var grace = 5.0
        /// Seconds after which a resume is no longer recommended; 0: none.
        public var maxAge = 0.0
    }

    /// How others are lowered.
    public struct Ducking: Sendable, Hashable {
        /// Decibels, at most 0.
        public var gain = -12.0
        /// Seconds to go down.
        public var attack = 0.08
        /// Seconds to come back up.
        public var release = 0.4
        /// Seconds to stay down between prompts.
        public var hold = 0.25
    }

    /// What happens to a session that is told to fall silent and does not.
    public struct Enforcement: Sendable, Hashable {
        /// Whom it reaches.
        public enum Mode: String, CaseIterable, Sendable, Hashable {
            /// Nothing is done at the sound server.
            case off
            /// Sessions that play on after they were told to fall silent.
            case cooperative
            /// Programs that never spoke to the daemon, too.
            case full
        }
        public var mode = Mode.full
        /// Seconds a session that was told has to fall silent.
        public var deadline = 0.25
    }

    /// Whether streams of programs that never spoke to the daemon count as sessions.
    public struct Adoption: Sendable, Hashable {
        /// Which of them, and as what.
        public enum Streams: String, CaseIterable, Sendable, Hashable {
            /// None.
            case off
            /// Silent during calls and alerts and lowered by prompts; they never interrupt each other.
            case calls
            /// As if they had asked for it themselves: the newest interrupts the others.
            case all
        }
        public var streams = Streams.calls
        /// What counts as a call that no client declared.
        public enum Calls: String, CaseIterable, Sendable, Hashable {
            /// Nothing: a stream's label counts as nothing, too.
            case off
            /// Streams whose `media.role` says so.
            case labelled
            /// Besides, programs that are known to make calls, while they record from a real source and play.
            case known
            /// Any program that does so.
            case any
        }
        public var calls = Calls.known
        /// Programs that count as known to make calls beside ``knownCallPrograms``, named as in ``never``; `*` at the end
        /// stands for anything.
        public var callPrograms: [String] = []
        /// Programs that are left alone whatever `streams` says: by application id, application name, or the executable's
        /// path or file name.
        public var never: [String] = []
        /// Programs, named alike, that are full sessions whatever `streams` says; ``never`` goes before.
        public var always: [String] = []
        /// Whether no program is adopted at all.
        public var isOff: Bool { streams == .off && always.isEmpty }
    }

    /// The session an adopted stream of a role stands for.
    public struct Role: Sendable, Hashable {
        public let configuration: Configuration
        public let sessionClass: SessionClass

        public init(_ configuration: Configuration, sessionClass: SessionClass = .app) {
            self.configuration = configuration
            self.sessionClass = sessionClass
        }
    }

    /// What happens when a device goes and comes.
    public struct Routes: Sendable, Hashable {
        /// Pause the now-playing session when its output goes, and keep its sound from every other one.
        public var unplug = true
        /// Seconds within which an output that comes back offers to resume what its going paused; 0: never.
        public var replug = 30.0
    }

    /// What is done to the players of programs that speak MPRIS.
    public struct MPRIS: Sendable, Hashable {
        /// Pause and resume players that are interrupted through MPRIS.
        public var pause = true
        /// Whether the player in front is `org.mpris.MediaPlayer2.sessiond`.
        public var mediaKeys = true
    }

    /// Who may take a privileged class.
    public struct Privileges: Sendable, Hashable {
        /// Whom a class is given to.
        public enum Holder: Sendable, Hashable {
            /// Any unsandboxed process of the user.
            case anyone
            /// Desktop entries by their id, executables by their absolute path; none of them where empty.
            case only([String])
        }
        public var call = Holder.anyone
        public var alert = Holder.anyone
    }

    /// How much there may be, so that no client uses up the daemon.
    public struct Limits: Sendable, Hashable {
        /// Sessions altogether.
        public var sessions = 1024
        public var sessionsPerClient = 32
        /// Decisions remembered for `History`.
        public var history = 512
        /// Bytes of UTF-8 in a name or uid that a client gives.
        public var stringLength = 255
    }

    public init() {}

    /// Takes over what the file names. Throws at the first mistake and then leaves the settings as they were.
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

    /// Parses and takes over the bytes of a file. Throws as ``merge(_:)`` does.
    public mutating func merge(bytes: [UInt8], file: String) throws(KeyFileError) {
        try merge(KeyFile(bytes: bytes, file: file))
    }

    /// The defaults with the files merged in order: the main file, then its drop-ins by name.
    public init(files: [(name: String, bytes: [UInt8])]) throws(KeyFileError) {
        for file in files { try merge(bytes: file.bytes, file: file.name) }
    }
}
