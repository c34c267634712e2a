import DBus
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The memory, file descriptors and threads of a process, as the kernel counts them.
struct Footprint {
    /// Kilobytes.
    let memory: Int
    let descriptors: Int
    let threads: Int

    init(of process: Int32) throws {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        func number(_ key: String) -> Int {
            let line = status.split(separator: "\n").first { $0.hasPrefix(key + ":") } ?? ""
            return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
        }
        memory = number("VmRSS")
        threads = number("Threads")
        descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }
}

extension Child {
    /// Waits until the process uses no processor any more, for several looks.
    func waitUntilIdle() throws -> Bool {
        var (used, looks) = ("", 0)
        return try eventually(timeout: 60) {
            let now = try String(contentsOfFile: "/proc/\(processID)/schedstat", encoding: .utf8)
            looks = now == used ? looks + 1 : 0
            used = now
            return looks == 50
        }
    }
}

/// Sanitizers keep freed memory, so tests cannot judge the use of memory under them.
let isSanitized = ProcessInfo.processInfo.environment["SESSIOND_SANITIZER"] != nil

extension DaemonStage {
    var footprint: Footprint { get throws { try Footprint(of: daemon.processID) } }

    /// Every session as `ListSessions` returns it. The timeout is long because 1,000 sessions can wait for each other,
    /// which makes half a million paths.
    func listedSessions() throws -> [[String: Value]] {
        try manager("ListSessions", timeout: 60)[0].arrayValue?.compactMap(\.asProperties) ?? []
    }

    /// The state of the session of that name; nil: there is none.
    func state(named name: String) throws -> String? {
        let session = try listedSessions().first { $0["Name"]?.stringValue == name }
        return session?["State"]?.stringValue
    }

    /// Checks what is true after any event: at most one non-mixable app session is active, and no session is ducked
    /// unless another one ducks it.
    func expectInvariants(_ location: SourceLocation = #_sourceLocation) throws {
        let sessions = try listedSessions()
        func options(_ session: [String: Value]) -> [String] { session["Options"]?.stringsValue ?? [] }
        let active = sessions.filter { $0["State"] == .string("active") }
        let alone = active.filter { $0["Class"] == .string("app") && !options($0).contains("mix-with-others") }
        #expect(alone.count <= 1, "\(alone.compactMap { $0["Name"]?.stringValue })", sourceLocation: location)
        for session in sessions where session["Ducked"] == .bool(true) {
            let ducker = active.first { $0["path"] != session["path"] && options($0).contains("duck-others") }
            #expect(ducker != nil, "\(session["Name"] as Any) is ducked by no session", sourceLocation: location)
        }
        let paths = Set(sessions.compactMap { $0["path"]?.objectPathValue })
        for session in sessions {
            let isInterrupted = session["State"] == .string("interrupted")
            #expect(
                (session["InterruptionReason"] != .string("")) == isInterrupted, "\(session)", sourceLocation: location)
            for other in session["WaitingFor"]?.objectPathsValue ?? [] {
                #expect(paths.contains(other), "waits for a session that does not exist", sourceLocation: location)
            }
        }
    }

    /// Checks that the same daemon process still answers, and that it uses no more memory, descriptors and threads than
    /// before.
    func expectUnharmed(
        since before: Footprint, serving process: Int32, location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(daemon.isRunning && daemon.processID == process, "\(daemon.errors)", sourceLocation: location)
        try expectInvariants(location)
        let client = try self.client()
        let path = try client.session("Afterwards", options: ["mix-with-others"])
        let begun = monotonicNow()
        #expect(client.activate(path) == nil, sourceLocation: location)
        let latency = (monotonicNow() - begun) * 1_000
        #expect(client.call(path, "Close") == nil, sourceLocation: location)
        // The daemon notices one disconnected client after the other.
        let isBack = try eventually {
            let now = try footprint
            return now.descriptors <= before.descriptors && (isSanitized || now.memory <= before.memory + 8_192)
        }
        let now = try footprint
        #expect(
            isBack,
            "descriptors \(before.descriptors) → \(now.descriptors), memory \(before.memory) → \(now.memory) kB",
            sourceLocation: location)
        #expect(now.threads == before.threads, sourceLocation: location)
        print(
            "after it: activation \(String(format: "%.2f", latency)) ms, memory \(now.memory - before.memory) kB more, "
                + "descriptors \(now.descriptors - before.descriptors) more")
    }

    /// Runs a fault on a daemon that has warmed up, and then checks that the daemon is unharmed.
    func surviving(location: SourceLocation = #_sourceLocation, _ fault: () throws -> Void) throws {
        try warmUp()
        let before = try footprint
        let process = daemon.processID
        try fault()
        try expectUnharmed(since: before, serving: process, location: location)
    }

    /// Makes the daemon allocate the memory that it keeps, so that the test does not count it.
    private func warmUp() throws {
        for _ in 0..<3 {
            let client = try self.client()
            for index in 0..<16 {
                let path = try client.session("Warm \(index)", options: index % 2 == 0 ? [] : ["duck-others"])
                client.activate(path)
            }
            _ = try listedSessions()
        }
        #expect(try eventually { try listedSessions().isEmpty })
    }

    /// Starts a client in a process of its own, which the test can kill or stop.
    func foreigner(_ arguments: [String] = [], with more: [String: String] = [:]) throws -> Foreigner {
        try Foreigner(bus.environment.merging(more) { $1 }, arguments)
    }
}

/// A client in another language and in its own process. It carries out commands, one on each line.
final class Foreigner {
    let process: Child
    private var answers = 0

