import DBus
import EventLoop
import Glibc
import SessionBus

/// `--watch`: reads again when the daemon sends a signal, not periodically, and updates the screen.
final class ScreenWatch<Shown> {
    typealias Reader = (@escaping (Result<Shown, Failure>) -> Void) -> Void

    private let service: Service
    private let reader: Reader
    private let lines: (_ shown: Shown, _ width: Int?, _ rows: Int?) -> [String]
    /// Nil: the output is for people.
    private let json: ((Shown) -> String)?
    private let terminal = Terminal.standard
    private var current: Shown?
    private var isReading = false
    private var isStale = false
    private var shown = ""
    /// The lines on the screen, and its width. Only lines that differ are written again.
    private var frame: (lines: [String], columns: Int) = ([], 0)
    private var subscriptions: [Subscription] = []
    private var signals: [SignalWatch] = []
    private var closed: IOWatch?
    private var settle: Timer?
    private var clock: Timer?
    private var usesScreen: Bool { terminal.canRedraw && json == nil }

    /// Several changes within this time, in seconds, are drawn once.
    private static var settling: Double { 0.03 }

    /// - Parameters:
    ///   - reader: reads what is shown, and answers once, from the loop.
    ///   - lines: what is shown, for a screen of that size; nil: without limits.
    init(
        _ service: Service, _ reader: @escaping Reader,
        lines: @escaping (_ shown: Shown, _ width: Int?, _ rows: Int?) -> [String], json: ((Shown) -> String)?
    ) {
        self.service = service
        self.reader = reader
        self.lines = lines
        self.json = json
        subscriptions = [
            service.connection.subscribe(sender: BusName.service) { [unowned self] _ in changed() },
            service.watchOwner { [unowned self] owner in
                if owner.isEmpty { gone() } else { changed() }
            },
        ]
        service.connection.onDisconnect = { [unowned service] in
            Output.complain("the bus connection was lost")
            service.loop.quit(69)
        }
        let loop = service.loop
        settle = Timer(on: loop) { [unowned self] in read() }
        // The daemon is not asked: only the ages on the screen change.
        clock = Timer(on: loop) { [unowned self] in draw() }
        signals = [SIGINT, SIGTERM, SIGHUP].map { number in
            loop.watch(signal: number) { [unowned loop] in loop.quit(128 + number) }
        }
        signals.append(loop.watch(signal: SIGWINCH) { [unowned self] in draw() })
        // The shell has used the screen in the meantime.
        signals.append(
            loop.watch(signal: SIGCONT) { [unowned self] in
                openScreen()
                draw()
            })
        closed = Output.quitWhenClosed(loop)
        openScreen()
    }

    /// The alternate screen, without the cursor. The terminal restores the previous contents afterwards.
    private func openScreen() {
        guard usesScreen else { return }
        frame = ([], 0)
        Output.write("\u{1B}[?1049h\u{1B}[?25l")
    }

    func end() {
        if usesScreen { Output.write("\u{1B}[?25h\u{1B}[?1049l") }
    }

    func show(_ shown: Shown) {
        current = shown
        draw()
    }

    private func changed() {
        if isReading { isStale = true } else { settle?.arm(after: Self.settling) }
    }

    private func read() {
        guard !isReading else { return }
        isReading = true
        reader { [weak self] result in
            guard let self else { return }
            isReading = false
            if case .success(let shown) = result { show(shown) }
            if isStale {
                isStale = false
                changed()
            }
        }
    }

    private func gone() {
        current = nil
        settle?.disarm()
        draw()
    }

    private func draw() {
        guard usesScreen else { return drawPlain() }
        clock?.arm(after: 1)
        let size = terminal.size ?? (80, 24)
        // The last column stays empty: erasing the rest of a full line would erase its last character.
        let width = size.columns - 1
        let drawn =
            current.map { lines($0, width, size.rows) }
            ?? ["sessiond is not running; waiting for it".truncated(to: width)]
        show(Array(drawn.prefix(size.rows)), columns: size.columns)
    }

    /// Writes the changed lines with one write. The screen is never cleared, and never scrolls.
    private func show(_ lines: [String], columns: Int) {
        // A terminal that was resized may have broken the old lines.
        let isAnew = frame.lines.isEmpty || frame.columns != columns
        var text = ""
        for (row, line) in lines.enumerated() where isAnew || row >= frame.lines.count || frame.lines[row] != line {
            text += "\u{1B}[\(row + 1);1H" + line + "\u{1B}[K"
        }
        if isAnew || lines.count < frame.lines.count { text += "\u{1B}[\(lines.count);\(columns)H\u{1B}[J" }
        frame = (lines, columns)
        guard !text.isEmpty else { return }
        // Terminals that support this mode show all changes at the same time.
        Output.write("\u{1B}[?2026h" + text + "\u{1B}[?2026l")
    }

    private func drawPlain() {
        let text: String
        if let current {
            text = json.map { $0(current) } ?? lines(current, nil, nil).joined(separator: "\n") + "\n"
        } else {
            text = json == nil ? "sessiond is not running; waiting for it\n" : "null"
        }
        guard json == nil || text != shown else { return }
        shown = text
        Output.line(text)
    }
}

extension Output {
    /// Ends the program when the reader of standard output is gone, also if there is nothing to write. Only for a pipe.
    static func quitWhenClosed(_ loop: EventLoop) -> IOWatch? {
        guard isPipe else { return nil }
        return IOWatch(on: loop, descriptor: STDOUT_FILENO, events: .readable) { [unowned loop] events in
            if events.contains(.error) || events.contains(.hangUp) { loop.quit(0) }
        }
    }
}
