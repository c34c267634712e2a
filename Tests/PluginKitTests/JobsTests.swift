import DBus
import EventLoop
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import PluginKit

/// Jobs on a real bus, as their owner and other clients see them.
@Suite struct JobsTests {
    /// A plugin with jobs, the client that asks for them, and another client.
    private final class Stage {
        let bus: PrivateBus
        let loop = EventLoop()
        let plugin: Connection
        let client: Connection
        let other: Connection
        let jobs: Jobs
        var signals: [String] = []
        private var subscriptions: [Subscription] = []

        init() throws {
            bus = try PrivateBus()
            plugin = try Connection(.custom(bus.address), loop: loop)
            client = try Connection(.custom(bus.address), loop: loop)
            other = try Connection(.custom(bus.address), loop: loop)
            jobs = Jobs(.recorder, on: plugin, loop)
            subscriptions.append(
                other.subscribe(interface: BusName.job, member: "Finished", sender: plugin.uniqueName) {
                    [unowned self] in
                    let values = (try? $0.arguments()) ?? []
                    signals.append("\($0.path ?? "") \(values[0].boolValue ?? false) \(values[1].stringValue ?? "")")
                })
        }

        func add(_ name: String, isDetached: Bool = false, canPause: Bool = false) throws -> Job {
            try jobs.add(
                "record", name: name, for: client.uniqueName, isDetached: isDetached,
                JobStatus(.bytes, total: 100, canPause: canPause))
        }

        func call(_ job: Job, _ member: String) throws -> Result<[Value], Failure> {
            var answer: Result<[Value], Failure>?
            other.call(plugin.uniqueName, job.path, BusName.job, member, []) { answer = $0 }
            try wait { answer != nil }
            return try #require(answer)
        }

        func properties(_ job: Job) throws -> [String: Value] {
            var answer: Result<[Value], Failure>?
            other.call(plugin.uniqueName, job.path, StandardName.properties, "GetAll", [.string(BusName.job)]) {
                answer = $0
            }
            try wait { answer != nil }
            return try #require(answer).get().first?.asProperties ?? [:]
        }

        func wait(until condition: () -> Bool) throws {
            let inTime = loop.iterate(timeout: 20, until: condition)
            try #require(inTime)
        }
    }

    @Test func job_isThereForEverybodyAndEndsOnce() throws {
        let stage = try Stage()
        var busy: [Bool] = []
        stage.jobs.onBusyChanged = { busy.append($0) }
        let job = try stage.add("take.wav")
        #expect(job.path == "/org/sessiond1/recorder/job/1")
        let before = try stage.properties(job)
        #expect(before["State"] == .string("waiting"))
        #expect(before["Progress"] == .double(0))
        #expect(before["Name"] == .string("take.wav"))
        #expect(before["Owner"] == .string(stage.client.uniqueName))
        job.begin()
        job.progressed(done: 30, total: 100)
        #expect(try stage.properties(job)["Progress"] == .double(0.3))
        job.finish()
        job.finish()
        job.fail(SessionError(.diskFull, "too late"))
        try stage.wait { stage.signals == ["\(job.path) true "] }
        let after = try stage.properties(job)
        #expect(after["State"] == .string("finished"))
        #expect(after["Progress"] == .double(1))
        #expect(after["Error"] == .string(""))
        #expect(busy == [true, false])
    }

    @Test func cancel_isForTheWorkAndLeavesTheError() throws {
        let stage = try Stage()
        let job = try stage.add("take.wav", canPause: true)
        var asked: [String] = []
        job.onCancel = { asked.append("cancel") }
        job.onPause = { asked.append("pause") }
        job.onResume = { asked.append("resume") }
        job.begin()
        for member in ["Pause", "Pause", "Resume", "Cancel", "Cancel", "Pause"] {
            #expect(try stage.call(job, member).isSuccess)
        }
        #expect(asked == ["pause", "resume", "cancel"])
        try stage.wait { !stage.signals.isEmpty }
        #expect(stage.signals == ["\(job.path) false the job was cancelled (-999)"])
        #expect(try stage.properties(job)["Error"] == .string("org.sessiond1.Error.Cancelled"))
    }

