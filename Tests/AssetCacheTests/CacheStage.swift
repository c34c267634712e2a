import DBus
import EventLoop
import Foundation
import PluginAPI
import PluginKit
import SessionBus
import TestSupport

@testable import AssetCache

/// The cache in this process, an origin that misbehaves on command, and programs that read.
final class CacheStage {
    let bus: PrivateBus
    let origin: OriginServer
    let home: PrivateFolder
    let caller: Connection
    private let host: PluginHost
    /// Nil while it restarts.
    private var running: CachePlugin?
    var cache: CachePlugin { running! }
    private let settings: Settings.Cache
    private let silence: Double
    /// Signals to the caller: the member, and its arguments.
    private(set) var told: [(member: String, values: [Value])] = []
    private var subscription: Subscription?
    private let disk: String
    private let isMounted: Bool

    var loop: EventLoop { host.loop }

    /// - Parameter diskSize: the size of a disk of its own, for `mount`, which only root may; nil: none.
    init(
        silence: Double = 20, diskSize: String? = nil,
        _ change: (inout Settings.Cache) -> Void = { _ in }
    ) throws {
        bus = try PrivateBus()
        origin = try OriginServer()
        home = try PrivateFolder()
        disk = home.path + "/sessiond"
        isMounted = diskSize != nil
        if let diskSize {
            try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
            try Child.run("mount", ["-t", "tmpfs", "-o", "size=" + diskSize, "tmpfs", disk])
        }
        host = try PluginHost(name: "sessiond-cache", bus: .custom(bus.address))
        caller = try Connection(.custom(bus.address), loop: host.loop)
        var settings = Settings().cache
        change(&settings)
        (self.settings, self.silence) = (settings, silence)
        running = CachePlugin(host, settings, home: home.path, silence: silence)
        subscription = caller.subscribe(interface: PluginKind.cache.interface) { [unowned self] message in
            told.append((message.member ?? "", (try? message.arguments()) ?? []))
        }
    }

    deinit { if isMounted { _ = try? Child.run("umount", ["-l", disk]) } }

    /// Another process after this one.
    func restart() {
        cache.end {}
        running = nil
        host.connection.objects.remove(path: PluginKind.cache.objectPath)
        loop.iterate(timeout: 5) { !isSettling }
        running = CachePlugin(host, settings, home: home.path, silence: silence)
    }

    /// Whether the disk is still asked to store something.
    private var isSettling: Bool {
        records.contains { (try? String(contentsOfFile: $0, encoding: .utf8))?.contains("\nboot ") == true }
    }

    private var records: [String] { files.filter { $0.hasSuffix(".map") } }

    /// The files of the cache.
    var files: [String] {
        let folder = home.path + "/sessiond/media"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0 != "lock" }.map { folder + "/" + $0 }.sorted()
    }

    func open(_ url: String, _ options: CachePlugin.Options = .init()) throws -> (address: String, id: UInt64) {
        try cache.open(url, options, for: caller.uniqueName)
    }

    func wait(timeout: Double = 20, _ condition: () -> Bool) -> Bool {
        loop.iterate(timeout: timeout, until: condition)
    }

    /// Reads an address, and returns the head of the answer and its body.
    func read(_ address: String, range: String? = nil, more: [String] = []) throws -> Answer {
        try readings([(address, range)], more: more)[0]
    }

    struct Answer {
        let status: Int
        let fields: [String: String]
        let body: Data
        /// Of curl; 0: it got all that the head says.
        let code: Int32
    }

    /// Reads several addresses at once.
    func readings(_ asked: [(address: String, range: String?)], more: [String] = []) throws -> [Answer] {
        let folder = try PrivateFolder()
        let children = try asked.enumerated().map { index, ask in
            try Child(
                "curl",
                [
                    "-s", "-S", "--max-time", "60", "-D", folder.path + "/\(index).head", "-o",
                    folder.path + "/\(index).body",
                ]
                    + (ask.range.map { ["-r", $0] } ?? []) + more + [ask.address])
        }
        guard wait(timeout: 60, { tick(children.allSatisfy { !$0.isRunning }) }) else {
            throw SupportError("curl does not end: \(children.map(\.errors))")
        }
        return try children.enumerated().map { index, child in
            let head = (try? String(contentsOfFile: folder.path + "/\(index).head", encoding: .utf8)) ?? ""
            var fields: [String: String] = [:]
            for line in head.split(whereSeparator: \.isNewline).dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                if parts.count == 2 { fields[parts[0].lowercased()] = parts[1] }
            }
            let status = head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            let body = FileManager.default.contents(atPath: folder.path + "/\(index).body") ?? Data()
            guard case .code(let code) = child.wait() else { throw SupportError("curl: \(child.errors)") }
            return Answer(status: status, fields: fields, body: body, code: code)
        }
    }

    /// The loop wakes up soon again, to look at a process that it does not watch.
    private func tick(_ condition: Bool) -> Bool {
        if !condition { timer.arm(after: 0.01) }
        return condition
    }
    private lazy var timer = Timer(on: loop) {}

    /// Runs a program to its end, with its output.
    func run(_ program: String, _ arguments: [String], _ environment: [String: String] = [:]) throws -> Child {
        let child = try Child(program, arguments, environment: environment)
        guard wait(timeout: 60, { tick(!child.isRunning) }) else {
            throw SupportError("\(program) does not end: \(child.errors)")
        }
        return child
    }

    func members(_ name: String) -> [[Value]] { told.filter { $0.member == name }.map(\.values) }

    /// The bytes that the origin has sent, when all of its answers have ended.
    func sent(atLeast count: UInt64 = 0) -> UInt64 {
        _ = wait(timeout: 5) { tick(origin.sent >= count) }
        return origin.sent
    }
}
