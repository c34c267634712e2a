import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// The common part of `play`, `record` and `effect`: a plugin process, keys and a progress line on a terminal, and a
/// clean exit in every case.
class FrontEnd {
    let service: Service
    let plugin: PluginProcess
    private let screen: ProgressScreen
    var isInteractive: Bool { screen.isInteractive }
    var line: ProgressLine {
        get { screen.line }
        set { screen.line = newValue }
    }
    private var signals: [SignalWatch] = []

    init(_ kind: PluginKind, _ arguments: [String], _ service: Service) throws {
        self.service = service
        screen = ProgressScreen(service.loop, noteTime: 1.5)
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
        screen.readKeys { [unowned self] in pressed($0) }
        screen.onTick = { [unowned self] in refresh() }
        signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            loop.watch(signal: number) { [unowned self] in interrupted(by: number) }
        }
        signals.append(loop.watch(signal: SIGTSTP) { [unowned self] in suspend() })
        signals.append(loop.watch(signal: SIGWINCH) { [unowned self] in draw() })
    }

    /// Runs until ``end(_:)-(Int32)``; never returns.
    func run() -> Never {
        let code = service.loop.run()
        screen.finish()
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
        screen.finish()
        Output.complain(complaint.message)
        end(complaint.code)
    }

    func end(_ failure: Failure) {
        tellServer(failure.message) { [weak self] advice in
            guard let self else { return }
            end(advice.map(Complaint.refused) ?? service.complaint(failure))
        }
    }

    /// What is done with the sound server, as in "then play again".
    var purpose: String { "play" }

    /// What to do if that message says that there is no sound server; nil if it says something else.
    func tellServer(_ message: String, _ then: @escaping (String?) -> Void) {
        guard SoundServerAdvice.concerns(message) else { return then(nil) }
        service.call(
            "Get", [.string(BusName.manager), .string("ServerConnected")], interface: StandardName.properties
        ) { [weak self] answer in
            guard let self, case .success(let values) = answer else { return then(nil) }
            let isElsewhere = values.first?.unwrapped.boolValue == true
            then(
                isElsewhere
                    ? SoundServerAdvice.elsewhere
                    : SoundServerAdvice.absent(isSystem: service.bus.isSystem, purpose))
        }
    }

    // MARK: Output

    /// Prints a permanent line; above the progress line if there is one.
    func say(_ text: String) {
        if screen.isDrawing { ProgressLine.clear() }
        Output.line(text)
        draw()
    }

    func complain(_ text: String) {
        if screen.isDrawing { ProgressLine.clear() }
        Output.complain(text)
        draw()
    }

    func beginDrawing(_ help: String) { screen.begin(help) }
    func draw() { screen.draw() }
    func note(_ text: String) { screen.note(text) }

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
        screen.suspend()
        kill(getpid(), SIGSTOP)
        screen.resume()
        didContinue()
        draw()
    }
}
