public import PluginAPI

/// The state of a job and its progress: what happens goes in, and what has to be done comes out.
///
/// - Progress and the amount that is done never go back. Progress is 1 when the job is finished, and not before.
/// - A change of the state is told at once, progress at most ten times a second.
/// - After the end nothing changes any more.
///
/// Times are those of ``MonotonicClock``, in microseconds.
public struct JobStatus: Sendable, Equatable {
    /// What the bus calls `State`.
    public enum State: String, Sendable, CaseIterable {
        /// Its work has not begun, or has to wait.
        case waiting
        case running
        /// The client has asked for a pause.
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

    /// What ``done`` and ``total`` count.
    public enum Unit: String, Sendable, CaseIterable {
        case bytes
        case files
        case images
        /// Of media.
        case milliseconds
    }

    /// What happens to a job.
    public enum Input: Sendable, Equatable {
        /// The work has begun, or goes on after it had to wait.
        case begun
        /// The work has to wait, such as for a network; the message says for what.
        case waits(String)
        /// This much is done of `total`, 0 if that is not known. `share` is the progress, 0…1, where it is not the quotient
        /// of both.
        case progressed(done: UInt64, total: UInt64, share: Double?)
        case succeeded
        case failed(SessionError)
        /// What clients ask for.
        case pause
        case resume
        case cancel
        /// The time that ``Effect/wait(until:)`` named.
        case timePassed
    }

    /// What has to be done, in this order.
    public enum Effect: Sendable, Equatable {
        /// The work shall pause.
        case pauseWork
        /// The work shall go on.
        case resumeWork
        /// The work shall end, and remove what it has made.
        case cancelWork
        /// The changed properties are to be sent.
        case tell
        /// ``Input/timePassed`` is expected then.
        case wait(until: UInt64)
        /// `Finished` is to be sent.
        case end(success: Bool)
    }

    /// Microseconds between two notices of progress.
    static let interval: UInt64 = 100_000
    /// The progress of a job that has done everything and is not finished yet.
    static let almost = 0.999

    public let unit: Unit
    /// Whether it can pause.
    public let canPause: Bool
    /// In ``unit``.
    public private(set) var done: UInt64 = 0
    /// In ``unit``; 0: not known.
    public private(set) var total: UInt64
    /// 0…1; nil: not known.
    public private(set) var progress: Double?
    /// Why it failed or was cancelled; nil otherwise.
    public private(set) var error: SessionError?
    private var waitReason = ""
    private var hasBegun = false
    private var isPaused = false
    private var end: State?
    private var speedometer = Speedometer()
    /// When the properties were told last; nil: never.
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

    /// Of the error; while the job waits, for what.
    public var message: String { error?.message ?? (state == .waiting ? waitReason : "") }

    /// Units in a second, of the latest seconds; of milliseconds: seconds of media in a second. 0 unless it runs.
    public var speed: Double {
        guard state == .running else { return 0 }
        return unit == .milliseconds ? speedometer.perSecond / 1000 : speedometer.perSecond
    }

    /// Seconds to the end at that speed; nil: not known.
    public var remaining: Double? {
        if end == .finished { return 0 }
        guard state == .running, total >= done, total > 0, speedometer.perSecond > 0 else { return nil }
        return Double(total - done) / speedometer.perSecond
    }

    /// - Throws: `NotSupported` for a pause of a job that cannot pause.
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

/// How fast something is done, of the latest seconds.
struct Speedometer: Sendable, Equatable {
    private struct Sample: Sendable, Equatable {
        var time: UInt64
        var done: UInt64
    }

    /// Microseconds between two samples that are kept, and how many there are: five seconds.
    private static let spacing: UInt64 = 500_000
    private static let count = 10
    /// Microseconds that must have passed before there is a speed.
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

    /// 0 where there is none yet.
    var perSecond: Double {
        guard let first = samples.first, latest.time >= first.time &+ Self.least, latest.done >= first.done else {
            return 0
        }
        return Double(latest.done - first.done) / (Double(latest.time - first.time) / 1_000_000)
    }
}
