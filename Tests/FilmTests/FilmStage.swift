import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The real plugin of films on a bus of its own, and a client of it.
final class FilmStage {
    static let watchdog = 60.0

    /// A picture as the client is told of it.
    struct Image {
        let requested: Double
        let actual: Double
        let path: String
        let error: String
    }

    let folder: PrivateFolder
    let bus: PrivateBus
    let loop = EventLoop()
    var client: Connection
    let plugin: Child
    let place: String
    /// By the paths of their jobs.
    var images: [String: [Image]] = [:]
    var states: [String: [String]] = [:]
    var progress: [String: [Double]] = [:]
    var finished: [String: [String]] = [:]
    private var subscriptions: [Subscription] = []

    init() throws {
        folder = try PrivateFolder()
        bus = try PrivateBus()
        client = try Connection(.custom(bus.address), loop: loop)
        let home = try folder.folder("home")
        var environment = bus.environment
        environment["HOME"] = home
        environment["XDG_CACHE_HOME"] = home + "/cache"
        environment["XDG_RUNTIME_DIR"] = try folder.folder("run")
        environment["PATH"] = "/usr/bin:/bin"
        environment["GST_REGISTRY"] = TestMedia.registry
        plugin = try Child(try builtProduct(named: "sessiond-assets"), [], environment: environment)
        place = try client.owner(of: .assets, plugin)
        subscribe()
    }

    private func subscribe() {
        subscriptions = [
            client.subscribe(interface: BusName.assets, member: "Image", sender: place) { [unowned self] message in
                guard let values = try? message.arguments(), let job = values[0].objectPathValue else { return }
                images[job, default: []].append(
                    Image(
                        requested: values[1].doubleValue ?? -1, actual: values[2].doubleValue ?? -1,
                        path: values[3].stringValue ?? "",
                        error: values[4].stringValue?.split(separator: ".").last.map(String.init) ?? ""))
            },
            client.subscribe(
                interface: StandardName.properties, member: "PropertiesChanged", sender: place, arg0: BusName.job
            ) { [unowned self] message in
                guard let values = try? message.arguments(), let changes = values[1].asProperties else { return }
                if let state = changes["State"]?.stringValue { states[message.path ?? "", default: []].append(state) }
                if let share = changes["Progress"]?.doubleValue {
                    progress[message.path ?? "", default: []].append(share)
                }
            },
            client.subscribe(interface: BusName.job, member: "Finished", sender: place) { [unowned self] message in
                guard let values = try? message.arguments() else { return }
                finished[message.path ?? "", default: []].append(
                    values[0].boolValue == true ? "done" : values[1].stringValue ?? "")
            },
        ]
    }

    /// The name of the error, without its prefix, and its message.
    struct Refusal: Error, CustomStringConvertible {
        let name: String
        let message: String
        var description: String { "\(name): \(message)" }
    }

    func call(
        _ member: String, _ arguments: [Value], path: String = ObjectPath.assets, interface: String = BusName.assets
    ) throws -> [Value] {
        var answer: Result<[Value], Failure>?
        client.call(place, path, interface, member, arguments, timeout: Self.watchdog) { answer = $0 }
        try wait { answer != nil }
        switch try #require(answer) {
        case .success(let values): return values
        case .failure(let failure):
            throw Refusal(
                name: failure.name.split(separator: ".").last.map(String.init) ?? "", message: failure.message)
        }
    }

    /// The name of the error of a call; nil: it succeeded.
    func refusal(_ member: String, _ arguments: [Value]) throws -> String? {
        do {
            _ = try call(member, arguments)
            return nil
        } catch let refusal as Refusal {
            return refusal.name
        }
    }

    func wait(until condition: () -> Bool) throws {
        let inTime = loop.iterate(timeout: Self.watchdog, until: condition)
        try #require(inTime, "the watchdog bit: \(plugin.errors)")
    }

    static func uri(_ path: String) -> Value { .string("file://" + path) }

    func inspect(_ path: String, precise: Bool = false) throws -> [String: Value] {
        try call("Inspect", [Self.uri(path), .properties(precise ? [("precise", .bool(true))] : [])])
            .first?.asProperties ?? [:]
    }

    /// Starts to take pictures; the job's path.
    func generate(_ path: String, _ times: [Double], _ options: [(String, Value)] = []) throws -> String {
        try call(
            "GenerateImages", [Self.uri(path), .array(of: "d", times.map(Value.double)), .properties(options)]
        ).first?.objectPathValue ?? ""
    }

    func pictures(_ path: String, _ times: [Double], _ options: [(String, Value)] = []) throws -> [Image] {
        let job = try generate(path, times, options)
        try wait { finished[job] != nil }
        #expect(finished[job] == ["done"])
        return images[job] ?? []
    }

    /// Writes a film; how it ended.
    func export(_ path: String, _ output: String, _ options: [(String, Value)] = []) throws -> String {
        let job = try begin(path, output, options)
        try wait { finished[job] != nil }
        return try property("Error", of: job).stringValue?.split(separator: ".").last.map(String.init) ?? "done"
    }

    func begin(_ path: String, _ output: String, _ options: [(String, Value)] = []) throws -> String {
        try call("Export", [Self.uri(path), .string(output), .properties(options)]).first?.objectPathValue ?? ""
    }

    func property(_ name: String, of job: String) throws -> Value {
        try call("Get", [.string(BusName.job), .string(name)], path: job, interface: StandardName.properties)
            .first?.unwrapped ?? .bool(false)
    }

    func cancel(_ job: String) throws { _ = try call("Cancel", [], path: job, interface: BusName.job) }

    /// The processes that the plugin has started.
    var workers: [Int32] {
        let process = plugin.processID
        let text = (try? String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)) ?? ""
        return text.split(separator: " ").compactMap { Int32($0) }
    }

    static func isZombie(_ process: Int32) -> Bool {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return false }
        return text[end...].split(separator: " ").dropFirst().first == "Z"
    }

    static func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    /// The numbers of pictures that were written as files of one size.
    static func numbers(of images: [Image], width: Int = 320, height: Int = 180) throws -> [Int] {
        let folder = try PrivateFolder()
        let ending = images.first?.path.split(separator: ".").last.map(String.init) ?? "png"
        for (index, image) in images.enumerated() {
            try FileManager.default.copyItem(
                atPath: image.path, toPath: "\(folder.path)/\(String(format: "%05d", index)).\(ending)")
        }
        return try TestMedia.numbers(
            ["-start_number", "0", "-i", "\(folder.path)/%05d.\(ending)"], width: width, height: height)
    }
}
