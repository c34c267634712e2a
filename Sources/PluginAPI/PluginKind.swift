/// A kind of plugin: its names, its interfaces, and which sessions it has.
///
/// ``all`` is the table of the kinds in this package.
///
/// Bus names, object paths, programs, usage texts and the programs that `sessionctl` starts come from this table. Tests
/// compare the manifests, the bus policy, the interface descriptions and the Makefile with it. A third party may define
/// another kind; it is not in the table.
public struct PluginKind: Sendable, Hashable {
    /// The sessions of a plugin program.
    public enum Sessions: Sendable, Hashable {
        /// None, because it neither plays nor records.
        case none
        /// One for the program, of that category unless its command line gives another one.
        case one(Category)
        /// One for each object that a client creates in it.
        case perObject
    }

    /// `Kind` in the manifest, and the first argument of `Open`.
    public let word: String
    /// The id of the plugin in this package.
    public let id: String
    /// Its program.
    public let program: String
    /// The Debian package with the plugin; empty: it is not in this project.
    public let package: String
    /// Its D-Bus interfaces on one object, its own one first; the descriptions in `data/dbus` have the same names.
    public let interfaces: [String]
    /// The path of the object with these interfaces.
    public let objectPath: String
    /// The bus name of its programs, without `.instance` and the process id.
    public let busName: String
    /// Which sessions its programs have.
    public let sessions: Sessions
    /// Whether it records; then it has the options `--input` and `--duration`.
    public let records: Bool
    /// The argument of the program, and its meaning, for the usage text. Empty: the program has no argument and only
    /// serves D-Bus.
    public let item: String
    public let action: String

    public init(
        word: String, id: String, program: String, package: String = "", interfaces: [String], objectPath: String,
        busName: String, sessions: Sessions, records: Bool = false, item: String, action: String
    ) {
        self.word = word
        self.id = id
        self.program = program
        self.package = package
        precondition(!interfaces.isEmpty, "a kind has an interface")
        self.interfaces = interfaces
        self.objectPath = objectPath
        self.busName = busName
        self.sessions = sessions
        self.records = records
        self.item = item
        self.action = action
    }

    /// The interface that only this kind has.
    public var interface: String { interfaces[0] }

    /// The default category of the program's session; nil: the program itself has no session.
    public var category: Category? {
        switch sessions {
        case .one(let category): category
        case .none, .perObject: nil
        }
    }

    /// Whether it plays or records.
    public var needsSession: Bool { sessions != .none }

    /// The bus name, without `.instance` and the process id, of a program that plays or records in the session of the
    /// program that started it. On a desktop's bus it is not the name of a media player: the program that started it is
    /// the player. The policy of the system bus knows only ``busName``.
    package func hostedName(onSystemBus isSystem: Bool) -> String { isSystem ? busName : "org.sessiond1.Hosted" }

    /// Every kind in this package.
    public static let all = [
        player, recorder, soundEffects, moviePlayer, live, capture, assets, uploads, cache, library,
    ]

    /// It also implements MPRIS.
    public static let player = PluginKind(
        word: "player", id: "org.sessiond1.player", program: "sessiond-player", package: "sessiond-plugins",
        interfaces: ["org.sessiond1.Player"], objectPath: "/org/sessiond1/player",
        busName: "org.mpris.MediaPlayer2.sessiond_player", sessions: .one(.playback), item: "URI|FILE",
        action: "Plays URI to its end")

    public static let recorder = PluginKind(
        word: "recorder", id: "org.sessiond1.recorder", program: "sessiond-recorder", package: "sessiond-plugins",
        interfaces: ["org.sessiond1.Recorder"], objectPath: "/org/sessiond1/recorder",
        busName: "org.sessiond1.Recorder", sessions: .one(.record), records: true, item: "FILE",
        action: "Records into FILE until it is stopped")

    public static let soundEffects = PluginKind(
        word: "sound-effects", id: "org.sessiond1.effects", program: "sessiond-effects", package: "sessiond-plugins",
        interfaces: ["org.sessiond1.SoundEffects"], objectPath: "/org/sessiond1/effects",
        busName: "org.sessiond1.SoundEffects", sessions: .one(.ambient), item: "FILE",
        action: "Plays FILE, a sound of at most 30 s, to its end")

    /// A player with pictures. It also implements `org.sessiond1.Player` and MPRIS.
    public static let moviePlayer = PluginKind(
        word: "movie-player", id: "org.sessiond1.movie", program: "sessiond-movie", package: "sessiond-movie",
        interfaces: ["org.sessiond1.MoviePlayer", "org.sessiond1.Player"], objectPath: "/org/sessiond1/movie",
        busName: "org.mpris.MediaPlayer2.sessiond_movie", sessions: .one(.playback), item: "URI|FILE",
        action: "Shows the film URI to its end")

    /// Live streams to servers. Each has a session of its own if it has a microphone.
    public static let live = PluginKind(
        word: "live", id: "org.sessiond1.live", program: "sessiond-live", package: "sessiond-live",
        interfaces: ["org.sessiond1.Live"], objectPath: "/org/sessiond1/live", busName: "org.sessiond1.Live",
        sessions: .perObject, item: "", action: "Sends live streams for other programs")

    /// Cameras: photos, and films with sound. Each capture session of a client has a session of its own while it has sound.
    public static let capture = PluginKind(
        word: "capture", id: "org.sessiond1.capture", program: "sessiond-capture", package: "sessiond-capture",
        interfaces: ["org.sessiond1.Capture"], objectPath: "/org/sessiond1/capture", busName: "org.sessiond1.Capture",
        sessions: .perObject, item: "", action: "Takes photos and records films with cameras for other programs")

    /// Films and sounds as files: their properties, pictures, thumbnails and exports. It plays no sound.
    public static let assets = PluginKind(
        word: "assets", id: "org.sessiond1.assets", program: "sessiond-assets", package: "sessiond-films",
        interfaces: ["org.sessiond1.Assets"], objectPath: "/org/sessiond1/assets",
        busName: "org.sessiond1.Assets", sessions: .none, item: "FILE", action: "Checks that FILE can be played")

    /// Uploads. It has no session, because it plays no sound.
    public static let uploads = PluginKind(
        word: "uploads", id: "org.sessiond1.transfer", program: "sessiond-transfer", package: "sessiond-transfer",
        interfaces: ["org.sessiond1.Uploads"], objectPath: "/org/sessiond1/uploads", busName: "org.sessiond1.Uploads",
        sessions: .none, item: "", action: "Uploads files to web servers for other programs")

    /// A cache for media of the web, which players read while it is fetched. It has no session, because it plays no sound.
    public static let cache = PluginKind(
        word: "cache", id: "org.sessiond1.cache", program: "sessiond-cache", package: "sessiond-transfer",
        interfaces: ["org.sessiond1.AssetCache"], objectPath: "/org/sessiond1/cache",
        busName: "org.sessiond1.AssetCache", sessions: .none, item: "",
        action: "Keeps media of the web while players read it")

    /// The music library of a user. It has no session, because players play the music.
    public static let library = PluginKind(
        word: "library", id: "org.sessiond1.library", program: "sessiond-library", package: "sessiond-library",
        interfaces: ["org.sessiond1.Library"], objectPath: "/org/sessiond1/library", busName: "org.sessiond1.Library",
        sessions: .none, item: "", action: "Finds, keeps and searches the user's music for other programs")
}
