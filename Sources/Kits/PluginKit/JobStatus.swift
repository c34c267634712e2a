public import PluginAPI

/// The state of a job and its progress. Inputs are what has happened; effects are what must be done.
///
/// - Progress and the amount that is done never decrease. Progress is 1 only when the job is finished.
/// - A change of the state is signalled at once, and progress at most ten times a second.
/// - After the end nothing changes any more.
///
/// Times are those of ``MonotonicClock``, in microseconds.
public struct JobStatus: Sendable, Equatable {
    /// The property `State` on the bus.
    public enum State: String, Sendable, CaseIterable {
        /// The task has not started, or has to wait.
        case waiting
        case running
        /// A client has paused it.
        case paused
        case finished
        case failed
        case cancelled

        /// Whether the job has ended.
        public var isEnd: Bool {
            switch self {
            case .waiting, .running, .paused: false
            case .finished, .failed, .cancelled: true
            }
        }
    }

    /// The unit of ``done`` and ``total``.
    public enum Unit: String, Sendable, CaseIterable {
        case bytes
        case files
        case images
        /// Milliseconds of media.
        case milliseconds
    }

    /// An event of a job.
    public enum Input: Sendable, Equatable {
        /// The task has started, or continues after it had to wait.
        case begun
        /// The task has to wait, for example for a network; the message is the reason.
        case waits(String)
        /// `done` of `total` is done; `total` is 0 if unknown. `share` is the progress, 0…1, if it is not the quotient
        /// of both.
        case progressed(done: UInt64, total: UInt64, share: Double?)
        /// What the result does not have although the task was asked for it, one phrase each: a track of a film.
        case leavesOut([String])
        case succeeded
        case failed(SessionError)
        /// A request of a client.
        case pause
        case resume
        case cancel
        /// The time of ``Effect/wait(until:)`` has come.
        case timePassed
    }

    /// An action to carry out; several in this order.
    public enum Effect: Sendable, Equatable {
        /// Pause the task.
        case pauseWork
        /// Resume the task.
        case resumeWork
        /// End the task, and remove its unfinished result.
        case cancelWork
        /// Send the changed properties.
        case tell
        /// Pass ``Input/timePassed`` at this time.
        case wait(until: UInt64)
        /// Send `Finished`.
        case end(success: Bool)
    }

    /// The time between two progress signals, in microseconds.
    static let interval: UInt64 = 100_000
    /// The largest progress of a job that is not finished yet.
    static let almost = 0.999

    public let unit: Unit
    /// Whether the job can be paused.
    public let canPause: Bool
    /// In ``unit``.
    public private(set) var done: UInt64 = 0
    /// In ``unit``; 0: unknown.
    public private(set) var total: UInt64
    /// 0…1; nil: unknown.
    public private(set) var progress: Double?
    /// The reason why it failed or was cancelled; nil otherwise.
    public private(set) var error: SessionError?
    /// What the result does not have, one phrase each.
    public private(set) var leftOut: [String] = []
    private var waitReason = ""
    private var hasBegun = false
    private var isPaused = false
    private var end: State?
    private var speedometer = Speedometer()
    /// The time at which the properties were last sent; nil: never.
    private var lastTold: UInt64?
    private var isUntold = false
    private var isTimeSet = false

    public init(_ unit: Unit, total: UInt64 = 0, canPause: Bool = false) {
        self.unit = unit
        self.total = total
        self.canPause = canPause
        if total > 0 { progress = 0 }
    }

    public var state: State { end ?? (isPaused ? .paused : hasBegun ? .running : .waiting) }

    /// The message of the error; while the job waits, the reason.
    public var message: String { error?.message ?? (state == .waiting ? waitReason : "") }

    /// Units per second, the mean of the latest seconds. With the unit milliseconds: seconds of media per second. 0
    /// unless the job runs.
    public var speed: Double {
        guard state == .running else { return 0 }
        return unit == .milliseconds ? speedometer.perSecond / 1000 : speedometer.perSecond
    }

