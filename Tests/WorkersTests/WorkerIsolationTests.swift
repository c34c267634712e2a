import CIsolation
import Glibc
import Testing
import Workers

/// A suite of its own, because other tests leave children that have ended, which an exit test would wait for.
@Suite struct WorkerIsolationTests {
    /// What hostile code in a worker could try against other processes of its user.
    @Test func isolatedProcess_cannotReachOthers() async {
        await #expect(processExitsWith: .success) {
            func refused(_ result: Int) -> Bool { result == -1 && errno == EPERM }
            let other = getppid()
            var limit = rlimit(rlim_cur: 64, rlim_max: 64)
            var pair: [Int32] = [-1, -1]
            // A file that it got, as a worker of exports does.
            let path = "\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/isolation-\(getpid())"
            let file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
            precondition(file >= 0 && unlink(path) == 0, "file")
            precondition(WorkerProcess.isolate().contains(.calls), "isolated")
            precondition(open("/proc/self/fd/\(file)", O_WRONLY | O_CLOEXEC) < 0, "opened again")
            precondition(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600) < 0, "new file")
            precondition(write(file, "a", 1) == 1, "own file")
            precondition(refused(Int(kill(other, 0))), "signal")
            precondition(refused(Int(kill(-1, 0))), "signal to all")
            precondition(refused(Int(socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0))), "socket")
            precondition(refused(Int(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &pair))), "datagrams")
            precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0, "streams")
            var argument: UnsafeMutablePointer<CChar>? = nil
            precondition(refused(Int(execve("/bin/true", &argument, &argument))), "program")
            // Signals by way of a descriptor: F_SETOWN and F_SETSIG are 8 and 10.
            precondition(refused(Int(fcntl(pair[0], 8, other))), "owner of signals")
            precondition(refused(Int(fcntl(pair[0], 10, SIGKILL))), "kind of signals")
            precondition(refused(Int(fcntl(pair[0], F_SETFL, O_ASYNC))), "signals of a terminal")
            precondition(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0, "own flags")
            var range = flock()
            precondition(refused(Int(withUnsafeMutablePointer(to: &range) { fcntl(file, F_SETLK, $0) })), "lock")
            // Input of the terminal.
            var letter: CChar = 0x21
            precondition(refused(Int(ioctl(0, 0x5412, &letter))), "terminal")
            // Priorities and processors of others.
            precondition(refused(Int(setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(other), 19))), "nice")
            precondition(refused(attempt(isX86 ? 203 : 122, UInt(other), 128)), "processors")
            precondition(refused(attempt(isX86 ? 144 : 119, UInt(other), 3)), "scheduler")
            precondition(refused(attempt(isX86 ? 302 : 261, UInt(other), 7)), "limits of others")
            precondition(refused(attempt(isX86 ? 251 : 30, 1, UInt(other), 0)), "disk priority")
            // Memory of others: process_vm_readv, ptrace, and System V.
            precondition(refused(attempt(isX86 ? 310 : 270, UInt(other))), "reading")
            precondition(refused(attempt(isX86 ? 311 : 271, UInt(other))), "writing")
            precondition(refused(attempt(isX86 ? 101 : 117, 16, UInt(other))), "tracing")
            precondition(refused(Int(shmget(1, 4_096, 0o600))), "shared memory")
            precondition(refused(Int(semget(1, 1, 0o600))), "semaphores")
            precondition(refused(Int(msgget(1, 0o600))), "queues")
            // Another process that would outlive it.
            precondition(refused(attempt(isX86 ? 56 : 220, UInt(SIGCHLD))), "process")
            // Itself it may limit, and it may have threads.
            precondition(setrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0, "own limit")
            var thread = pthread_t()
            precondition(pthread_create(&thread, nil, { _ in nil }, nil) == 0, "thread")
            pthread_join(thread, nil)
        }
    }

    /// Every number of a system call, with zeros. None that is not in the table reaches the kernel.
    @Test func everyOtherCall_isRefused() async {
        await #expect(processExitsWith: .success) {
            precondition(WorkerProcess.isolate().contains(.calls), "isolated")
            let allowed = Set(WorkerIsolationTests.numbers(x86_64: isX86))
            // Linux lets uretprobe and uprobe through, past every filter; they only work in code that is being traced.
            let passed = isX86 ? 335...336 : 600...600
            for number in 0..<600 where !allowed.contains(number) && !passed.contains(number) {
                errno = 0
                let result = attempt(number)
                let expected = number < isolation_first_new_call ? EPERM : ENOSYS
                precondition(result == -1 && errno == expected, "\(number)")
            }
        }
    }

    static func numbers(x86_64: Bool) -> [Int] {
        var numbers: [Int] = []
        var next = isolation_allowed_calls()
        while let call = next?.pointee, call.name != nil {
            numbers.append(Int(x86_64 ? call.x86_64 : call.arm64))
            next = next?.successor()
        }
        return numbers.filter { $0 >= 0 }
    }

    /// The same as a value, for both machines.
    @Test(arguments: [(0xC000_003E as UInt32, true), (0xC000_00B7 as UInt32, false)])
    func filter_allowsTheTableAndNothingElse(machine: UInt32, isX86: Bool) {
        let filter = FilterProgram(machine: machine, own: 77)
        let (allow, refuse) = (FilterProgram.allow, FilterProgram.refuse(EPERM))
        var unchecked: Set<Int> = []
        var checked: Set<Int> = []
        var next = isolation_allowed_calls()
        while let call = next?.pointee, call.name != nil {
            let number = Int(isX86 ? call.x86_64 : call.arm64)
            if call.is_checked != 0 { checked.insert(number) } else { unchecked.insert(number) }
            next = next?.successor()
        }
        for number in 0..<1_000 where !checked.contains(number) {
            let expected =
                unchecked.contains(number)
                ? allow : FilterProgram.refuse(number < isolation_first_new_call ? EPERM : ENOSYS)
            #expect(filter.answer(number) == expected, "\(number)")
            #expect(filter.answer(number, machine: 0x4000_0003) == refuse, "32-bit programs")
        }
        #expect(filter.answer(0x4000_0000 | 1) == FilterProgram.refuse(ENOSYS), "x32")
        func number(_ name: String) -> Int {
            var next = isolation_allowed_calls()
            while let call = next?.pointee, let known = call.name {
                if String(cString: known) == name { return Int(isX86 ? call.x86_64 : call.arm64) }
                next = next?.successor()
            }
            return -1
        }
        let thread: UInt64 = 0x3d0f00
        let cases: [(String, [UInt64], Bool)] = [
            ("clone", [thread], true), ("clone", [17], false), ("clone", [thread | 0x1000_0000], false),
            ("clone", [0x4111], false), ("clone", [thread & ~0x10000], false),
            ("fcntl", [3, 0], true), ("fcntl", [3, 1_030], true), ("fcntl", [3, 4, 0o4000], true),
            ("fcntl", [3, 4, 0o24000], false), ("fcntl", [3, 8, 1], false), ("fcntl", [3, 10, 9], false),
            ("fcntl", [3, 6], false), ("fcntl", [3, 1_024], false), ("fcntl", [3, 1_026], false),
            ("ioctl", [0, 0x5401], true), ("ioctl", [0, 0x5412], false), ("ioctl", [0, 0x8901], false),
            ("tgkill", [77, 80, 6], true), ("tgkill", [78, 80, 6], false),
            ("prlimit64", [0, 7], true), ("prlimit64", [78, 7], false),
            ("prctl", [15], true), ("prctl", [1, 0], false), ("prctl", [0x5961_6d61], false),
            ("sendto", [3, 1, 1, 0, 0, 0], true), ("sendto", [3, 1, 1, 0, 1 << 32, 0], false),
            ("sendto", [3, 1, 1, 0, 4_096, 0], false),
            ("socketpair", [1, 1], true), ("socketpair", [1, 0o2000001], true), ("socketpair", [1, 2], false),
            ("socketpair", [2, 1], false), ("socketpair", [1, 5], false),
            ("openat", [0, 0, 0o2000000], true), ("openat", [0, 0, 1], false), ("openat", [0, 0, 2], false),
            ("openat", [0, 0, 0o100], false), ("openat", [0, 0, 0o1000], false), ("openat", [0, 0, 0o20200000], false),
        ]
        for (name, arguments, isAllowed) in cases {
            #expect(number(name) >= 0, "\(name)")
            #expect(filter.answer(number(name), arguments) == (isAllowed ? allow : refuse), "\(name) \(arguments)")
        }
        if isX86 {
            #expect(filter.answer(2, [0, 0o2000000]) == allow)
            #expect(filter.answer(2, [0, 0o2000101]) == refuse)
        }
    }
}

