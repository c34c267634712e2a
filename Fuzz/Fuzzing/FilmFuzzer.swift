public import EventLoop
import Foundation
import Workers

/// Gives damaged films and sounds to a worker, and notes what a worker must not do with them: end, or fall silent.
///
/// It is reproducible: with the same seed and the same films, the worker gets the same files and requests.
public final class FilmFuzzer {
    /// The results of a run.
    public struct Report: Sendable {
        public var inputs = 0
        /// How many were answered, by the request and the error.
        public var answers: [String: Int] = [:]
        /// The requests that ended the worker or made it silent, with the file that was kept.
        public var complaints: [String] = []
        /// The requests that took long, with the file that was kept: what waits in vain.
        public var slow: [String] = []
    }

    /// Seconds that make a request slow.
    private static let slow = 5.0

    /// Seconds without news from a worker, as in the plugin.
    private static let patience = (reading: 10.0, exporting: 30.0)
    private static let sizes: [[UInt8]] = [
        [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 7], [0x7F, 0xFF, 0xFF, 0xFF], [0x80, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF],
    ]

    private let films: [(name: String, bytes: [UInt8])]
    private let folder: String
    private let loop: EventLoop
    private let workers: Workers
    private var dice: Dice
    private var report = Report()

    /// The fuzzer does not link the worker, and checks no limits of its answers.
    private static let answers = AnswerLimits(
        Dictionary(
            uniqueKeysWithValues: ["alive", "image", "progress", "done", "failed"].map {
                ($0, MessageLimit(fields: 1 << 16, text: 16 << 20, data: 64 << 20))
            }))

    /// - Parameters:
    ///   - program: what is run as a worker, with `--worker`.
    ///   - films: whole files.
    ///   - folder: for the damaged files; those of complaints stay.
    public init(
        program: String, films: [(name: String, bytes: [UInt8])], folder: String, seed: UInt64, on loop: EventLoop
    ) {
        (self.films, self.folder, self.loop) = (films, folder, loop)
        workers = Workers(program, ["--worker"], WorkerPool.Limits(workers: 2), Self.answers, on: loop) { print($0) }
        dice = Dice(seed: seed)
    }

    public func run(seconds: Double) throws -> Report {
        let end = Date().addingTimeInterval(seconds)
        while Date() < end { try next() }
        // It still does its work.
        for film in films {
            let path = "\(folder)/\(film.name)"
            try Data(film.bytes).write(to: URL(fileURLWithPath: path))
            let answer = ask(WorkerMessage("inspect", ["path": .bytes(Array(path.utf8))]), [])
            if answer != "done" { report.complaints.append("the whole film \(film.name): \(answer)") }
            unlink(path)
        }
        return report
    }

    private func next() throws {
        report.inputs += 1
        let film = dice.pick(films)
        var bytes = film.bytes
        for _ in 0...dice.below(4) { damage(&bytes) }
        let path = "\(folder)/\(report.inputs)-\(film.name)"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        var isKept = false
        defer { if !isKept { unlink(path) } }
        // All that a client can ask for.
        for _ in 0...dice.below(2) {
            let request = request(path)
            let output = "\(folder)/output"
            let descriptor = open(output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer { close(descriptor) }
            let begin = MonotonicClock.seconds
            let answer = ask(request, request.name == "export" ? [descriptor] : [])
            let seconds = MonotonicClock.seconds - begin
            report.answers["\(request.name): \(answer)", default: 0] += 1
            if seconds > Self.slow {
                report.slow.append("\(Int(seconds)) s, \(answer): \(request.name) \(path)")
                isKept = true
            }
            guard ["ended", "silent", "not started"].contains(answer) else { continue }
            report.complaints.append("\(answer): \(request.name) \(path)")
            isKept = true
        }
    }

    private func request(_ path: String) -> WorkerMessage {
        var fields: [String: WorkerMessage.Field] = ["path": .bytes(Array(path.utf8))]
        switch dice.below(8) {
        case 0: return WorkerMessage("inspect", fields)
        case 1:
            fields["precise"] = .flag(true)
            return WorkerMessage("inspect", fields)
        case 2:
            fields["side"] = .whole(128)
            return WorkerMessage("thumbnail", fields)
        case 3, 4:
            fields["times"] = .bytes(
                [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0].map { $0 ^ dice.nextByte() & 1 })
            fields["after"] = .whole(dice.below(2) == 0 ? 0 : 1 << 40)
            fields["before"] = fields["after"]
            return WorkerMessage("images", fields)
        case 5: return WorkerMessage("presets", fields)
        case 6:
            fields["preset"] = .text("passthrough")
            fields["from"] = .number(Double(dice.below(3)))
            return WorkerMessage("export", fields)
        default:
            fields["preset"] = .text("low")
            fields["type"] = .text("webm")
            fields["to"] = .number(1)
            return WorkerMessage("export", fields)
        }
    }

    /// `done`, the name of an error, or what happened to the worker.
    private func ask(_ request: WorkerMessage, _ descriptors: [Int32]) -> String {
        var answer: String?
        let patience = request.name == "export" ? Self.patience.exporting : Self.patience.reading
        _ = workers.run(request, descriptors: descriptors, patience: patience) { result in
            switch result {
            case .success(let message): answer = message.name == "done" ? "done" : message.text("code") ?? "failed"
            case .failure(.ended): answer = "ended"
            case .failure(.silent), .failure(.tookTooLong): answer = "silent"
            case .failure(.notStarted): answer = "not started"
            }
        }
        while answer == nil { loop.iterate() }
        return answer ?? ""
    }

    /// Mostly where files say what is in them: at the begin and at the end.
    private func damage(_ bytes: inout [UInt8]) {
        guard !bytes.isEmpty else { return }
        let place: Int
        switch dice.below(4) {
        case 0, 1: place = dice.below(min(bytes.count, 2_048))
        case 2: place = bytes.count - 1 - dice.below(min(bytes.count, 8_192))
        default: place = dice.below(bytes.count)
        }
        switch dice.below(8) {
        case 0, 1: bytes[place] ^= 1 << UInt8(dice.below(8))
        case 2: bytes[place] = dice.nextByte()
        case 3, 4:
            let size = dice.pick(Self.sizes)
            for (index, byte) in size.enumerated() where place + index < bytes.count { bytes[place + index] = byte }
        case 5: bytes.removeSubrange(place..<min(bytes.count, place + 1 + dice.below(64)))
        case 6:
            let other = dice.pick(films).bytes
            let start = dice.below(max(1, other.count))
            bytes.insert(contentsOf: other[start..<min(other.count, start + dice.below(512))], at: place)
        default: bytes.removeSubrange(place...)
        }
    }
}
