import DBus
import EventLoop
import FileFormats
import Foundation
import Glibc
import SessionBus
import TestSupport
import Testing

/// The real daemon with the plugin for cameras, on a private bus and a private PipeWire with a camera and a microphone.
final class CaptureStage {
    let server: PrivatePipeWire
    let bus: PrivateBus
    let camera: VirtualCamera
    /// Its sound; nil: silence.
    let microphone: VirtualMicrophone?
    let folder: PrivateFolder
    let loop = EventLoop()
    let connection: Connection
    private let daemon: Child
    /// login1, on the same bus.
    private(set) var machine: FakeMachine?
    let environment: [String: String]
    /// The portal and its user, if there is one.
    let desktop: FakeDesktop?

    /// - Parameters:
    ///   - more: of the environment of all programs.
    ///   - properties: of the camera's node.
    ///   - portal: the setting; with it, there is a desktop with a portal.
    ///   - sandbox: the application in whose sandbox the daemon and its plugins run.
    ///   - relay: the daemon and its plugins trust its authority.
    init(
        rate: Int = 30, position: String = "front", hasMachine: Bool = false, hasTicks: Bool = false,
        more: [String: String] = [:], properties: String? = nil, portal: String? = nil, sandbox: String? = nil,
        trusting relay: TLSRelay? = nil
    ) throws {
        bus = try PrivateBus()
        desktop = try portal == nil ? nil : FakeDesktop(on: bus)
        let channels = hasTicks ? " channels=1 channel_map=mono" : ""
        server = try PrivatePipeWire(
            modules: ["module-null-sink sink_name=mic media.class=Audio/Source/Virtual" + channels],
            bus: portal == nil ? nil : bus)
        microphone = hasTicks ? try VirtualMicrophone(server, source: "mic") : nil
        folder = try PrivateFolder()
        if let portal {
            _ = try server.folder.folder("config/sessiond")
            try server.folder.file("config/sessiond/sessiond.conf", "[camera]\nportal = \(portal)\n")
        }
        let plugins = try folder.folder("data/sessiond/plugins")
        let manifest = try String(
            contentsOf: repository.appendingPathComponent("data/plugins/capture.plugin"), encoding: .utf8)
        try manifest.replacingOccurrences(
            of: "Exec=sessiond-capture", with: "Exec=" + (try builtProduct(named: "sessiond-capture"))
        ).write(toFile: plugins + "/capture.plugin", atomically: true, encoding: .utf8)
        let live = try String(
            contentsOf: repository.appendingPathComponent("data/plugins/live.plugin"), encoding: .utf8)
        try live.replacingOccurrences(
            of: "Exec=sessiond-live", with: "Exec=" + (try builtProduct(named: "sessiond-live"))
        ).write(toFile: plugins + "/live.plugin", atomically: true, encoding: .utf8)
        // A plugin knows its kind by the name of its program.
        let effects = try String(
            contentsOf: repository.appendingPathComponent("data/plugins/effects.plugin"), encoding: .utf8)
        symlink(try builtProduct(named: "sessiond-plugin"), folder.path + "/sessiond-effects")
        try effects.replacingOccurrences(of: "Exec=sessiond-effects", with: "Exec=\(folder.path)/sessiond-effects")
            .write(toFile: plugins + "/effects.plugin", atomically: true, encoding: .utf8)
        environment = VirtualCamera.environment(server).merging(bus.environment) { $1 }
            .merging([
                "XDG_DATA_HOME": "/nowhere", "GIO_USE_PROXY_RESOLVER": "dummy", "XDG_DATA_DIRS": folder.path + "/data",
            ]) { $1 }
            .merging(hasMachine ? ["DBUS_SYSTEM_BUS_ADDRESS": bus.address] : [:]) { $1 }.merging(more) { $1 }
        if hasMachine { machine = try FakeMachine(on: bus) }
        camera = try VirtualCamera(server, position: position, rate: rate, properties: properties)
        try desktop?.start(server)
        var program = try builtProduct(named: "sessiond")
        var outside = environment
        if let sandbox {
            program = try FakeDesktop.sandbox(program, as: sandbox, in: folder)
            // As in a sandbox, PipeWire is reached only through the portal.
            outside["PIPEWIRE_REMOTE"] = "/nowhere"
        }
        daemon =
            try relay.map { try Child("unshare", $0.trusting(program, []), environment: outside) }
            ?? Child(program, environment: outside)
        connection = try Connection(.custom(bus.address), loop: loop)
        let isThere = eventually(timeout: 20) {
            (try? connection.askBusAndWait("NameHasOwner", [.string(BusName.service)], timeout: 5))?.first?.boolValue
                == true
        }
        guard isThere else { throw SupportError("sessiond does not start: \(daemon.errors)") }
        // The daemon must have found the microphone.
        let isHeard = eventually(timeout: 20) {
            let answer = try? connection.callAndWait(
                BusName.service, ObjectPath.root, StandardName.properties, "Get",
                [.string(BusName.manager), .string("AvailableInputs")], timeout: 5)
            return answer?.first?.unwrapped.ports.isEmpty == false
        }
        guard isHeard else { throw SupportError("sessiond finds no microphone: \(daemon.errors)") }
        // And the server the camera, which is added in the background.
        let isSeen = eventually(timeout: 20) {
            let nodes = try? Child.run("pw-cli", ["ls", "Node"], environment: environment)
            return nodes?.contains("\"front\"") == true
        }
        guard isSeen else { throw SupportError("PipeWire has no camera") }
    }

