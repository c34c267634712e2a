import EventLoop
import Foundation
import TestSupport
import Testing

@testable import Workers

/// Real processes that hang, crash, leak, say what they must not, and do their work.
@Suite struct WorkersTests {
    /// A worker of another language, to be sure of the bytes. What it does is the name of the request.
    private static let script = """
        import ctypes, os, socket, struct, sys, time
        line = socket.socket(fileno=int(sys.argv[-1]))
        def text(value):
            value = value.encode()
            return struct.pack('<Q', len(value)) + value
        def send(name, fields=()):
            body = text(name) + struct.pack('<Q', len(fields))
            for key, value in sorted(fields):
                body += text(key) + (b'\\x03' + text(value) if isinstance(value, str) else b'\\x01' + struct.pack('<q', value))
            line.sendall(struct.pack('<I', len(body)) + body)
        def read(count):
            data = b''
            while len(data) < count:
                more = line.recv(count - len(data))
                if not more: sys.exit(0)
                data += more
            return data
        started = time.time_ns()
        send('ready')
        while True:
            body = read(struct.unpack('<I', read(4))[0])
            length = struct.unpack('<Q', body[:8])[0]
            name = body[8:8 + length].decode()
            if name == 'hang': time.sleep(1000)
            if name == 'busy':
                while True: pass
            if name == 'crash': ctypes.string_at(0)
            if name == 'exit': sys.exit(3)
            if name == 'fork':
                if os.fork() == 0: os.setsid()
                time.sleep(1000)
            if name == 'print':
                try:
                    os.write(2, b'daemon: ' + b'a' * 10000 + b'\\n\\x1b[2J')
                    for _ in range(200000): os.write(2, b'line\\n')
                except BrokenPipeError: pass
            if name == 'look':
                try: terminal = open('/dev/tty')
                except OSError: terminal = None
                status = dict(l.split(':', 1) for l in open('/proc/self/status'))
                send('seen', [('session', os.getsid(0)), ('process', os.getpid()), ('parent', os.getppid()),
                    ('terminal', 0 if terminal is None else 1), ('input', len(sys.stdin.read())),
                    ('processes', len(status['NSpid'].split()))])
            if name == 'fields':
                field = struct.pack('<Q3s', 3, b'abc') + b'\\x00\\x01'
                body = text('done') + struct.pack('<Q', 4000000) + field * 4000000
                try: line.sendall(struct.pack('<I', len(body)) + body)
                except OSError: sys.exit(0)
            if name == 'many':
                frame = text('progress') + struct.pack('<Q', 0)
                line.sendall((struct.pack('<I', len(frame)) + frame) * 20000)
            if name == 'noise': line.sendall(b'\\xff' * 100)
            if name == 'huge': line.sendall(struct.pack('<I', 1 << 31))
            if name == 'slow':
                for step in range(4):
                    send('progress', [('step', step)])
                    time.sleep(0.1)
            send('done', [('name', name), ('started', started)])
        """

    private static let answers = AnswerLimits([
        "progress": MessageLimit(fields: 1), "seen": MessageLimit(fields: 8), "done": MessageLimit(fields: 2),
        "large": MessageLimit(fields: 1, data: 8 << 20),
    ])

    private final class Stage {
        let folder: PrivateFolder
        let loop = EventLoop()
        let workers: Workers
        var ends: [String] = []
        var lines: [String] = []

        init(tasks: Int = 200) throws {
            folder = try PrivateFolder()
            let script = try folder.file("worker.py", WorkersTests.script)
            var log: (String) -> Void = { _ in }
            workers = Workers(
                "/usr/bin/python3", [script], WorkerPool.Limits(workers: 2, tasks: tasks), WorkersTests.answers,
                on: loop
            ) { log($0) }
            log = { [unowned self] in lines.append($0) }
        }

        @discardableResult
        func run(_ name: String, patience: Double = 20, onAnswer: @escaping (WorkerMessage) -> Void = { _ in })
            -> UInt64
        {
            workers.run(WorkerMessage(name), patience: patience, onAnswer: onAnswer) { [unowned self] result in
                switch result {
                case .success(let message): ends.append("\(name) \(message.name)")
                case .failure(let failure): ends.append("\(name) \(failure)")
                }
            }
        }

        /// For what happens in other processes, of which the loop hears nothing.
        func look(until condition: () -> Bool) throws {
            let inTime = eventually(timeout: 30) {
                loop.iterate(blocking: false)
                return condition()
            }
            try #require(inTime, "\(ends)")
        }

        func wait(until condition: () -> Bool) throws {
            let inTime = loop.iterate(timeout: 30, until: condition)
            try #require(inTime, "\(ends)")
        }
    }

