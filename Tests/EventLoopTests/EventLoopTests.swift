import EventLoop
import Glibc
import Testing

@Suite struct EventLoopTests {
    @Test func timers_fireOnceInOrder() {
        let loop = EventLoop()
        var fired: [Int] = []
        let second = Timer(on: loop) { fired.append(2) }
        let first = Timer(on: loop) { fired.append(1) }
        second.arm(after: 0.02)
        first.arm(after: 0.005)
        #expect(loop.iterate(timeout: 10) { fired.count == 2 })
        #expect(!loop.iterate(timeout: 0.05) { fired.count > 2 })
        #expect(fired == [1, 2])
    }

    /// What arrives takes two turns of the loop, as a message of D-Bus does, and the process was stopped in between.
    @Test(arguments: [true, false]) func deadlineThatIsLate_waitsForWhatHasArrived(hasArrived: Bool) {
        let loop = EventLoop()
        var events: [String] = []
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        var deadline: Deadline?
        let watch = IOWatch(on: loop, descriptor: ends[0], events: .readable) { _ in
            var byte: UInt8 = 0
            guard read(ends[0], &byte, 1) == 1 else { return }
            loop.later {
                events.append("answer")
                deadline?.disarm()
            }
        }
        deadline = Deadline(on: loop) { events.append("deadline") }
        deadline?.arm(after: 0.001)
        if hasArrived { #expect(write(ends[1], "a", 1) == 1) }
        // The process is stopped for longer than a deadline may be late.
        usleep(400_000)
        #expect(loop.iterate(timeout: 10) { !events.isEmpty })
        #expect(!loop.iterate(timeout: 0.3) { events.count > 1 })
        #expect(events == [hasArrived ? "answer" : "deadline"])
        withExtendedLifetime(watch) {}
    }

    @Test func deadline_passesOnceAndNotBeforeItsTime() {
        let loop = EventLoop()
        var at: [UInt64] = []
        let deadline = Deadline(on: loop) { at.append(MonotonicClock.now()) }
        let due = MonotonicClock.now() + 20_000
        deadline.arm(at: due)
        #expect(loop.iterate(timeout: 10) { !at.isEmpty })
        #expect(!loop.iterate(timeout: 0.3) { at.count > 1 })
        #expect(at.allSatisfy { $0 >= due })
        deadline.arm(after: 0)
        deadline.disarm()
        #expect(!loop.iterate(timeout: 0.05) { at.count > 1 })
    }

    @Test func timer_neverFiresBeforeItsTime() {
        let loop = EventLoop()
        var at: UInt64 = 0
        let timer = Timer(on: loop) { at = MonotonicClock.now() }
        let due = MonotonicClock.now() + 20_000
        timer.arm(at: due)
        #expect(loop.iterate(timeout: 10) { at != 0 })
        #expect(at >= due)
    }

    @Test func timerDisarmedRearmedOrReleased_doesNotFireAtTheOldTime() {
        let loop = EventLoop()
        var fired = 0
        let timer = Timer(on: loop) { fired += 1 }
        timer.arm(after: 0.001)
        timer.disarm()
        var dropped: Timer? = Timer(on: loop) { fired += 100 }
        dropped?.arm(after: 0.001)
        dropped = nil
        #expect(!loop.iterate(timeout: 0.03) { fired > 0 })
        timer.arm(after: 100)
        timer.arm(after: 0)
        #expect(loop.iterate(timeout: 10) { fired == 1 })
    }

    @Test func timerWithAnImpossibleTime_isClamped() {
        #expect(MonotonicClock.microseconds(.nan) == 0)
        #expect(MonotonicClock.microseconds(-1) == 0)
        #expect(MonotonicClock.microseconds(.infinity) == 3_150_000_000_000_000)
        let loop = EventLoop()
        var fired = false
        let timer = Timer(on: loop) { fired = true }
        timer.arm(after: .infinity)
        #expect(!loop.iterate(timeout: 0.01) { fired })
        timer.arm(after: .nan)
        #expect(loop.iterate(timeout: 10) { fired })
    }

    @Test func timerReleasedInItsOwnHandler_doesNotCrash() {
        let loop = EventLoop()
        var timer: Timer?
        var fired = 0
        timer = Timer(on: loop) {
            fired += 1
            timer = nil
        }
        timer?.arm(after: 0.001)
        #expect(loop.iterate(timeout: 10) { fired == 1 })
        #expect(timer == nil)
    }

    @Test func later_runsAfterTheCallerInOrder_andMayBeCalledAgain() {
        let loop = EventLoop()
        var order: [Int] = []
        loop.later {
            order.append(1)
            loop.later { order.append(3) }
        }
        loop.later { order.append(2) }
        #expect(order.isEmpty)
        #expect(loop.iterate(timeout: 10) { order.count == 3 })
        #expect(order.sorted() == [1, 2, 3])
        #expect(order.last == 3)
    }

    @Test func later_releasesItsClosureWhetherItRanOrNot() {
        final class Thing {}
        weak var ran: Thing?
        weak var never: Thing?
        do {
            let loop = EventLoop()
            do {
                let thing = Thing()
                ran = thing
                loop.later { withExtendedLifetime(thing) {} }
            }
            // libpulse frees a callback that ran at the next turn of the loop.
            loop.iterate()
            loop.iterate(blocking: false)
            #expect(ran == nil)
            do {
                let thing = Thing()
                never = thing
                loop.later { withExtendedLifetime(thing) {} }
            }
            #expect(never != nil)
        }
        #expect(ran == nil)
        #expect(never == nil)
    }

    @Test func descriptor_isReadableWritablePausedAndHungUp() {
        let loop = EventLoop()
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        var seen: [IOWatch.Events] = []
        let watch = IOWatch(on: loop, descriptor: ends[0], events: .readable) { events in
            seen.append(events)
            if events.contains(.readable) {
                var byte: UInt8 = 0
                _ = read(ends[0], &byte, 1)
            }
        }
        _ = write(ends[1], "x", 1)
        #expect(loop.iterate(timeout: 10) { seen == [.readable] })
        watch.events = []
        _ = write(ends[1], "x", 1)
        #expect(!loop.iterate(timeout: 0.02) { seen.count > 1 })
        watch.events = .writable
        #expect(loop.iterate(timeout: 10) { seen.count > 1 })
        #expect(seen.last == .writable)
        watch.events = .readable
        close(ends[1])
        #expect(loop.iterate(timeout: 10) { seen.last?.contains(.hangUp) == true })
        withExtendedLifetime(watch) {}
        close(ends[0])
    }

    @Test func watchReleasedInItsOwnHandler_doesNotCrash() {
        let loop = EventLoop()
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        var count = 0
        var watch: IOWatch?
        watch = IOWatch(on: loop, descriptor: ends[0], events: .readable) { _ in
            count += 1
            watch = nil
        }
        _ = write(ends[1], "x", 1)
        #expect(loop.iterate(timeout: 10) { count == 1 })
        #expect(!loop.iterate(timeout: 0.02) { count > 1 })
        #expect(watch == nil)
        ends.forEach { _ = close($0) }
    }

    @Test func signal_isReportedUntilTheWatchIsReleased() {
        let loop = EventLoop()
        var count = 0
        var watch: SignalWatch? = loop.watch(signal: SIGUSR2) { count += 1 }
        // The signal goes to the process. The loop gets it in whichever thread it arrives.
        kill(getpid(), SIGUSR2)
        #expect(loop.iterate(timeout: 10) { count == 1 })
        #expect(watch != nil)
        watch = nil
        #expect(watch == nil)
    }

    @Test func quit_endsRunWithItsCode() {
        let loop = EventLoop()
        loop.later { loop.quit(7) }
        #expect(loop.run() == 7)
    }

    @Test func iterateWithoutEvents_endsAtItsTimeout() {
        let loop = EventLoop()
        let start = MonotonicClock.now()
        #expect(!loop.iterate(timeout: 0.02) { false })
        #expect(MonotonicClock.now() - start >= 20_000)
    }
}
