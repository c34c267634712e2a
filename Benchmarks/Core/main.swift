import AllocationCount
import Glibc
import PluginAPI
import SessionManager

// Measures only the rules: one event among many sessions. Prints for each the name, microseconds and allocations.

func nanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// An arbiter with this number of inactive playback sessions, each of another client.
func populated(_ count: Int) throws -> Arbiter {
    var settings = Arbiter.Settings()
    settings.maxSessions = count
    var arbiter = Arbiter(settings: settings)
    let playback = try Configuration(category: .playback)
    for number in 1...count {
        let new = NewSession(
            name: "a session of client \(number)", client: ClientID(UInt64(number)), configuration: playback)
        _ = arbiter.handle(.create(new), at: Instant(microseconds: UInt64(number)))
    }
    return arbiter
}

/// Measures one event many times. The events before and after it restore the initial state each time.
func measure(_ name: String, among count: Int, before: [Event], _ event: Event, after: [Event]) throws {
    var arbiter = try populated(count)
    var costs: [UInt64] = []
    var allocations: [UInt64] = []
    costs.reserveCapacity(rounds)
    allocations.reserveCapacity(rounds)
    var now: UInt64 = 1_000_000
    for _ in 0..<rounds {
        for event in before {
            now += 1
            _ = arbiter.handle(event, at: Instant(microseconds: now))
        }
        now += 1
        let counted = UInt64(allocation_count())
        let start = nanoseconds()
        let decision = arbiter.handle(event, at: Instant(microseconds: now))
        let end = nanoseconds()
        allocations.append(UInt64(allocation_count()) - counted)
        costs.append(end - start)
        guard decision.isNoteworthy else { fatalError("\(name): the event had no effect") }
        for event in after {
            now += 1
            _ = arbiter.handle(event, at: Instant(microseconds: now))
        }
    }
    costs.sort()
    allocations.sort()
    print("core-\(name)-\(count)", Double(costs[rounds / 2]) / 1_000, allocations[rounds / 2])
}

let rounds = 4_001
for count in [1, 100, 1_000] {
    let one = SessionID(1)
    let leave = Event.deactivate(one, notifyOthers: false)
    try measure("activate", among: count, before: [], .activate(one), after: [leave])
    try measure("deactivate", among: count, before: [.activate(one)], leave, after: [])
    guard count > 1 else { continue }
    let last = SessionID(UInt64(count))
    let lastLeaves = Event.deactivate(last, notifyOthers: true)
    try measure("interrupt", among: count, before: [.activate(one)], .activate(last), after: [lastLeaves, leave])
    try measure("release", among: count, before: [.activate(one), .activate(last)], lastLeaves, after: [leave])
}