    @Test(arguments: ["hang", "busy"]) func taskThatTakesTooLong_failsAndTheNextIsDone(name: String) throws {
        let stage = try Stage()
        stage.run(name, patience: 0.3)
        try stage.wait { stage.ends == ["\(name) silent(0.3)"] }
        stage.run("work")
        try stage.wait { stage.ends.count == 2 }
        #expect(stage.ends[1] == "work done")
        #expect(!stage.workers.isBusy)
    }

    @Test(arguments: ["crash", "exit", "noise", "huge", "fields"]) func workerThatEnds_costsItsTaskAlone(name: String)
        throws
    {
        let stage = try Stage()
        stage.run(name)
        stage.run("work")
        try stage.wait { stage.ends.count == 2 }
        #expect(Set(stage.ends) == ["\(name) ended", "work done"])
    }

    @Test func answers_giveTheTaskTimeAgain() throws {
        let stage = try Stage()
        var steps: [Int64] = []
        stage.run("slow", patience: 5) { steps.append($0.whole("step") ?? -1) }
        try stage.wait { !stage.ends.isEmpty }
        #expect(stage.ends == ["slow done"])
        #expect(steps == [0, 1, 2, 3])
    }

    @Test func cancelledTask_endsAtOnceWithItsProcesses() throws {
        let stage = try Stage()
        let task = stage.run("fork")
        try stage.look { stage.workers.processes.contains { !Self.children($0).isEmpty } }
        let processes = stage.workers.processes
        let children = processes.flatMap(Self.children)
        stage.workers.cancel(task)
        #expect(!stage.workers.isBusy)
        try stage.look { processes.allSatisfy { kill(-$0, 0) != 0 } }
        // The child left the process group; where there are namespaces, it ends too.
        if WorkerProcess.probe().contains(.namespaces) {
            try stage.look { children.allSatisfy { kill($0, 0) != 0 } }
        } else {
            for child in children { kill(child, SIGKILL) }
        }
        #expect(stage.ends == [])
        stage.run("work")
        try stage.wait { stage.ends == ["work done"] }
    }

