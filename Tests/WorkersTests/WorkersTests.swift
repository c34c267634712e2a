import EventLoop
import Foundation
import TestSupport
import Testing

@testable import Workers

/// Real processes that hang, crash, leak, say what they must not, and do their work.
@Suite struct WorkersTests {
    /// A worker of another language, to be sure of the bytes. What it does is the name of the request.
    private static let script = """
        import os, signal, socket, struct, sys, time
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
        send('ready')
        while True:
            body = read(struct.unpack('<I', read(4))[0])
            length = struct.unpack('<Q', body[:8])[0]
            name = body[8:8 + length].decode()
            if name == 'hang': time.sleep(1000)
            if name == 'busy':
                while True: pass
            if name == 'crash': os.kill(os.getpid(), signal.SIGSEGV)
            if name == 'exit': sys.exit(3)
            if name == 'fork':
                if os.fork() == 0: time.sleep(1000)
                time.sleep(1000)
            if name == 'noise': line.sendall(b'\\xff' * 100)
            if name == 'huge': line.sendall(struct.pack('<I', 1 << 31))
            if name == 'slow':
                for step in range(4):
                    send('progress', [('step', step)])
                    time.sleep(0.1)
            send('done', [('name', name), ('process', os.getpid())])
        """

    private final class Stage {
        let folder: PrivateFolder
        let loop = EventLoop()
        let workers: Workers
        var ends: [String] = []

        init(tasks: Int = 200) throws {
            folder = try PrivateFolder()
            let script = try folder.file("worker.py", WorkersTests.script)
            workers = Workers(
                "/usr/bin/python3", [script], WorkerPool.Limits(workers: 2, tasks: tasks), on: loop)
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

    @Test(arguments: ["crash", "exit", "noise", "huge"]) func workerThatEnds_costsItsTaskAlone(name: String) throws {
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
        try stage.look { stage.workers.processes.contains { Self.children($0) > 0 } }
        let processes = stage.workers.processes
        stage.workers.cancel(task)
        #expect(!stage.workers.isBusy)
        try stage.look { processes.allSatisfy { kill(-$0, 0) != 0 } }
        #expect(stage.ends == [])
        stage.run("work")
        try stage.wait { stage.ends == ["work done"] }
    }

    private static func children(_ process: Int32) -> Int {
        let path = "/proc/\(process)/task/\(process)/children"
        return ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: " ").count
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
                if case .success(let message) = result { seen.insert(message.whole("process") ?? 0) }
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
        let workers = Workers("/nowhere/worker", [], WorkerPool.Limits(workers: 2), on: loop)
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
        var reader = FrameReader()
        let bytes = message.frame + message.frame
        for byte in bytes.dropLast() { reader.append([byte]) }
        #expect(try reader.next() == message)
        #expect(try reader.next() == nil)
        reader.append([try #require(bytes.last)])
        #expect(try reader.next() == message)
    }

    @Test func damagedMessages_areRefused() {
        let bytes = Array(
            WorkerMessage("name", ["key": .list([WorkerMessage("a", ["b": .text("c")])])]).frame.dropFirst(4))
        #expect(WorkerMessage(bytes[...]) != nil)
        for index in bytes.indices {
            // None may end the process, whatever it becomes.
            for value in [0, 1, 0x7f, 0xff] as [UInt8] {
                var damaged = bytes
                damaged[index] = value
                _ = WorkerMessage(damaged[...])
            }
            #expect(WorkerMessage(bytes[..<index]) == nil)
        }
    }
}
