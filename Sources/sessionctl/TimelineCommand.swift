import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus
import Timeline

/// `sessionctl timeline`.
struct TimelineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timeline", abstract: "Draw who was heard, ducked and waiting, over time.")

    @Option(help: "How far back: a number with s, m, h or d, such as 90s or 2h.")
    var since = TimeSpan(seconds: 600)
    @Flag(help: "Draw it again at every change and every second, until ctrl-C.")
    var watch = false
    @Option(help: "Write a picture to this file; an existing file is replaced.", completion: .file(extensions: ["svg"]))
    var svg: String?
    @Option(help: "Write a page to this file; an existing file is replaced.", completion: .file(extensions: ["html"]))
    var html: String?
    @OptionGroup var bus: BusOptions

    private static let title = "Who was heard"

    func validate() throws {
        guard [svg != nil, html != nil, watch].filter(\.self).count < 2 else {
            throw ValidationError("use only one of --watch, --svg and --html")
        }
    }

    func run() throws {
        let service = try Service(bus)
        let span = since
        if watch {
            let screen = ScreenWatch<TimelineFacts>(
                service, { TimelineFacts.read(service, since: span.microseconds, $0) },
                lines: { facts, width, _ in
                    Self.lines(facts.timeline(of: span.microseconds, at: MonotonicClock.now()), width)
                }, json: nil)
            screen.show(try service.wait { TimelineFacts.read(service, since: span.microseconds, $0) })
            let code = service.loop.run()
            screen.end()
            Output.end(code, keeping: (service, screen))
        }
        let facts = try service.wait { TimelineFacts.read(service, since: span.microseconds, $0) }
        let timeline = facts.timeline(of: span.microseconds, at: MonotonicClock.now())
        if let svg {
            return try write(TimelinePicture(timeline, title: "\(Self.title), \(timeline.period)").svg, to: svg)
        }
        if let html {
            let page = TimelinePage(
                timeline, title: Self.title, note: "Written by sessionctl timeline, version \(version).")
            return try write(page.html, to: html)
        }
        Output.write(
            Self.lines(timeline, Terminal.standard.size?.columns).map { $0 + "\n" }.joined())
    }

    /// The columns of a pipe or a file.
    private static let usualWidth = 100

    private static let measure = TimelineText.Measure(
        columns: \.columns, fitted: { text, width in text.truncated(to: width).padded(to: width) })

    private static func lines(_ timeline: Timeline, _ width: Int?) -> [String] {
        TimelineText(timeline, width: width ?? usualWidth, measure).lines().map { pieces in
            pieces.map { Terminal.standard.styled($0.text, style(of: $0)) }.joined()
        }
    }

    private static func style(of piece: TimelineText.Piece) -> Style {
        switch piece.style {
        case .plain: .plain
        case .name: .strong
        case .dim: .dim
        case .state(.heard): .good
        case .state(.ducked): .warning
        case .state(.muted): .bad
        case .state(.waiting): .dim
        }
    }

    private func write(_ text: String, to name: String) throws {
        let path = try FileArgument.path(name)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Self.failure(name) }
        defer { close(descriptor) }
        guard Output.put(text, on: descriptor) else { throw Self.failure(name) }
        Output.line("Wrote \(name.escaped).")
    }

    private static func failure(_ name: String) -> Complaint {
        .refused("\(name.escaped) cannot be written: \(String(cString: strerror(errno)))")
    }
}

/// A length of time on the command line: `90s`, `10m`, `2h`, `1d`.
struct TimeSpan: ExpressibleByArgument {
    let seconds: UInt64

    var microseconds: UInt64 { seconds * 1_000_000 }
    var defaultValueDescription: String { seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s" }

    init(seconds: UInt64) { self.seconds = seconds }

    /// At most ten years.
    init?(argument: String) {
        let digits = argument.prefix { ("0"..."9").contains($0) }
        let factors: [Substring: UInt64] = ["": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400]
        guard let number = UInt64(digits), let factor = factors[argument[digits.endIndex...]], number > 0,
            number <= 315_360_000 / factor
        else { return nil }
        seconds = number * factor
    }
}
