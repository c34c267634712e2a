/// What a plugin is for, and all that follows from it: one row of ``all`` for each kind that is shipped.
///
/// Bus names, object paths, programs, usage texts and what `sessionctl` starts come from here; the manifests, the bus
/// policy, the interface descriptions and the Makefile are held against it by tests. A third party's kind is a value of
/// its own, outside of ``all``.
public struct PluginKind: Sendable, Hashable {
    /// `Kind` in the manifest, and what `Open` asks for.
    public let word: String
    /// The id of the plugin that is shipped.
    public let id: String
    /// Its program.
    public let program: String
    /// The D-Bus interface it serves; `data/dbus` has the description by that name.
    public let interface: String
    /// Where it serves it.
    public let objectPath: String
    /// What its programs take as a name on the bus, before `.instance` and the process's number.
    public let busName: String
    /// The category of the program's session, unless it is told another; nil: it needs no session, because nothing that
    /// it does is heard.
    public let category: Category?
    /// Whether it records: then it can be told from which input and for how long.
    public let records: Bool
    /// What the program takes on its command line, and what it does with it, for the usage text.
    public let item: String
    public let action: String

    public init(
        word: String, id: String, program: String, interface: String, objectPath: String, busName: String,
        category: Category?, records: Bool = false, item: String, action: String
    ) {
        self.word = word
        self.id = id
        self.program = program
        self.interface = interface
        self.objectPath = objectPath
        self.busName = busName
        self.category = category
        self.records = records
        self.item = item
        self.action = action
    }

    /// Whether its programs have a session.
    public var needsSession: Bool { category != nil }

    /// Every kind that is shipped.
    public static let all = [player, recorder, soundEffects]

    /// Serves MPRIS, too.
    public static let player = PluginKind(
        word: "player", id: "org.sessiond1.player", program: "sessiond-player",
        interface: "org.sessiond1.Player", objectPath: "/org/sessiond1/player",
        busName: "org.mpris.MediaPlayer2.sessiond_player", category: .playback, item: "URI|FILE",
        action: "Plays URI to its end")

    public static let recorder = PluginKind(
        word: "recorder", id: "org.sessiond1.recorder", program: "sessiond-recorder",
        interface: "org.sessiond1.Recorder", objectPath: "/org/sessiond1/recorder",
        busName: "org.sessiond1.Recorder", category: .record, records: true, item: "FILE",
        action: "Records into FILE until it is stopped")

    public static let soundEffects = PluginKind(
        word: "sound-effects", id: "org.sessiond1.effects", program: "sessiond-effects",
        interface: "org.sessiond1.SoundEffects", objectPath: "/org/sessiond1/effects",
        busName: "org.sessiond1.SoundEffects", category: .ambient, item: "FILE",
        action: "Plays FILE, a sound of at most 30 s, to its end")
}