    /// What the daemon and the plugin have printed.
    var errors: String { daemon.isRunning ? daemon.errors.joined(separator: "\n") : "sessiond has ended" }
    func path(_ name: String) -> String { folder.path + "/" + name }

    /// `sessionctl camera` with these words.
    func sessionctl(_ words: String...) throws -> Child {
        try Child(try builtProduct(named: "sessionctl"), words, environment: environment)
    }

    /// The name of the plugin on the bus.
    func place() throws -> String {
        let list = try connection.callAndWait(
            BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: 10)
        return try #require(
            (list.first?.arrayValue ?? []).compactMap(\.asProperties)
                .first { $0["kind"]?.stringValue == "capture" }?["bus-name"]?.stringValue)
    }

    /// The process of the plugin.
    func plugin() throws -> Int32 {
        Int32(try connection.credentialsAndWait(of: place(), timeout: 5).processID ?? 0)
    }

    /// The length of the film that the first session records, in seconds.
    func recorded() throws -> Double { try #require(try property("RecordedDuration").doubleValue) }

    /// Of the first session.
    func property(_ name: String) throws -> Value {
        let answer = try connection.callAndWait(
            place(), "/org/sessiond1/capture/session/1", StandardName.properties, "Get",
            [.string(BusName.captureSession), .string(name)], timeout: 10)
        return try #require(answer.first?.unwrapped)
    }

    /// A telephone call.
    func call() throws -> SessionProxyForTests {
        let options: [(String, Value)] = [("category", .string("play-and-record")), ("class", .string("call"))]
        let path = try connection.callAndWait(
            BusName.service, ObjectPath.root, BusName.manager, "CreateSession",
            [.string("Phone"), .properties(options)],
            timeout: 5
        ).first?.objectPathValue
        return SessionProxyForTests(connection, try #require(path))
    }

    struct SessionProxyForTests {
        let connection: Connection
        let path: String

        init(_ connection: Connection, _ path: String) { (self.connection, self.path) = (connection, path) }

        func begin() throws {
            _ = try connection.callAndWait(
                BusName.service, path, BusName.session, "Activate", [.properties([])], timeout: 5)
        }

        func end() throws {
            _ = try connection.callAndWait(
                BusName.service, path, BusName.session, "Deactivate", [.properties([("notify-others", .bool(true))])],
                timeout: 5)
        }
    }
}

/// A film, as ffmpeg reads it.
struct ReadFilm {
    /// The numbers that the pictures carry; -1: it cannot be read.
    let pictures: [Int]
    /// Seconds, by the index.
    let videoLength: Double
    let audioLength: Double?
    let isFragmented: Bool

    /// - Throws: if ffmpeg finds any fault.
    init(_ path: String) throws {
        let text = try Child.run(
            "ffprobe",
            ["-v", "error", "-show_entries", "stream=codec_type,duration:format=duration", "-of", "csv=p=0", path])
        var lengths: [String: Double] = [:]
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: ",").map(String.init)
            if fields.count == 2 { lengths[fields[0]] = Double(fields[1]) }
        }
        audioLength = lengths["audio"]
        let file = path + ".pictures"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-xerror", "-y", "-i", path, "-an", "-vf", "scale=16:2:flags=area", "-vsync",
                "0",
                "-pix_fmt", "gray", "-f", "rawvideo", file,
            ])
        // The sound is decoded as well: a fault ends it.
        if audioLength != nil || path.hasSuffix(".mkv") || path.hasSuffix(".webm") {
            try Child.run("ffmpeg", ["-nostdin", "-v", "error", "-xerror", "-i", path, "-vn", "-f", "null", "-"])
        }
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        pictures = stride(from: 0, to: bytes.count - 31, by: 32).map { place in
            let bits = (0..<16).reduce(0) { $0 | (bytes[place + $1] > 128 ? 1 << $1 : 0) }
            let others = (0..<16).reduce(0) { $0 | (bytes[place + 16 + $1] < 128 ? 1 << $1 : 0) }
            return bits == others ? bits : -1
        }
        videoLength = lengths["video"] ?? Double(pictures.count) / 30
        isFragmented = MovieIndex(Array(path.utf8))?.isFragmented ?? false
    }

    /// How much each number is above the one before.
    var steps: [Int] { zip(pictures, pictures.dropFirst()).map { $1 - $0 } }
    /// Whether the pictures are readable and in their order. The time of a picture is that of its arrival, so on a busy machine one
    /// may be shown twice, and the next one left out.
    var isInOrder: Bool { !pictures.contains(-1) && steps.allSatisfy { $0 >= 0 } }
}