    @Test func numbersOfBefore_areNeverUsedAgainAndNeverOverflow() throws {
        let stage = try Stage()
        func add(_ number: UInt64? = nil, to jobs: Jobs? = nil) throws -> UInt64 {
            try (jobs ?? stage.jobs).add(
                "record", name: "x", for: "", isDetached: true, number: number, JobStatus(.bytes)
            ).number
        }
        #expect(try add(5) == 5)
        #expect(try add(3) == 3)
        #expect(try add() == 6)
        for number: UInt64 in [3, Jobs.largestNumber + 1, .max] {
            #expect(throws: SessionError.self) { _ = try add(number) }
        }
        #expect(try add() == 7)
        let last = Jobs(.uploads, on: stage.plugin, stage.loop, lastNumber: .max)
        #expect(try add(to: last) == Jobs.largestNumber + 1)
    }

    @Test func jobThatCannotPause_saysSo() throws {
        let stage = try Stage()
        let job = try stage.add("take.wav")
        guard case .failure(let failure) = try stage.call(job, "Pause") else {
            Issue.record("it paused")
            return
        }
        #expect(failure.name == "org.sessiond1.Error.NotSupported")
    }

    @Test func ownerLeaves_cancelsItsJobsButNotTheDetached() throws {
        let stage = try Stage()
        let jobs = try (1...3).map { try stage.add("\($0)", isDetached: $0 == 2) }
        var cancelled: [String] = []
        for job in jobs { job.onCancel = { cancelled.append(job.name) } }
        stage.client.close()
        try stage.wait { cancelled.count == 2 }
        #expect(cancelled == ["3", "1"])
        #expect(jobs.map(\.status.state) == [.cancelled, .waiting, .cancelled])
        // One that comes from a client that has gone already.
        let late = try stage.add("late")
        try stage.wait { late.status.state == .cancelled }
        #expect(stage.jobs.unfinished.map(\.name) == ["2"])
    }

    @Test func tenThousandJobs_areAllCancelledWithTheirOwner() throws {
        let stage = try Stage()
        let jobs = try (1...10_000).map { try stage.add("\($0)") }
        var cancelled = 0
        for job in jobs { job.onCancel = { cancelled += 1 } }
        stage.client.close()
        try stage.wait { !stage.jobs.isBusy }
        #expect(cancelled == 10_000)
        // Only some of them are still listed.
        try stage.wait { stage.signals.count == 10_000 }
        var listed: [DictionaryEntry] = []
        var isAnswered = false
        stage.other.call(
            stage.plugin.uniqueName, ObjectPath.root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", []
        ) {
            listed = (try? $0.get())?.first?.dictionaryValue ?? []
            isAnswered = true
        }
        try stage.wait { isAnswered }
        #expect(listed.count == 1_000)
    }

    @Test func properties_areThoseOfTheDescription() throws {
        let stage = try Stage()
        let job = try stage.add("take.wav")
        let text = InterfaceXML.fragment(PackageResources.org_sessiond1_Job_xml)
        for (name, value) in try stage.properties(job) {
            #expect(text.contains("<property name=\"\(name)\" type=\"\(value.signature)\""), "\(name)")
        }
        #expect(text.split(separator: "<property ").count - 1 == (try stage.properties(job)).count)
    }

    @Test func jobThatCannotBePausedNow_saysWhyAndGoesOn() throws {
        let stage = try Stage()
        let job = try stage.add("film", canPause: true)
        job.begin()
        job.refusalToPause = { SessionError(.resourceNotAvailable, "too many jobs are paused") }
        #expect(throws: (any Error).self) { try stage.call(job, "Pause").get() }
        #expect(job.status.state == .running)
        job.refusalToPause = { nil }
        _ = try stage.call(job, "Pause").get()
        #expect(job.status.state == .paused)
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
