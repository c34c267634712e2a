import Foundation
import TestSupport
import Testing

@testable import PulseBackend

/// The module of the server that holds streams.
@Suite struct HoldModuleTests {
    @Test func serverWithAnUnknownSessionManager_holdsOnAPassiveNullSink() {
        let module = HoldModule.plain(nil, folder: "/run/user/1000")
        #expect(module.name == "module-null-sink")
        #expect(module.arguments.hasPrefix("sink_name=sessiond.hold sink_properties="))
        #expect(module.arguments.contains("node.passive=true"))
    }

    /// On a passive sink nothing would show that a program pauses its stream.
    @Test(arguments: [WirePlumberVersion(0, 4), WirePlumberVersion(0, 5, 8), WirePlumberVersion(0, 6)])
    func serverWithWirePlumber_holdsOnADriver(_ version: WirePlumberVersion) {
        let module = HoldModule.plain(version, folder: "/run/user/1000")
        #expect(module.name == "module-pipe-sink")
        #expect(module.arguments.contains("file=\"/run/user/1000/sessiond.hold\""))
        #expect(module.arguments.contains("node.driver=true priority.driver=0"))
        #expect(!module.arguments.contains("node.passive"))
    }

    @Test func pulseAudio_holdsOnAPipeSinkWithoutSuspend() {
        let module = HoldModule.full(pipe: "/run/user/1000/sessiond.hold")
        #expect(module.name == "module-pipe-sink")
        #expect(module.arguments.contains("file=\"/run/user/1000/sessiond.hold\""))
        #expect(module.arguments.contains("module-suspend-on-idle.timeout=-1"))
    }

    /// Desktops show it in their lists of outputs, and session managers rank it among the devices.
    @Test func everyHoldSink_saysThatItIsNoOutput_andRanksLast() {
        let modules =
            [nil, WirePlumberVersion(0, 4, 13), WirePlumberVersion(0, 5)].map { HoldModule.plain($0, folder: "/run") }
            + [HoldModule.full(pipe: "/run/pipe")]
        for module in modules {
            #expect(module.arguments.contains("(not an output)'"))
            #expect(module.arguments.contains("node.virtual=true priority.session=-1000"))
        }
    }

    /// The sink reports the bytes in the pipe as its latency, so there is only one.
    @Test func fullPipe_hasOneByteAndNoRoomForMore() throws {
        let folder = try PrivateFolder()
        let pipe = try #require(FullPipe(path: folder.path + "/pipe"))
        let reader = open(pipe.path, O_RDWR | O_NONBLOCK)
        defer { close(reader) }
        var poll = pollfd(fd: reader, events: Int16(POLLOUT), revents: 0)
        #expect(Glibc.poll(&poll, 1, 0) == 0)
        var bytes = [UInt8](repeating: 0, count: 16)
        #expect(read(reader, &bytes, 16) == 1)
    }

    @Test(arguments: [true, false])
    func pipeHandedOver_reportsWhetherAServerHasIt_andLeavesNoFile(_ isOpen: Bool) throws {
        let folder = try PrivateFolder()
        var pipe = FullPipe(path: folder.path + "/pipe")
        let path = try #require(pipe?.path)
        let server = isOpen ? open(path, O_RDWR | O_NONBLOCK) : -1
        defer { if isOpen { close(server) } }
        #expect(pipe?.handOver() == isOpen)
        pipe = nil
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func pipeOfAKilledDaemon_isReplaced() throws {
        let folder = try PrivateFolder()
        #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
        #expect(FullPipe(path: folder.path + "/pipe") != nil)
        #expect(FullPipe(path: folder.path + "/missing/pipe") == nil)
    }
}
