import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct ProcessWatchTests {
    @Test func processThatHasEnded_usesNoDescriptor() throws {
        let loop = EventLoop()
        let child = try Child("sleep", ["600"])
        var hasEnded = false
        let watch = try #require(ProcessWatch(UInt32(child.processID), on: loop) { hasEnded = true })
        #expect(watch.isWatching)
        child.kill()
        #expect(loop.iterate(timeout: 10) { hasEnded })
        #expect(!watch.isWatching)
    }
}
