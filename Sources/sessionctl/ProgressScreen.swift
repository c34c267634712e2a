import EventLoop
import Glibc

/// What a command shows on a terminal while it runs: its keys, and a progress line with a note in it for a moment. Without a
/// terminal it draws nothing.
final class ProgressScreen {
    let isInteractive: Bool
    var line = ProgressLine()
    /// While the line is shown: asks for what changes all the time.
    var onTick: () -> Void = {}
    private(set) var isDrawing = false
    private let loop: EventLoop
    private let noteTime: Double
    private var keyboard: Keyboard?
    private lazy var ticker = Timer(on: loop) { [unowned self] in tick() }
    private lazy var noteEnd = Timer(on: loop) { [unowned self] in
        line.note = ""
        draw()
    }

    /// Seconds between two updates of position and levels, while they are shown.
    private static let interval = 0.1

    /// - Parameter noteTime: seconds for which a note is shown.
    init(_ loop: EventLoop, noteTime: Double) {
        (self.loop, self.noteTime) = (loop, noteTime)
        isInteractive = Terminal.standard.canRedraw && tcgetpgrp(STDOUT_FILENO) == getpgrp()
    }

    /// Reads the keys from now on, if there is a terminal.
    func readKeys(_ pressed: @escaping (Keyboard.Key) -> Void) {
        if isInteractive { keyboard = Keyboard(loop, pressed) }
    }

    /// - Parameter help: what the keys do.
    func begin(_ help: String) {
        guard isInteractive, !isDrawing else { return }
        if keyboard != nil { Output.line(Terminal.standard.styled(help, .dim)) }
        isDrawing = true
        ticker.arm(after: Self.interval)
        draw()
    }

    func draw() { if isDrawing { line.draw() } }

    /// Shows a text in the progress line for a moment.
    func note(_ text: String) {
        line.note = text
        noteEnd.arm(after: noteTime)
        draw()
    }

    func finish() {
        guard isDrawing else { return }
        isDrawing = false
        ProgressLine.clear()
    }

    /// Leaves the terminal to others, until ``resume()``.
    func suspend() {
        if isDrawing { ProgressLine.clear() }
        RawMode.restore()
    }

    func resume() { if keyboard != nil { RawMode.enter() } }

    private func tick() {
        guard isDrawing else { return }
        ticker.arm(after: Self.interval)
        onTick()
    }
}
