import Testing

@testable import VideoBackend

/// When a node of PipeWire is made again.
@Suite struct NodeWatchTests {
    /// For each beat: whether pictures came to the server (`s`), and were read, too (`r`), or none came (`-`).
    @Test(
        arguments: [
            // All is well; a machine that is busy.
            ("ssrrrrrrrrrrrrrrrrrrrr", "", .well), ("-----srrs--r---s-----r", "", .well),
            // Nothing comes to the server, from the beginning or later.
            ("", "----------", .makeAgain), ("srrrr", "----------", .makeAgain),
            // It comes there, and our reader does not get it any more.
            ("srrrr", "ssssssssss", .makeAgain), ("srrrrsssssssssr", "ss-ss--sss", .makeAgain),
            // Our reader has not found it.
            ("sssss", String(repeating: "s", count: 45), .readAgain), ("", String(repeating: "s", count: 49), .well),
        ] as [(String, String, NodeWatch.Verdict)])
    func beats_sayWhatMustBeDone(before: String, last: String, expected: NodeWatch.Verdict) {
        var watch = NodeWatch()
        var (sent, read) = (UInt32(0), UInt32(0))
        var verdicts: [NodeWatch.Verdict] = []
        for beat in before + last {
            if beat != "-" { sent += 5 }
            if beat == "r" { read += 5 }
            verdicts.append(watch.beat(sent: sent, read: read))
        }
        #expect(verdicts.dropLast().allSatisfy { $0 == .well } && verdicts.last == expected)
    }
}
