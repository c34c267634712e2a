import DBus
import Foundation
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// `SessionKit.Asset` as an app uses it, with the real plugin.
@Suite(.serialized) struct AssetKitTests {
    @Test func asset_saysWhatIsInTheFile_orWhyNot() async throws {
        let home = try PrivateFolder()
        let plugins = try home.folder(".local/share/sessiond/plugins")
        try FileManager.default.copyItem(
            atPath: repository.path + "/data/plugins/assets.plugin", toPath: plugins + "/assets.plugin")
        let stage = try DaemonStage(environment: [
            "HOME": home.path, "PATH": "/usr/bin:/bin", "GST_REGISTRY": PlayerStage.registry,
        ])
        let path = try WaveFile.write(
            WaveFile.sines([(440, 1.5)], rate: 8_000), rate: 8_000, to: home.path + "/tone.wav")
        let info = try await Asset(path, bus: .custom(stage.bus.address)).info
        #expect(info.duration.seconds == 1.5 && info.tracks.count == 1)
        do {
            _ = try await Asset(home.path + "/none.wav", bus: .custom(stage.bus.address)).info
            Issue.record("a file that does not exist")
        } catch {
            #expect(error.code == .notFound)
        }
    }
}
