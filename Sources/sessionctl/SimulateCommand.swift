import ArgumentParser
import DBus
import Glibc
import PluginAPI
import Scenario
import SessionManager

/// `sessionctl simulate`.
struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Run a scenario file with the daemon's rules, without a daemon.",
        discussion: """
            Prints the effects of each step, and exits 1 if an expectation fails, or if the file has decisions that \
            followed from streams which it does not have. \
            sessionctl-scenario(5) describes the file format; 'sessionctl history --export' prints a scenario.
            """)

    @Argument(help: "The file, or '-' for standard input.", completion: .file())
    var scenario: String
    @Flag(help: "Print it again with the results of this run, like 'history --export'; for exact scenarios.")
    var export = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if export, output.json {
            throw ValidationError("--export prints a scenario, not JSON; use only one of the two options")
        }
    }

    func run() throws {
        let scenario: Scenario
        let bytes = try bytes()
        do throws(ScenarioError) {
            scenario = try Scenario(bytes: bytes, file: self.scenario == "-" ? "stdin" : self.scenario)
        } catch {
            throw Complaint(code: 64, message: error.description.escaped)
        }
        if export, !scenario.isExact {
            throw Complaint(
                code: 64, message: "\(scenario.file.escaped): only a scenario that is 'exact' can be exported")
        }
        var run = Run(scenario)
        if export {
            run.perform()
            Output.write(run.transcript)
        } else if output.json {
            var steps: [Value] = []
            run.perform { steps.append(SimulationView.value($1, $0)) }
            Output.line(SimulationView.json(scenario, steps, run.failures))
        } else {
            var view = SimulationView(scenario)
            run.perform { view.add($1, $0) }
            Output.write(view.table)
        }
        for undecided in scenario.undecided {
            Output.note("\(scenario.file.escaped):\(undecided.line): not decided again: \(undecided.what.escaped)")
        }
        for failure in run.failures {
            Output.note(
                "\(scenario.file.escaped):\(failure.line): expected: \(failure.expected.escaped)\n"
                    + "\(scenario.file.escaped):\(failure.line): seen:     \(failure.seen.escaped)")
        }
        if !run.failures.isEmpty {
            let count = run.failures.count
            throw Complaint.refused("\(count) expectation\(count == 1 ? "" : "s") failed")
        }
        if !scenario.undecided.isEmpty {
            let count = scenario.undecided.count
            throw Complaint.refused(
                "the sessions were decided as in the file; but \(count) decision\(count == 1 ? "" : "s") followed from "
                    + "streams of programs, which are not in the file")
        }
    }

    /// At most one byte more than a scenario may have.
    private func bytes() throws -> [UInt8] {
        var descriptor = STDIN_FILENO
        if scenario != "-" { descriptor = open(scenario, O_RDONLY | O_CLOEXEC) }
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { throw unreadable() }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= Scenario.maximumBytes {
            let count = read(descriptor, &chunk, min(chunk.count, Scenario.maximumBytes + 1 - bytes.count))
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw unreadable()
            }
            bytes += chunk[..<count]
            // Text has no NUL; a device or disk full of NULs need not be read completely.
            if bytes.prefix(4096).contains(0) { break }
        }
        return bytes
    }

    private func unreadable() -> Complaint {
        Complaint(code: 64, message: "\(scenario.escaped): cannot be read: \(String(cString: strerror(errno)))")
    }
}

/// The output of a run.
struct SimulationView {
    /// With more sessions than this, no columns are printed for them.
    static let mostColumns = 6

    private(set) var table = Table()
    private let labels: [String]

    init(_ scenario: Scenario) {
        let all = scenario.sessionLabels
        labels = all.count <= Self.mostColumns ? all : []
        // States are not cut; on a narrow terminal, the events are below the step.
        table.whole = Set([0] + labels.indices.map { $0 + 2 })
        table.kept = [1: 20]
        table.below = 6
        table.addHeader(["TIME", "STEP"] + labels.map(\.escaped) + ["EVENTS"])
    }

    mutating func add(_ outcome: Run.Outcome, _ run: Run) {
        var cells = [
            Table.Cell(Self.time(outcome.time), .dim), Table.Cell(outcome.line.text.escaped, .strong),
        ]
        for label in labels {
            let id = run.labels.first { $0.label == label }?.id
            cells.append(Table.Cell(id.map { Story.shortState(of: outcome.core.session($0)) } ?? ""))
        }
        let events = outcome.decisions.flatMap { Story.events(of: $0, run) } + outcome.requests
        let isRefused = outcome.decisions.contains { $0.refusal != nil }
        cells.append(Table.Cell(events.joined(separator: "; ").escaped, isRefused ? .warning : .plain))
        table.add(cells)
    }

    static func value(_ outcome: Run.Outcome, _ run: Run) -> Value {
        let events = outcome.decisions.flatMap { Story.events(of: $0, run) }
        let states = run.labels.compactMap { entry in
            outcome.core.session(entry.id).map { (entry.label, Value.string(Story.state(of: $0, run))) }
        }
        return .properties([
            ("line", .uint32(UInt32(clamping: outcome.line.number))), ("step", .string(outcome.line.text)),
            ("time-usec", .uint64(outcome.time.microseconds)), ("events", .strings(events)),
            ("requests", .strings(outcome.requests)),
            ("states", .properties(states)),
            ("now-playing", .string(outcome.core.nowPlaying.map(run.label) ?? "")),
        ])
    }

    static func json(_ scenario: Scenario, _ steps: [Value], _ failures: [Run.Failure]) -> String {
        let failures = failures.map { failure in
            Value.properties([
                ("line", .uint32(UInt32(clamping: failure.line))), ("expected", .string(failure.expected)),
                ("seen", .string(failure.seen)),
            ])
        }
        let undecided = scenario.undecided.map { undecided in
            Value.properties([
                ("line", .uint32(UInt32(clamping: undecided.line))), ("what", .string(undecided.what)),
            ])
        }
        return JSON.object(
            .simulate,
            [
                ("scenario", .string(scenario.file)), ("steps", .array(of: "a{sv}", steps)),
                ("failures", .array(of: "a{sv}", failures)), ("undecided", .array(of: "a{sv}", undecided)),
            ])
    }

    /// Seconds without trailing zeros.
    private static func time(_ instant: Instant) -> String {
        var digits = String(1_000_000 + instant.microseconds % 1_000_000).dropFirst()
        while digits.count > 1, digits.last == "0" { digits.removeLast() }
        return "\(instant.microseconds / 1_000_000).\(digits)"
    }
}
