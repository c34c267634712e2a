import Foundation
import PluginAPI
import TestSupport

/// A daemon that starts the library, a folder with songs, and `sessionctl library` as a person runs it.
final class SessionctlMusicStage {
    let daemon: DaemonStage
    let home: PrivateFolder
    let music: String
    let environment: [String: String]

    init() throws {
        home = try PrivateFolder()
        music = try home.folder("songs")
        let plugins = try home.folder(".local/share/sessiond/plugins")
        try FileManager.default.copyItem(
            atPath: repository.path + "/data/plugins/library.plugin", toPath: plugins + "/library.plugin")
        let own = ["HOME": home.path, "PATH": "/usr/bin:/bin"]
        daemon = try DaemonStage(environment: own)
        environment = try SessionctlStage.environment(on: daemon.bus).merging(own) { $1 }
        try song("1.mp3", ["TIT2": "Jóga", "TPE1": "Björk", "TALB": "Homogenic", "TDRC": "1997"])
        try song("2.mp3", ["TIT2": "Hunter", "TPE1": "Björk", "TALB": "Homogenic", "TDRC": "1997"])
        try song("3.mp3", ["TIT2": "Thunderstruck", "TPE1": "AC/DC", "TALB": "The Razors Edge"])
    }

    func song(_ name: String, _ tags: [String: String]) throws {
        try Data(TaggedMP3.bytes(tags)).write(to: URL(fileURLWithPath: music + "/" + name))
    }

    func uri(_ name: String) -> String { "file://\(music)/\(name)" }

    func run(_ arguments: String...) throws -> SessionctlStage.Outcome {
        let child = try Child(
            try builtProduct(named: "sessionctl"), ["library"] + arguments, environment: environment)
        return try SessionctlStage.outcome(of: child, arguments, 60)
    }
}
