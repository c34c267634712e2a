import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The wall clock jumps by ten years, for the daemon only (faults.md, D5). A preloaded library adds ten years to the
/// wall clock while a file exists. It aborts the daemon if the daemon asks the kernel for a timer of that clock.
@Suite struct WallClockTests {
    private static let shim = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdlib.h>
        #include <sys/time.h>
        #include <sys/timerfd.h>
        #include <time.h>
        #include <unistd.h>

        static time_t ahead(void) {
            const char *file = getenv("WALL_CLOCK_JUMP");
            return file && access(file, F_OK) == 0 ? 10L * 365 * 86400 : 0;
        }

        static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

        int clock_gettime(clockid_t clock, struct timespec *now) {
            static int (*next)(clockid_t, struct timespec *);
            if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
            int result = next(clock, now);
            if (result == 0 && is_wall(clock)) now->tv_sec += ahead();
            return result;
        }

        int gettimeofday(struct timeval *restrict now, void *restrict zone) {
            struct timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            now->tv_sec = time.tv_sec;
            now->tv_usec = time.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *now) {
            struct timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            if (now) *now = time.tv_sec;
            return time.tv_sec;
        }

        int timerfd_create(int clock, int flags) {
            static int (*next)(int, int);
            if (!next) next = dlsym(RTLD_NEXT, "timerfd_create");
            if (is_wall(clock)) abort();
            return next(clock, flags);
        }

        int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) { abort(); }
        """#

    private let folder: PrivateFolder
    private let jump: String
    private let environment: [String: String]

    init() throws {
        folder = try PrivateFolder()
        jump = folder.path + "/jump"
        let source = try folder.file("wall-clock.c", WallClockTests.shim)
        let library = folder.path + "/wall-clock.so"
        let compiler = try Child(CompilerOfC.name, ["-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"])
        guard compiler.wait(timeout: 60) == .code(0) else { throw SupportError("\(compiler.errors)") }
        environment = ["LD_PRELOAD": library, "WALL_CLOCK_JUMP": jump]
    }

    private func jumpAhead() throws { try Data().write(to: URL(fileURLWithPath: jump)) }
    private func jumpBack() throws { try FileManager.default.removeItem(atPath: jump) }

    /// The year that a program with the library sees.
    private func year() throws -> Int {
        let date = try Child("date", ["+%Y"], environment: environment)
        _ = date.wait(timeout: 10)
        return Int(date.output.first ?? "") ?? 0
    }

    /// Makes a session with a claim: a call interrupted it and has ended.
    private func claim(_ stage: DaemonStage) throws -> (client: Client, path: String) {
        let (music, phone) = (try stage.client(), try stage.client())
        let path = try music.session("Music")
        let call = try phone.session("Phone", category: "play-and-record", class: "call")
        music.activate(path)
        phone.activate(call)
        phone.deactivate(call)
        #expect(try music.heard() == ["Music began default by Phone", "Music ended resume"])
        return (music, path)
    }

    private func cause(_ stage: DaemonStage, _ path: String) throws -> Value? {
        try stage.manager("Explain", [.objectPath(path)])[0].arrayValue?.first?.asProperties?["cause"]
    }

    @Test func wallClockJumpsTenYears_nothingFiresEarly() throws {
        let before = try year()
        let stage = try DaemonStage(settings: "[interruption]\ngrace = 60\n", environment: environment)
        let (music, path) = try claim(stage)
        try jumpAhead()
        #expect(try year() >= before + 9)
        // These calls wake the daemon, and it reads the time more than once.
        let other = try stage.client()
        for index in 0..<20 { _ = try other.session("Other \(index)") }
        #expect(try cause(stage, path) == .string("claim"))
        #expect(try music.heard() == [])
        stage.daemon.kill()
        try stage.restart()
        #expect(try cause(stage, path) == .string("claim"), "the next daemon")
        try jumpBack()
        #expect(try cause(stage, path) == .string("claim"))
        #expect(music.activate(path) == nil)
        #expect(stage.daemon.isRunning)
    }

    @Test func wallClockJumpsBack_nothingFiresLate() throws {
        try jumpAhead()
        let stage = try DaemonStage(settings: "[interruption]\ngrace = 0.2\n", environment: environment)
        let (music, path) = try claim(stage)
        try jumpBack()
        #expect(try eventually { try cause(stage, path) == .string("inactive") })
        #expect(music.state(path) == "inactive")
    }
}
