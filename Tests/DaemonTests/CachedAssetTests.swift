import DBus
import Foundation
import PluginAPI
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
