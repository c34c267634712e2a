import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport

/// The plugin of the library on a bus of its own, a folder of music, and a client that knows only the contract.
final class LibraryStage {
    let bus: PrivateBus
    let home: PrivateFolder
    /// A folder of the library.
    let music: String
    let loop = EventLoop()
    let connection: Connection
    private(set) var plugin: Child
    private(set) var place = ""
    /// Signals of the plugin: their names and values.
    private(set) var told: [(member: String, values: [Value])] = []
    private var subscriptions: [Subscription] = []
    /// A command that runs the plugin, such as one that makes a world of mounts for it.
    private let within: [String]

    /// - Parameter adds: whether the folder is in the library from the beginning.
    init(adds: Bool = true, within: [String] = [], _ fill: (LibraryStage) throws -> Void = { _ in }) throws {
        self.within = within
        bus = try PrivateBus()
        home = try PrivateFolder()
        music = try home.folder("songs")
        connection = try Connection(.custom(bus.address), loop: loop)
        plugin = try LibraryStage.start(bus, home, within)
        subscriptions = [
            connection.subscribe { [unowned self] message in
                guard message.sender == place, let member = message.member, let values = try? message.arguments() else {
                    return
                }
                told.append((member, values))
            }
        ]
        place = try connection.owner(of: .library, plugin)
        try fill(self)
        if adds {
            _ = try call("AddFolder", [.string(music), .properties([])])
            guard waitUntilScanned() else { throw SupportError("no scan: \(properties())") }
        }
    }

    private static func start(_ bus: PrivateBus, _ home: PrivateFolder, _ within: [String]) throws -> Child {
        let words = within + [try builtProduct(named: "sessiond-library")]
        return try Child(
            words[0], Array(words.dropFirst()),
            environment: [
                "PATH": "/usr/bin:/bin", "HOME": home.path, "XDG_DATA_HOME": home.path + "/data",
                "XDG_CACHE_HOME": home.path + "/cache",
            ].merging(bus.environment) { $1 })
    }

    /// The plugin ends.
    func stop(_ signal: Int32 = SIGTERM) {
        plugin.signal(signal)
        _ = plugin.wait(timeout: 20)
    }

    /// Another process, after the end of the one before, that may not serve yet.
    func launch() throws { plugin = try LibraryStage.start(bus, home, within) }

    /// Another process, after the end of the one before.
    func begin() throws {
        try launch()
        place = try connection.owner(of: .library, plugin)
    }

    func restart(_ signal: Int32 = SIGTERM) throws {
        stop(signal)
        try begin()
        guard waitUntilScanned() else { throw SupportError("no scan: \(properties())") }
    }

    func call(_ member: String, _ arguments: [Value] = []) throws(Failure) -> [Value] {
        try connection.callAndWait(
            place, PluginKind.library.objectPath, PluginKind.library.interface, member, arguments, timeout: 60)
    }

    /// The name of the error of a call that is refused.
    func refusal(_ member: String, _ arguments: [Value]) -> String {
        do throws(Failure) {
            _ = try call(member, arguments)
            return ""
        } catch {
            return error.name.split(separator: ".").last.map(String.init) ?? ""
        }
    }

    func properties() -> [String: Value] {
        let values = try? connection.callAndWait(
            place, PluginKind.library.objectPath, StandardName.properties, "GetAll",
            [.string(PluginKind.library.interface)], timeout: 60)
        return values?.first?.asProperties ?? [:]
    }

    var count: Int { Int(properties()["Count"]?.uint32Value ?? .max) }
    var status: [String: Value] { properties()["Status"]?.asProperties ?? [:] }
    /// Why each file that cannot be read cannot, by its name.
    func failures() throws -> [String: String] {
        let files = try call("Failures", [.uint32(5_000)]).first?.arrayValue ?? []
        return Dictionary(
            files.compactMap(\.structureValue).map { fields in
                (String((fields[0].stringValue ?? "").split(separator: "/").last ?? ""), fields[1].stringValue ?? "")
            }, uniquingKeysWith: { $1 })
    }

    func wait(timeout: Double = 30, _ condition: () -> Bool) -> Bool {
        eventually(timeout: timeout) {
            _ = eventually {
                loop.iterate(blocking: false)
                return !connection.hasBacklog
            }
            return condition()
        }
    }

    func waitUntilScanned(timeout: Double = 120) -> Bool {
        wait(timeout: timeout) {
            let properties = properties()
            return properties["Scanning"] == .bool(false) && (properties["LastScan"]?.uint64Value ?? 0) > 0
        }
    }

    /// Waits for the signals of what happened so far, and forgets them.
    func forget() {
        _ = wait { told.contains { $0.member == "ItemsChanged" } && told.last?.member != "ItemsChanged" }
        told = []
    }

    /// Starts a scan; its job.
    func scan(_ paths: [String] = [], full: Bool = false) throws -> String {
        try call("Scan", [.strings(paths), .properties(full ? [("full", .bool(true))] : [])]).first?.objectPathValue
            ?? ""
    }

    func job(_ path: String) -> [String: Value] {
        let values = try? connection.callAndWait(
            place, path, StandardName.properties, "GetAll", [.string(BusName.job)], timeout: 60)
        return values?.first?.asProperties ?? [:]
    }

    /// The items of a query, by the keys that are asked for.
    func items(_ query: [(String, Value)] = [], _ fields: [String] = []) throws -> [[String: Value]] {
        try call("Items", [.properties(query), .uint32(0), .uint32(5_000), .strings(fields)])[1].arrayValue?
            .compactMap(\.asProperties) ?? []
    }

    func titles(_ query: [(String, Value)] = []) throws -> [String] {
        try items(query, ["title"]).compactMap { $0["title"]?.stringValue }
    }

    func id(_ title: String) throws -> UInt64 {
        let rows = try items([], ["id", "title"])
        return rows.first { $0["title"] == .string(title) }?["id"]?.uint64Value ?? 0
    }

    /// Writes a song into the folder of the music; returns its path.
    @discardableResult
    func song(_ name: String, _ tags: [String: String] = [:]) throws -> String {
        let path = music + "/" + name
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Data(TaggedMP3.bytes(tags.merging(["TIT2": name]) { given, _ in given })).write(
            to: URL(fileURLWithPath: path))
        return path
    }

    /// The processes that read files for the plugin.
    var workers: [Int32] {
        let path = "/proc/\(plugin.processID)/task/\(plugin.processID)/children"
        return (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: " ").compactMap { Int32($0) }
            ?? []
    }

    /// The most memory that the plugin ever had, in kB.
    func memory() throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(plugin.processID)/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? ""
        return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
    }
}

/// An MP3 file of two silent frames with a tag.
enum TaggedMP3 {
    /// - Parameter tags: texts by the names of frames of ID3v2.4, such as `TPE1`.
    static func bytes(_ tags: [String: String]) -> [UInt8] {
        var frames: [UInt8] = []
        for (name, text) in tags.sorted(by: { $0.key < $1.key }) {
            let content = [3] + Array(text.utf8)
            frames += Array(name.utf8) + sync(content.count) + [0, 0] + content
        }
        let frame: [UInt8] = [0xFF, 0xFB, 0x90, 0x64] + [UInt8](repeating: 0, count: 413)
        return Array("ID3".utf8) + [4, 0, 0] + sync(frames.count) + frames + frame + frame
    }

    private static func sync(_ size: Int) -> [UInt8] { [21, 14, 7, 0].map { UInt8(size >> $0 & 0x7F) } }
}
