import DBus
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport

/// The real daemon with the library and the player, a sound server, and music that can be played: as an app of SessionKit
/// finds it.
final class MusicStage {
    let pulse: any PrivateServer
    let daemon: DaemonStage
    let home: PrivateFolder
    let music: String
    let environment: [String: String]
    let library: MediaLibrary

    var bus: BusAddress { .custom(daemon.bus.address) }

    /// - Parameters:
    ///   - songs: title, artist, album, number, seconds.
    ///   - more: variables of the daemon and its plugins.
    init(
        _ songs: [(String, String, String, Int, Double)] = MusicStage.homogenic, more: [String: String] = [:]
    ) async throws {
        pulse = try ServerKind.standard.server()
        home = try PrivateFolder()
        music = try home.folder("songs")
        let plugins = try home.folder(".local/share/sessiond/plugins")
        for name in ["library", "player"] {
            try FileManager.default.copyItem(
                atPath: repository.path + "/data/plugins/\(name).plugin", toPath: plugins + "/\(name).plugin")
        }
        let own = [
            "HOME": home.path, "XDG_STATE_HOME": home.path + "/state", "PATH": "/usr/bin:/bin",
            "GST_REGISTRY": PlayerStage.registry,
        ].merging(more) { $1 }
        daemon = try DaemonStage(pulse: pulse, environment: own)
        environment = try SessionctlStage.environment(on: daemon.bus, pulse).merging(own) { $1 }
        // The names of the plugins beside the tests.
        _ = try builtProduct(named: "sessiond-player")
        for (title, artist, album, number, seconds) in songs {
            try Child.run(
                "ffmpeg",
                [
                    "-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=d=\(seconds):r=8000", "-metadata",
                    "title=\(title)", "-metadata", "artist=\(artist)", "-metadata", "album=\(album)", "-metadata",
                    "track=\(number)", "\(music)/\(title).flac",
                ])
        }
        library = MediaLibrary(bus: .custom(daemon.bus.address))
        guard daemon.waitForServer() else { throw SupportError("sessiond does not find the sound server") }
        try await library.addFolder(music)
        try await waitUntilScanned(songs.count)
    }

    static let homogenic = [
        ("Hunter", "Björk", "Homogenic", 1, 60.0), ("Jóga", "Björk", "Homogenic", 2, 60.0),
        ("Unravel", "Björk", "Homogenic", 3, 60.0), ("Thunderstruck", "AC/DC", "The Razors Edge", 1, 60.0),
    ]

    func waitUntilScanned(_ count: Int) async throws {
        let changes = try await library.subscribe()
        while true {
            let (found, isScanning) = (try await library.count(MediaQuery()), try await library.isScanning)
            if found >= count, !isScanning { return }
            guard await firstElement(of: changes) != nil else { throw SupportError("no scan of \(count) files") }
        }
    }

    private var pluginEnvironment: [String: String] {
        // Where the plugins are, if the tests are run by a program elsewhere.
        let folder = (try? builtProduct(named: "sessiond-player")).map { ($0 as NSString).deletingLastPathComponent }
        let own = ["GST_REGISTRY": PlayerStage.registry, "PATH": (folder ?? "") + ":/usr/bin:/bin"]
        return pulse.environment.merging(own) { $1 }
    }

    /// For an app on a terminal, which finds `sessionctl`.
    func environmentOfATerminal() throws -> [String: String] {
        let folder = (try builtProduct(named: "sessionctl") as NSString).deletingLastPathComponent
        return environment.merging(["PATH": folder + ":/usr/bin:/bin", "TERM": "xterm", "LC_ALL": "C.UTF-8"]) { $1 }
    }

    func player(_ kind: MusicPlayer.Kind, name: String? = nil) -> MusicPlayer {
        MusicPlayer(kind, name: name, bus: bus, environment: pluginEnvironment)
    }

    func player(in session: AudioSession) -> MusicPlayer {
        MusicPlayer(session: session, environment: pluginEnvironment)
    }

    /// The properties of the sessions with that name.
    func session(_ name: String) throws -> [String: Value]? {
        try daemon.sessions().values.first { $0["Name"]?.stringValue == name }
    }

    /// The process that owns the name of a plugin; 0: none.
    func process(of kind: PluginKind) throws -> Int32 {
        let names = try daemon.observer.askBusAndWait("ListNames", timeout: 5).first?.stringsValue ?? []
        guard let name = names.first(where: { $0.hasPrefix(kind.busName) }) else { return 0 }
        return Int32((try? daemon.observer.credentialsAndWait(of: name, timeout: 5).processID) ?? 0)
    }
}

/// The next matching element of a sequence; nil if none comes within thirty seconds.
func firstElement<Element: Sendable>(
    of stream: AsyncStream<Element>, where test: @escaping @Sendable (Element) -> Bool = { _ in true }
) async -> Element? {
    await withTaskGroup(of: Element?.self) { group in
        group.addTask { await stream.first(where: test) }
        group.addTask {
            try? await Task.sleep(for: .seconds(30))
            return nil
        }
        defer { group.cancelAll() }
        return await group.next() ?? nil
    }
}
