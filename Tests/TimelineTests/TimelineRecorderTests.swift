import Testing
import Timeline

/// From facts to spans.
@Suite struct TimelineRecorderTests {
    private static func seconds(_ number: UInt64) -> UInt64 { number * 1_000_000 }

    private func spans(_ timeline: Timeline, _ name: String) -> [Timeline.Span] {
        timeline.rows.filter { $0.name == name }.flatMap(\.spans)
    }

    @Test func callOverMusic_musicIsHeardThenWaitsThenIsHeard() {
        var recorder = TimelineRecorder(since: Self.seconds(100))
        recorder.describe("/1", name: "Music", kind: "Music")
        recorder.describe("/2", name: "Phone", kind: "Call")
        recorder.note(.created, of: "/1", at: Self.seconds(100))
        recorder.note(.activated, of: "/1", at: Self.seconds(101))
        recorder.note(.created, of: "/2", at: Self.seconds(110))
        recorder.note(.interrupted("interrupted by Phone"), of: "/1", at: Self.seconds(110))
        recorder.note(.activated, of: "/2", at: Self.seconds(110))
        recorder.note(.closed, of: "/2", at: Self.seconds(120))
        recorder.note(.released, of: "/1", at: Self.seconds(120))
        recorder.note(.activated, of: "/1", at: Self.seconds(120))
        let timeline = recorder.timeline(from: 0, to: Self.seconds(130), offset: 0)
        #expect(timeline.rows.map(\.name) == ["Music", "Phone"])
        #expect(timeline.rows.map(\.kind) == ["Music", "Call"])
        #expect(
            spans(timeline, "Music") == [
                .init(.heard, Self.seconds(101), Self.seconds(110), note: ""),
                .init(.waiting, Self.seconds(110), Self.seconds(120), note: "interrupted by Phone"),
                .init(.heard, Self.seconds(120), Self.seconds(130), note: ""),
            ])
        #expect(spans(timeline, "Phone") == [.init(.heard, Self.seconds(110), Self.seconds(120), note: "")])
        // It begins shortly before the first thing.
        #expect(timeline.start < Self.seconds(101) && timeline.start > Self.seconds(99))
    }

    @Test func duckedAndMutedSession_hasSpansOfBoth() {
        var recorder = TimelineRecorder(since: 0)
        recorder.describe("/1", name: "Game")
        recorder.note(.created, of: "/1", at: 0)
        recorder.note(.activated, of: "/1", at: Self.seconds(1))
        recorder.note(.ducked("ducked 12 dB"), of: "/1", at: Self.seconds(2))
        recorder.note(.muted, of: "/1", at: Self.seconds(3))
        recorder.note(.unmuted, of: "/1", at: Self.seconds(4))
        recorder.note(.unducked, of: "/1", at: Self.seconds(5))
        recorder.note(.deactivated, of: "/1", at: Self.seconds(6))
        let timeline = recorder.timeline(from: 0, to: Self.seconds(10), offset: 0)
        #expect(spans(timeline, "Game").map(\.state) == [.heard, .ducked, .muted, .ducked, .heard])
        #expect(spans(timeline, "Game").last?.end == Self.seconds(6))
    }

    /// The history may have lost what came before.
    @Test(arguments: [
        (TimelineRecorder.Fact.deactivated, Timeline.State.heard), (.interrupted(""), .heard), (.released, .waiting),
        (.unducked, .ducked), (.unmuted, .muted),
    ]) func firstFact_tellsWhatWasBefore(fact: TimelineRecorder.Fact, state: Timeline.State) {
        var recorder = TimelineRecorder(since: Self.seconds(10))
        recorder.describe("/1", name: "Music")
        recorder.note(fact, of: "/1", at: Self.seconds(20))
        let timeline = recorder.timeline(from: 0, to: Self.seconds(30), offset: 0)
        #expect(spans(timeline, "Music").first?.state == state)
        #expect(spans(timeline, "Music").first?.start == Self.seconds(10))
        #expect(spans(timeline, "Music").first?.end == Self.seconds(20))
    }

    @Test func sessionWithoutFacts_isShownAsItIsNow() {
        var recorder = TimelineRecorder(since: Self.seconds(10))
        recorder.describe("/1", name: "Music", kind: "Music")
        recorder.settle("/1", .init(.active, ducking: "ducked 6 dB"), since: Self.seconds(5))
        let timeline = recorder.timeline(from: Self.seconds(8), to: Self.seconds(30), offset: 0)
        #expect(
            spans(timeline, "Music") == [.init(.ducked, Self.seconds(8), Self.seconds(30), note: "ducked 6 dB")])
    }

    @Test func sessionWithFacts_isNotChangedByItsPresentState() {
        var recorder = TimelineRecorder(since: 0)
        recorder.describe("/1", name: "Music")
        recorder.note(.created, of: "/1", at: Self.seconds(1))
        recorder.settle("/1", .init(.active), since: Self.seconds(5))
        #expect(recorder.timeline(from: 0, to: Self.seconds(9), offset: 0).rows.isEmpty)
    }

    @Test func promptsOneAfterTheOther_shareARow_andThoseAtTheSameTimeDoNot() {
        var recorder = TimelineRecorder(since: 0)
        for (path, start, end) in [("/1", 1, 3), ("/2", 5, 7), ("/3", 6, 8)] as [(String, UInt64, UInt64)] {
            recorder.describe(path, name: "Navigation", kind: "Prompt")
            recorder.note(.created, of: path, at: Self.seconds(start))
            recorder.note(.activated, of: path, at: Self.seconds(start))
            recorder.note(.closed, of: path, at: Self.seconds(end))
        }
        let timeline = recorder.timeline(from: 0, to: Self.seconds(10), offset: 0)
        #expect(timeline.rows.map(\.spans.count) == [2, 1])
    }

    @Test func everythingBeforeTheWindow_isLeftOut() {
        var recorder = TimelineRecorder(since: 0)
        recorder.describe("/1", name: "Old")
        recorder.note(.created, of: "/1", at: Self.seconds(1))
        recorder.note(.activated, of: "/1", at: Self.seconds(1))
        recorder.note(.closed, of: "/1", at: Self.seconds(2))
        recorder.mark("silent switch on", at: Self.seconds(2))
        recorder.mark("silent switch off", at: Self.seconds(60))
        let timeline = recorder.timeline(from: Self.seconds(50), to: Self.seconds(70), offset: 0)
        #expect(timeline.rows.isEmpty)
        #expect(timeline.marks.map(\.text) == ["silent switch off"])
    }

    @Test func nothingAtAll_isAnEmptyTimeline() {
        let timeline = TimelineRecorder(since: 0).timeline(from: 0, to: 0, offset: 0)
        #expect(timeline.rows.isEmpty && timeline.length >= 1)
        #expect(TimelinePicture(timeline, title: "").svg.contains("Nobody was heard."))
    }
}