    /// Seconds to the end at that speed; nil: unknown.
    public var remaining: Double? {
        if end == .finished { return 0 }
        guard state == .running, total >= done, total > 0, speedometer.perSecond > 0 else { return nil }
        return Double(total - done) / speedometer.perSecond
    }

    /// - Throws: `NotSupported` if a job that cannot be paused is to be paused.
    public mutating func handle(_ input: Input, at now: UInt64) throws(SessionError) -> [Effect] {
        guard end == nil else { return [] }
        switch input {
        case .begun:
            guard !hasBegun else { return [] }
            hasBegun = true
            waitReason = ""
            speedometer.restart(done, at: now)
            return [tell(now)]
        case .waits(let reason):
            guard hasBegun || reason != waitReason else { return [] }
            hasBegun = false
            waitReason = reason
            return [tell(now)]
        case .progressed(let done, let total, let share):
            advance(done, total, share, now)
            return notice(now)
        case .leavesOut(let phrases):
            leftOut = phrases
            return []
        case .succeeded:
            if total > 0 { done = total } else { total = done }
            progress = 1
            return ended(.finished, now)
        case .failed(let error):
            self.error = error
            return ended(.failed, now)
        case .pause:
            guard canPause else { throw SessionError(.notSupported, "this job cannot pause; cancel it") }
            guard !isPaused else { return [] }
            isPaused = true
            return [.pauseWork, tell(now)]
        case .resume:
            guard canPause else { throw SessionError(.notSupported, "this job cannot pause") }
            guard isPaused else { return [] }
            isPaused = false
            speedometer.restart(done, at: now)
            return [.resumeWork, tell(now)]
        case .cancel:
            error = SessionError(.cancelled, "the job was cancelled")
            return [.cancelWork] + ended(.cancelled, now)
        case .timePassed:
            isTimeSet = false
            return isUntold ? notice(now) : []
        }
    }

    private mutating func advance(_ done: UInt64, _ total: UInt64, _ share: Double?, _ now: UInt64) {
        self.done = max(self.done, done)
        self.total = max(total, total == 0 ? 0 : self.done)
        speedometer.add(self.done, at: now)
        let part = share ?? (total > 0 ? Double(done) / Double(total) : nil)
        guard let part, part.isFinite else { return }
        progress = max(progress ?? 0, min(max(0, part), Self.almost))
    }

    private mutating func notice(_ now: UInt64) -> [Effect] {
        isUntold = true
        guard let lastTold, now < lastTold &+ Self.interval else { return [tell(now)] }
        guard !isTimeSet else { return [] }
        isTimeSet = true
        return [.wait(until: lastTold &+ Self.interval)]
    }

    private mutating func tell(_ now: UInt64) -> Effect {
        lastTold = now
        isUntold = false
        return .tell
    }

    private mutating func ended(_ state: State, _ now: UInt64) -> [Effect] {
        end = state
        return [tell(now), .end(success: state == .finished)]
    }
}

/// The speed of a task, the mean of the latest seconds.
struct Speedometer: Sendable, Equatable {
    private struct Sample: Sendable, Equatable {
        var time: UInt64
        var done: UInt64
    }

    /// The time between two stored samples in microseconds, and the number of samples: five seconds.
    private static let spacing: UInt64 = 500_000
    private static let count = 10
    /// The shortest time after which there is a speed, in microseconds.
    private static let least: UInt64 = 200_000

    private var samples: [Sample] = []
    private var latest = Sample(time: 0, done: 0)

    mutating func restart(_ done: UInt64, at now: UInt64) {
        latest = Sample(time: now, done: done)
        samples = [latest]
    }

    mutating func add(_ done: UInt64, at now: UInt64) {
        latest = Sample(time: now, done: done)
        guard let last = samples.last, now < last.time &+ Self.spacing else {
            samples.append(latest)
            if samples.count > Self.count { samples.removeFirst() }
            return
        }
    }

    /// 0 while there is no speed yet.
    var perSecond: Double {
        guard let first = samples.first, latest.time >= first.time &+ Self.least, latest.done >= first.done else {
            return 0
        }
        return Double(latest.done - first.done) / (Double(latest.time - first.time) / 1_000_000)
    }
}