/// Makes a system call by its number.
func attempt(_ number: Int, _ arguments: UInt...) -> Int {
    isolation_try(number, arguments + Array(repeating: 0, count: 6 - arguments.count))
}

#if arch(x86_64)
    let isX86 = true
#else
    let isX86 = false
#endif

/// The filter, interpreted as the kernel does it.
struct FilterProgram {
    static let allow: UInt32 = 0x7fff_0000
    static func refuse(_ error: Int32) -> UInt32 { 0x0005_0000 | UInt32(error) }

    private let steps: [sock_filter]
    private let machine: UInt32

    init(machine: UInt32, own: UInt32) {
        self.machine = machine
        steps = [sock_filter](unsafeUninitializedCapacity: isolation_filter_room) { buffer, count in
            count = isolation_filter(machine, own, buffer.baseAddress, buffer.count)
        }
    }

    /// The answer to a call; nil: the program is invalid.
    func answer(_ number: Int, _ arguments: [UInt64] = [], machine other: UInt32? = nil) -> UInt32? {
        var data = [UInt32(truncatingIfNeeded: number), other ?? machine, 0, 0]
        for index in 0..<6 {
            let argument = index < arguments.count ? arguments[index] : 0
            data += [UInt32(truncatingIfNeeded: argument), UInt32(argument >> 32)]
        }
        var (index, value): (Int, UInt32) = (0, 0)
        while steps.indices.contains(index) {
            let step = steps[index]
            index += 1
            switch step.code {
            case 0x20: value = data[Int(step.k) / 4]
            case 0x54: value &= step.k
            case 0x15: index += Int(value == step.k ? step.jt : step.jf)
            case 0x35: index += Int(value >= step.k ? step.jt : step.jf)
            case 0x06: return step.k
            default: return nil
            }
        }
        return nil
    }
}
