import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `SessionKit.CachedAsset` as an app uses it, with the real plugin, a real origin and a program that reads.
@Suite(.serialized) struct CachedAssetTests {
    /// A user's folder with the plugin, and the daemon.
    private func start() throws -> (home: PrivateFolder, stage: DaemonStage) {
        let home = try PrivateFolder()
        let plugins = try home.folder(".local/share/sessiond/plugins")
        try FileManager.default.copyItem(
            atPath: repository.path + "/data/plugins/cache.plugin", toPath: plugins + "/cache.plugin")
        return (home, try DaemonStage(environment: ["HOME": home.path, "PATH": "/usr/bin:/bin"]))
    }

    // If an event is missing, the test must end.
    @Test(.timeLimit(.minutes(1))) func asset_isReadOnceAndThenAFile() async throws {
        let (home, stage) = try start()
        let origin = try OriginServer()
        let bytes = try origin.file("film.mp4", 1_000_000)
        let bus = BusAddress.custom(stage.bus.address)

        let asset = CachedAsset(origin.url("film.mp4"), bus: bus)
        let events = asset.events
        let address = try await asset.open()
        #expect(address.hasPrefix("http://127.0.0.1:") && address.hasSuffix("/film.mp4"))
        let copy = home.path + "/copy"
        try Child.run("curl", ["-s", "-f", "-o", copy, address])
        #expect(FileManager.default.contents(atPath: copy) == bytes)
        var file = ""
        for await event in events {
            if case .failed(let error) = event { Issue.record("\(error)") }
            guard case .completed(let path) = event else { continue }
            file = path
            break
        }
        #expect(FileManager.default.contents(atPath: file) == bytes && file.hasSuffix("/film.mp4"))
        await asset.close()

        // Without the network.
        try origin.tell("status 500")
        let again = CachedAsset(origin.url("film.mp4"), bus: bus)
        #expect(try await again.open() == "file://" + file)
        await again.close()
        #expect(origin.requests.count == 1)
    }

    /// A service that tells the end of a small file before it answers `Open`, as a busy program sees it: it reads both at once.
    private final class HastyCache {
        static let path = "/film.mp4"

        /// Runs on a thread of its own until the bus ends.
        static func start(on bus: PrivateBus) throws {
            let address = bus.address
            let ready = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                let loop = EventLoop()
                guard let connection = try? Connection(.custom(address), loop: loop),
                    (try? connection.requestName(BusName.service)) != nil
                else { return }
                let cache = HastyCache()
                connection.objects.export(
                    cache, at: ObjectPath.root,
                    interfaces: [
                        Interface(
                            name: BusName.plugins, introspection: "<interface name=\"\(BusName.plugins)\"/>",
                            methods: [
                                .init("Open", "ss") { _, call in
                                    call.reply([
                                        .string(connection.uniqueName), .objectPath(PluginKind.cache.objectPath),
                                    ])
                                }
                            ])
                    ])
                let name = PluginKind.cache.interface
                connection.objects.export(
                    cache, at: PluginKind.cache.objectPath,
                    interfaces: [
                        Interface<HastyCache>(
                            name: name, introspection: "<interface name=\"\(name)\"/>",
                            methods: [
                                .init("Open", "sa{sv}") { _, call in
                                    for (number, path) in [(UInt64(6), "/other.mp4"), (7, HastyCache.path)] {
                                        connection.objects.emit(
                                            path: PluginKind.cache.objectPath, interface: name, member: "Completed",
                                            [.uint64(number), .string(path)], to: call.sender)
                                    }
                                    call.reply([.string("http://127.0.0.1:1/0/film.mp4"), .uint64(7)])
                                }
                            ])
                    ])
                connection.onDisconnect = { loop.quit(0) }
                ready.signal()
                _ = loop.run()
            }
            guard ready.wait(timeout: .now() + 30) == .success else { throw SupportError("no service on the bus") }
        }
    }

    @Test(.timeLimit(.minutes(1))) func eventBeforeTheAnswer_isTold() async throws {
        let bus = try PrivateBus()
        try HastyCache.start(on: bus)
        let asset = CachedAsset("https://example.org/film.mp4", bus: .custom(bus.address))
        let events = asset.events
        _ = try await asset.open()
        var heard: [CachedAsset.Event] = []
        for await event in events {
            heard.append(event)
            // The service ends with its bus.
            if heard.count == 1 { bus.kill() }
        }
        #expect(heard.first == .completed(path: HastyCache.path))
        #expect(heard.count == 2)
        guard case .failed(let error) = heard.last else { return }
        #expect(error.code == .mediaServicesFailed)
    }

    @Test func whatIsNoAddressOfTheWeb_isRefused() async throws {
        let (home, stage) = try start()
        defer { withExtendedLifetime(home) {} }
        do {
            _ = try await CachedAsset("file:///etc/passwd", bus: .custom(stage.bus.address)).open()
            Issue.record("a file was opened")
        } catch {
            #expect(error.code == .badParameter)
        }
    }
}
