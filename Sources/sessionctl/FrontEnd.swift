import DBus
import EventLoop
import Glibc
import PluginAPI

/// The common part of `play`, `record` and `effect`: a plugin process, keys and a progress line on a terminal, and a
/// clean exit in every case.
class FrontEnd {
    let service: Service
    let plugin: PluginProcess
    let isInteractive: Bool
    var line = ProgressLine()
    private var keyboard: Keyboard?
    private var signals: [SignalWatch] = []
    private var ticker: Timer?
    private var isDrawing = false
    private var noteTime: Timer?

    /// Seconds between two updates of position and levels, while they are shown.
    private static let interval = 0.1

    init(_ kind: PluginKind, _ arguments: [String], _ service: Service) throws {
        self.service = service
        isInteractive = Terminal.standard.canRedraw && tcgetpgrp(STDOUT_FILENO) == getpgrp()
        plugin = try PluginProcess(kind, arguments, service)
        let loop = service.loop
        plugin.onReady = { [unowned self] in
            if isInteractive { plugin.set("MeteringEnabled", .bool(true)) }
            start()
        }
        plugin.onChanged = { [unowned self] in changed($0) }
        plugin.onFinished = { [unowned self] in finished($0) }
        plugin.onFailed = { [unowned self] in failed($0.escaped) }
        plugin.onGone = { [unowned self] in end(Complaint.refused("\(kind.program) ended unexpectedly")) }
        service.connection.onDisconnect = { [unowned self] in
            end(Complaint.unreachable("the bus connection was lost"))
        }
        if isInteractive { keyboard = Keyboard(loop) { [unowned self] in pressed($0) } }
        ticker = Timer(on: loop) { [unowned self] in tick() }
        noteTime = Timer(on: loop) { [unowned self] in
            line.note = ""
            draw()
        }
        signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            loop.watch(signal: number) { [unowned self] in interrupted(by: number) }
        }
        signals.append(loop.watch(signal: SIGTSTP) { [unowned self] in suspend() })
        signals.append(loop.watch(signal: SIGWINCH) { [unowned self] in draw() })
    }

    /// Runs until ``end(_:)-(Int32)``; never returns.
    func run() -> Never {
        let code = service.loop.run()
        finishScreen()
        plugin.end()
        Output.end(code, keeping: self)
    }

    // MARK: Overridden by the commands

    /// The plugin is ready.
    func start() {}
    func changed(_ properties: [String: Value]) {}
    func finished(_ success: Bool) {}
    func failed(_ message: String) {}
    func pressed(_ key: Keyboard.Key) {}
    func interrupted(by signal: Int32) { end(128 + signal) }
    /// Before and after this process is stopped.
    func willSuspend() {}
    func didContinue() {}

    // MARK: Exit

    func end(_ code: Int32) { service.loop.quit(code) }

    func end(_ complaint: Complaint) {
        finishScreen()
        Output.complain(complaint.message)
        end(complaint.code)
    }

    func end(_ failure: Failure) { end(service.complaint(failure)) }

    // MARK: Output

    /// Prints a permanent line; above the progress line if there is one.
    func say(_ text: String) {
        if isDrawing { ProgressLine.clear() }
        Output.line(text)
        draw()
    }

    func complain(_ text: String) {
        if isDrawing { ProgressLine.clear() }
        Output.complain(text)
        draw()
    }

    func beginDrawing(_ help: String) {
        guard isInteractive, !isDrawing else { return }
        if keyboard != nil { Output.line(Terminal.standard.styled(help, .dim)) }
        isDrawing = true
        ticker?.arm(after: Self.interval)
        draw()
    }

    func draw() { if isDrawing { line.draw() } }

    /// Shows a text in the progress line for a moment.
    func note(_ text: String) {
        line.note = text
        noteTime?.arm(after: 1.5)
        draw()
    }

    private func finishScreen() {
        guard isDrawing else { return }
        isDrawing = false
        ProgressLine.clear()
    }

    private func tick() {
        guard isDrawing else { return }
        ticker?.arm(after: Self.interval)
        refresh()
    }

    /// While the line is shown: asks for what changes all the time.
    func refresh() {
        // Updates are needed only while sound plays.
        guard line.remark.isEmpty else { return }
        plugin.get("Position") { [weak self] value in
            self?.line.position = value?.doubleValue ?? 0
        }
        plugin.call("Meters") { [weak self] answer in
            self?.line.levels = ProgressLine.levels(try? answer.get().first)
            self?.draw()
        }
    }

    /// Ctrl-Z: pauses and restores the terminal until the process is continued.
    private func suspend() {
        willSuspend()
        service.connection.flush()
        finishScreenForSuspension()
        kill(getpid(), SIGSTOP)
        if keyboard != nil { RawMode.enter() }
        didContinue()
        draw()
    }

    private func finishScreenForSuspension() {
        if isDrawing { ProgressLine.clear() }
        RawMode.restore()
    }
}