    init(_ environment: [String: String], _ wrapper: [String] = []) throws {
        let words = wrapper + ["/usr/bin/python3", "-u", "-c", Foreigner.program]
        process = try Child(words[0], Array(words.dropFirst()), environment: environment)
        guard process.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the foreign client did not start: \(process.errors)")
        }
    }

    /// Sends a command and returns its answer: `ok`, `ok` and a result, or an error's name.
    @discardableResult
    func ask(_ line: String) -> String {
        answers += 1
        let prefix = "\(answers) "
        process.send(line)
        return process.line { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) } ?? "nothing"
    }

    /// Sends a command and does not wait for its answer.
    func tell(_ line: String) {
        answers += 1
        process.send(line)
    }

    func create(_ name: String, category: String = "playback", option: String = "-", class sessionClass: String = "app")
        -> String
    {
        let answer = ask("create \(name) \(category) \(option) \(sessionClass)")
        return answer.hasPrefix("ok ") ? String(answer.dropFirst(3)) : answer
    }

    private static let program = """
        import ctypes, dbus, os, sys
        bus = dbus.bus.BusConnection(os.environ['DBUS_SESSION_BUS_ADDRESS'])
        # Each time anew: dbus-python remembers which connection owned the name.
        def manager():
            return dbus.Interface(bus.get_object('org.sessiond1', '/org/sessiond1', introspect=False),
                                  'org.sessiond1.Manager')
        none = dbus.Dictionary({}, signature='sv')
        libc = ctypes.CDLL(None)
        def session(path):
            return dbus.Interface(bus.get_object('org.sessiond1', path, introspect=False), 'org.sessiond1.Session')
        def create(name, category, option, kind, process=None):
            words = dbus.Array([] if option == '-' else [option], signature='s')
            options = dbus.Dictionary({'category': category, 'class': kind, 'options': words}, signature='sv')
            if process: options['pid'] = dbus.UInt32(int(process))
            return manager().CreateSession(name, options)
        print('ready')
        count = 0
        for line in sys.stdin:
            count += 1
            word, *rest = line.split()
            try:
                result = None
                if word == 'create': result = create(*rest)
                elif word == 'activate': session(rest[0]).Activate(none)
                elif word == 'deactivate': session(rest[0]).Deactivate(none)
                elif word == 'close': session(rest[0]).Close()
                elif word == 'activate-and-die':
                    session(rest[0]).Activate(none, ignore_reply=True)
                    bus.flush()
                    os.kill(os.getpid(), 9)
                elif word == 'silent': manager().SetSilentMode(rest[0] == 'on')
                elif word == 'locked': manager().SetScreenLocked(rest[0] == 'on')
                elif word == 'foreground': manager().SetForeground(dbus.ObjectPath(rest[0]), rest[1] == 'on')
                elif word == 'state':
                    result = bus.call_blocking('org.sessiond1', rest[0], 'org.freedesktop.DBus.Properties', 'Get', 'ss',
                                               ('org.sessiond1.Session', 'State'))
                elif word == 'list': result = len(manager().ListSessions())
                elif word == 'own': result = bus.request_name('org.sessiond1', 4)
                elif word == 'open': result = dbus.Interface(manager().proxy_object, 'org.sessiond1.Plugins').Open(*rest)[0]
                elif word == 'call': bus.call_blocking(*rest[:4], 's' * len(rest[4:]), rest[4:])
                elif word == 'prepare':
                    bus.call_blocking(
                        rest[0], '/org/sessiond1/recorder', 'org.sessiond1.Recorder', 'Prepare', 'sa{sv}', [rest[1], none])
                elif word == 'bare':
                    # Without an interface: any interface with a method of that name may answer.
                    import dbus.lowlevel
                    message = dbus.lowlevel.MethodCallMessage('org.sessiond1', '/org/sessiond1', None, rest[0])
                    message.append(*[{'true': True, 'false': False}.get(x, x) for x in rest[2:]],
                                   signature=rest[1])
                    bus.send_message_with_reply_and_block(message, 5)
                elif word == 'register':
                    info = dbus.Dictionary({'object': dbus.ObjectPath('/x')}, signature='sv')
                    if len(rest) > 1: info['interface'] = dbus.UInt32(int(rest[1]))
                    dbus.Interface(manager().proxy_object, 'org.sessiond1.Plugins').Register(rest[0], info)
                elif word == 'names':
                    for name in rest: bus.request_name(name, 4)
                elif word == 'descriptors':
                    import dbus.lowlevel
                    null = os.open('/dev/null', os.O_RDONLY)
                    for number in range(int(rest[0])):
                        message = dbus.lowlevel.MethodCallMessage('org.sessiond1', '/org/sessiond1',
                                                                  'org.freedesktop.DBus.Peer', 'Ping')
                        message.set_no_reply(True)
                        message.append(*[dbus.types.UnixFd(null)] * int(rest[1]), signature='h' * int(rest[1]))
                        bus.send_message(message)
                    bus.flush()
                elif word == 'create-with-descriptor':
                    file = dbus.types.UnixFd(0, variant_level=1)
                    manager().CreateSession('A', dbus.Dictionary({'file': file}, signature='sv'))
                elif word == 'chroot': os.chroot(rest[0])
                elif word == 'hide': libc.prctl(4, 0, 0, 0, 0)
                elif word == 'pid': result = os.getpid()
                print(count, 'ok' if result is None else f'ok {result}')
            except dbus.DBusException as error:
                print(count, error.get_dbus_name())
        """
}
