import DBus
import EventLoop
import Foundation
import PluginAPI
import TestSupport
import Testing

/// Programs beside the daemon read the same settings. The daemon does not start with wrong ones, but they may become wrong
/// while it runs.
@Suite struct WrongSettingsTests {
    @Test(arguments: ["sessiond-library", "sessiond-cache"])
    func settingsAreWrong_pluginSaysSoAndTakesTheDefaults(program: String) throws {
        let bus = try PrivateBus()
        let home = try PrivateFolder()
        let settings = try home.folder(".config/sessiond") + "/sessiond.conf"
        try "[cache]\nsize = much\n".write(toFile: settings, atomically: true, encoding: .utf8)
        let plugin = try Child(
            try builtProduct(named: program),
            environment: [
                "PATH": "/usr/bin:/bin", "HOME": home.path, "XDG_DATA_HOME": home.path + "/data",
                "XDG_CACHE_HOME": home.path + "/cache",
            ].merging(bus.environment) { $1 })
        let connection = try Connection(.custom(bus.address), loop: EventLoop())
        let kind: PluginKind = program == "sessiond-cache" ? .cache : .library
        // It serves.
        _ = try connection.owner(of: kind, plugin)
        plugin.signal(SIGTERM)
        #expect(plugin.wait(timeout: 20) == .code(0))
        let said = plugin.errors.filter { $0.hasPrefix("\(program): \(settings):2:") }
        #expect(said.count == 1 && said.allSatisfy { $0.contains("the defaults apply") }, "\(plugin.errors)")
    }
}