    private static func children(_ process: Int32) -> [Int32] {
        let path = "/proc/\(process)/task/\(process)/children"
        return ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: " ").compactMap {
            Int32($0)
        }
    }

    /// A worker with a terminal could type commands into it.
    @Test func worker_hasNoTerminalAndNamesNoOtherProcess() throws {
        let stage = try Stage()
        var seen: WorkerMessage?
        stage.run("look") { seen = $0 }
        try stage.wait { stage.ends == ["look done"] }
        let answer = try #require(seen)
        #expect(answer.whole("session") == answer.whole("process"))
        #expect(answer.whole("terminal") == 0 && answer.whole("input") == 0)
        guard WorkerProcess.probe().contains(.namespaces) else { return }
        #expect(answer.whole("process") == 1 && answer.whole("parent") == 0)
        #expect(answer.whole("processes") == 2, "one number inside, one outside")
    }

    @Test func floodOfOutput_isCutAndTheWorkerGoesOn() throws {
        let stage = try Stage()
        stage.run("print")
        try stage.wait { stage.ends == ["print done"] }
        #expect(stage.lines.count == WorkerOutput.mostLines)
        #expect(stage.lines.allSatisfy { $0.hasPrefix("worker 1: ") && $0.utf8.count < 600 })
        #expect(stage.lines.last?.hasSuffix("left out)") == true)
    }

    @Test func pausedTask_isStoppedUntilItGoesOn() throws {
        let stage = try Stage()
        var steps = 0
        let task = stage.run("slow", patience: 1) { _ in steps += 1 }
        try stage.wait { steps > 0 }
        stage.workers.pause(task)
        try stage.wait { stage.workers.processes.contains { Self.state($0) == "T" } }
        // Another one is done meanwhile.
        stage.run("work")
        try stage.wait { stage.ends == ["work done"] }
        stage.workers.resume(task)
        try stage.wait { stage.ends.last == "slow done" }
    }

    private static func state(_ process: Int32) -> String? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return nil }
        return text[end...].split(separator: " ").dropFirst().first.map(String.init)
    }

    @Test func worker_isReplacedAndNothingIsLeft() throws {
        let stage = try Stage(tasks: 2)
        var seen: Set<Int64> = []
        for _ in 0..<6 {
            var isDone = false
            _ = stage.workers.run(WorkerMessage("work"), patience: 20) { result in
                if case .success(let message) = result { seen.insert(message.whole("started") ?? 0) }
                isDone = true
            }
            try stage.wait { isDone }
        }
        #expect(seen.count == 3)
        try stage.wait { stage.workers.processes.count <= 1 }
    }

    @Test func ownerOfTheWorkers_takesThemAlong() throws {
        var stage: Stage? = try Stage()
        stage?.run("hang")
        try stage?.wait { stage?.workers.processes.isEmpty == false }
        let processes = stage?.workers.processes ?? []
        stage = nil
        for process in processes {
            var status: Int32 = 0
            #expect(waitpid(process, &status, 0) == process)
        }
    }

    @Test func programThatIsNotThere_isAnError() throws {
        let loop = EventLoop()
        let workers = Workers("/nowhere/worker", [], WorkerPool.Limits(workers: 2), WorkersTests.answers, on: loop) {
            _ in
        }
        var failure: Workers.Failure?
        _ = workers.run(WorkerMessage("work"), patience: 5) { if case .failure(let found) = $0 { failure = found } }
        #expect(loop.iterate(timeout: 20) { failure != nil })
        #expect(failure == .notStarted)
    }

    @Test func message_isReadAsItWasWritten() throws {
        let message = WorkerMessage(
            "all",
            [
                "flag": .flag(true), "whole": .whole(-5), "number": .number(.pi), "text": .text("Grüße"),
                "bytes": .bytes([0, 255, 7]),
                "list": .list([WorkerMessage("inner", ["x": .whole(1)]), WorkerMessage("")]),
            ])
        var reader = FrameReader { _ in Self.any }
        let bytes = message.frame + message.frame
        for byte in bytes.dropLast() { reader.append([byte]) }
        #expect(try reader.next() == message)
        #expect(try reader.next() == nil)
        reader.append([try #require(bytes.last)])
        #expect(try reader.next() == message)
    }

    private static let any = MessageLimit(fields: 100, text: 1_000, data: 1_000)

    /// A worker that sends much delays nobody for longer than a turn.
    @Test func floodOfMessages_isHandledInManyTurns() throws {
        let stage = try Stage()
        var counts: [Int] = [0]
        stage.run("many") { _ in counts[counts.count - 1] += 1 }
        while stage.ends.isEmpty {
            stage.loop.iterate(blocking: true)
            counts.append(0)
        }
        #expect(stage.ends == ["many done"])
        #expect(counts.reduce(0, +) == 20_000)
        #expect(counts.allSatisfy { $0 <= 128 }, "\(counts.max() ?? 0)")
    }

    @Test func messages_haveTheLimitOfTheirName() throws {
        func read(_ message: WorkerMessage) throws -> WorkerMessage? {
            var reader = FrameReader { Self.answers[$0] }
            reader.append(message.frame)
            return try reader.next()
        }
        let fits = WorkerMessage("large", ["data": .bytes(Array(repeating: 7, count: 8 << 20))])
        #expect(try read(fits) == fits)
        #expect(fits.fits(try #require(Self.answers["large"])))
        for tooMuch in [
            WorkerMessage("large", ["data": .bytes(Array(repeating: 7, count: 8 << 20 + 1))]),
            WorkerMessage("large", ["a": .flag(true), "b": .flag(true)]),
            WorkerMessage("large", ["list": .list([WorkerMessage("", ["a": .flag(true)])])]),
            WorkerMessage("large", ["text": .text(String(repeating: "x", count: 1_100))]),
            WorkerMessage("done", ["data": .bytes([1])]), WorkerMessage("other"),
        ] {
            #expect(throws: FrameReader.Damage.self) { try read(tooMuch) }
            #expect(!(Self.answers[tooMuch.name].map(tooMuch.fits) ?? false))
        }
        // It is refused before it has come.
        var reader = FrameReader { Self.answers[$0] }
        var begin = WorkerMessage("done").frame
        begin.replaceSubrange(..<4, with: [0, 0, 0, 4])
        reader.append(begin)
        #expect(throws: FrameReader.Damage.self) { try reader.next() }
    }

    @Test func damagedMessages_areRefused() {
        let bytes = Array(
            WorkerMessage("name", ["key": .list([WorkerMessage("a", ["b": .text("c")])])]).frame.dropFirst(4))
        #expect(WorkerMessage(bytes[...], Self.any) != nil)
        for index in bytes.indices {
            // None may end the process, whatever it becomes.
            for value in [0, 1, 0x7f, 0xff] as [UInt8] {
                var damaged = bytes
                damaged[index] = value
                _ = WorkerMessage(damaged[...], Self.any)
            }
            #expect(WorkerMessage(bytes[..<index], Self.any) == nil)
        }
    }
}
