import Foundation
import TestSupport

/// The real daemon with PipeWire, for films whose pictures are a node.
final class NodeStage {
    let server: PrivatePipeWire
    /// Of the sound.
    let sound: any PrivateServer
    let ear: Ear
    let bus: PrivateBus
    private let daemon: Child
    private(set) var environment: [String: String]

    /// - Parameters:
    ///   - output: of `[movie]` in the settings.
    ///   - hasOwnSound: the sound has a server of its own.
    ///   - isOpened: programs open the movie player by the daemon.
    init(output: String? = nil, hasOwnSound: Bool = false, isOpened: Bool = false) throws {
        server = try PrivatePipeWire()
        let other: ServerKind = ServerKind.pulseAudio.isHere ? .pulseAudio : .pipeWire
        sound = hasOwnSound ? try other.server() : server
        ear = try Ear(sound, sink: "speaker")
        bus = try PrivateBus()
        environment = VirtualCamera.environment(server).merging(bus.environment) { $1 }
        environment["PULSE_SERVER"] = sound.serverString
        environment["HOME"] = bus.folder.path
        environment["XDG_CACHE_HOME"] = bus.folder.path + "/cache"
        if let output {
            environment["XDG_CONFIG_HOME"] = try bus.folder.folder("config")
            try Data("[movie]\noutput = \(output)\n".utf8).write(
                to: URL(fileURLWithPath: try bus.folder.folder("config/sessiond") + "/sessiond.conf"))
        }
        if isOpened {
            let plugins = try bus.folder.folder(".local/share/sessiond/plugins")
            try FileManager.default.copyItem(
                atPath: repository.path + "/data/plugins/movie.plugin", toPath: plugins + "/movie.plugin")
        }
        daemon = try Child(try builtProduct(named: "sessiond"), environment: environment)
        guard
            eventually(
                timeout: 30,
                {
                    let status = try? sessionctl("status", "--json")
                    return status?.wait(timeout: 20) == .code(0)
                        && status?.text.contains("\"ServerConnected\":true") == true
                })
        else { throw SupportError("sessiond does not find the sound server: \(daemon.errors)") }
    }

    func sessionctl(_ words: String...) throws -> Child {
        try Child(try builtProduct(named: "sessionctl"), words, environment: environment)
    }

    /// Starts the film, and waits until it is heard.
    func watch(_ words: String..., film: String = "clicks.mp4") throws -> Child {
        let watch = try Child(
            try builtProduct(named: "sessionctl"),
            ["watch", "--name", "Film", "--loop"] + words + [try TestMedia.named(film).path()],
            environment: environment)
        guard ear.waitUntil(440, above: -40, timeout: 60) else {
            throw SupportError("the film is not heard: \(watch.output) \(watch.errors)")
        }
        return watch
    }

    func reader(_ node: String = "film", width: Int = 320, height: Int = 180) throws -> NodeReader {
        try NodeReader(node, server, width: width, height: height)
    }

    /// Whether a program sees the film that connects as often as it must: one that comes while the node is made again waits for
    /// ever, or ends.
    func isSeen(by reader: NodeReader? = nil) throws -> Bool {
        if let reader, moves(reader, within: 8) { return true }
        for _ in 0..<6 {
            let reader = try self.reader()
            defer { reader.leave() }
            if moves(reader, within: 6) { return true }
        }
        return false
    }

    /// When a program sees the film again that connects every two seconds, in seconds; nil: not in half a minute.
    func timeUntilSeen() throws -> Double? {
        let start = monotonicNow()
        while monotonicNow() < start + 30 {
            let reader = try self.reader()
            defer { reader.leave() }
            if moves(reader, within: 2) { return monotonicNow() - start }
        }
        return nil
    }

    /// Whether it reads one picture after the other.
    func moves(_ reader: NodeReader, within seconds: Double = 20) -> Bool {
        var seen: Set<Int> = []
        return eventually(timeout: seconds) {
            seen.insert(reader.number())
            return seen.count > 8
        }
    }
}
