import Testing

@testable import PulseBackend

/// Which of the server's modules holds a stream.
@Suite struct HoldModuleTests {
    @Test(arguments: [nil, WirePlumberVersion(0, 4, 13)])
    func aServerWithoutANewSessionManager_holdsOnAPassiveNullSink(_ version: WirePlumberVersion?) {
        let module = HoldModule(version, folder: "/run/user/1000")
        #expect(module.name == "module-null-sink")
        #expect(module.arguments.hasPrefix("sink_name=sessiond.hold sink_properties="))
        #expect(module.arguments.contains("node.passive=true"))
    }

    @Test(arguments: [WirePlumberVersion(0, 5), WirePlumberVersion(0, 5, 8), WirePlumberVersion(0, 6)])
    func aServerWithANewSessionManager_holdsOnADriver(_ version: WirePlumberVersion) {
        let module = HoldModule(version, folder: "/run/user/1000")
        #expect(module.name == "module-pipe-sink")
        #expect(module.arguments.contains("file=\"/run/user/1000/sessiond.hold\""))
        #expect(module.arguments.contains("node.driver=true priority.driver=0"))
        #expect(!module.arguments.contains("node.passive"))
    }
}
