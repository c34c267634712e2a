import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import Processes
import SessionBus
import SessionKit

/// A command that runs only while its session is active: stopped at "began", continued when it may resume.
final class GuardedCommand {
    /// What happens to the command when it is interrupted.
    enum Fate: String, CaseIterable, ExpressibleByArgument {
        /// It is stopped, and continued afterwards.
        case wait
        /// It is ended.
        case drop
    }

    private enum Phase {
        /// Not started: waits until the session is active.
        case waiting
        case running
        /// SIGSTOP was sent; the kernel has not reported yet that it stopped.
        case stopping
        case stopped
        /// Stopped by the user or another process: ctrl-Z, or a signal. Its session was deactivated.
        case suspended
        /// Continued for a moment, so that it can react to a signal, although its session is not active.
        case released
        case ended
    }

    private let service: Service
    private let fate: Fate
    /// Whether it was ended because it was interrupted.
    private var isDropped = false
    private lazy var dropping = Timer(on: loop) { [unowned self] in
        if phase != .ended { kill(-process, SIGKILL) }
    }
    private let loop: EventLoop
    private let process: pid_t
    private let name: String
    /// A line written to this pipe starts the command; if it is closed without one, the command never starts.
    private var gate: Int32
    private let terminal: TerminalLoan
    private var session: AudioSessionClient?
    private var signals: [SignalWatch] = []
    private var deadline: Deadline?
    private var phase = Phase.waiting
    private var outcome: Result<Int32, Complaint>?
    private var isTakingBack = false
    /// Whether this process continued it, and the kernel has reported nothing since: its report comes only when the command
    /// gets a processor, and then it may have been stopped again.
    private var isContinuedByUs = false
    /// Whether the user had stopped it before it was released.
    private var wasSuspended = false
    private lazy var release = Timer(on: loop) { [unowned self] in releaseEnds() }
    /// Whether another process stopped the process before it became the command.
    private var isHeldByOthers = false
    /// Whether the daemon that would have reported the end of the interruption is gone.
    private var isLost = false

    /// The program that waits in the process until it becomes the command.
    private static let gatekeeper = ["/bin/sh", "-c", "read -r go <&3 && exec 3<&- && exec \"$@\"", "sessionctl"]

    /// Seconds that the daemon may take to close the session at the end.
    private static let farewell = 1.0

    /// Seconds that the command has to react to a signal during an interruption.
    private static let reaction = 1.0

    /// Starts the command's process, which waits, and creates its session.
    init(
        _ command: [String], _ description: AudioSessionClient.Description, ifInterrupted fate: Fate = .wait,
        _ service: Service
    ) throws {
        self.fate = fate
        self.service = service
        loop = service.loop
        name = command[0].escaped
        _ = try Spawn.find(command[0])
        let ends = try Spawn.pipe()
        gate = ends.write
        process = try Spawn.launch(
            Self.gatekeeper[0], Self.gatekeeper.dropFirst() + command, descriptors: [(from: ends.read, to: 3)])
        close(ends.read)
        terminal = TerminalLoan(to: process)
        watchSignals()
        service.connection.onDisconnect = { [unowned self] in lost() }
        var description = description
        description.processID = UInt32(process)
        session = AudioSessionClient(description, on: service.connection) { [unowned self] event in heard(event) }
    }

    /// Runs it until it ends; returns its exit code.
    func run() throws -> Int32 {
        deadline = Deadline(on: loop) { [unowned self] in
            fail(service.complaint(.noReply("No answer in time")))
        }
        deadline?.arm(after: Service.timeout)
        session?.activate { [unowned self] result in
            deadline?.disarm()
            switch result {
            case .success: start()
            case .failure(let failure): fail(service.complaint(failure))
            }
        }
        loop.run()
        terminal.takeBack()
        return try (outcome ?? .success(0)).get()
    }

    // MARK: The command

    private func start() {
        guard phase == .waiting else { return }
        phase = .running
        terminal.lend()
        _ = write(gate, "\n", 1)
        closeGate()
        if isHeldByOthers { suspend() }
    }

    private func closeGate() {
        if gate >= 0 { close(gate) }
        gate = -1
    }

    /// The activation was refused: the command never starts.
    private func fail(_ complaint: Complaint) {
        guard phase == .waiting else { return }
        phase = .ended
        closeGate()
        kill(-process, SIGKILL)
        outcome = .failure(complaint)
        leave()
    }

    /// Stops it until it may continue.
    private func stop() {
        phase = .stopping
        kill(-process, SIGSTOP)
        // Ctrl-C must reach a process that can react.
        terminal.takeBack()
    }

    private func resume() {
        switch phase {
        case .stopping, .stopped, .suspended, .released:
            phase = .running
            release.disarm()
            terminal.lend()
            proceed()
        case .waiting, .running, .ended: break
        }
    }

    private func proceed() {
        isContinuedByUs = true
        kill(-process, SIGCONT)
    }

    private func reap() {
        while phase != .ended, let change = ChildChange.next(of: process) {
            switch change {
            case .exited(let code): finish(code)
            // The exit code that a shell would use.
            case .killed(let signal): finish(128 + signal)
            case .stopped(let signal): stopped(by: signal)
            case .continued: continued()
            }
        }
    }

    private func stopped(by signal: Int32) {
        isContinuedByUs = false
        switch phase {
        case .stopping: phase = .stopped
        case .running: suspend()
        case .waiting: isHeldByOthers = true
        // Another process stopped it. A late report of an earlier stop changes nothing.
        case .released where isStopped:
            release.disarm()
            phase = wasSuspended ? .suspended : .stopped
        case .stopped, .suspended, .released, .ended: break
        }
    }

    /// The user stopped it: deactivates the session, so that others may play.
    private func suspend() {
        phase = .suspended
        let wasInFront = terminal.isLent
        terminal.takeBack()
        // For the shell that started this process, it is one job: if the command stops, this process stops too.
        let follow = { if wasInFront { kill(0, SIGTSTP) } }
        guard let session else { return follow() }
        session.deactivate(notifyOthers: true) { _ in follow() }
    }

    /// This process or another one continued it.
    private func continued() {
        let isContinuedByUs = isContinuedByUs
        self.isContinuedByUs = false
        switch phase {
        // The report is late: it is stopped again, or is about to be.
        case .stopping where isContinuedByUs, .stopped where isContinuedByUs, .suspended where isContinuedByUs:
            kill(-process, SIGSTOP)
        case .stopped, .suspended: takeBack()
        // If it was stopped and continued before this check, only one change is seen; a stopped one was continued
        // earlier.
        case .stopping where !isStopped:
            phase = .stopped
            takeBack()
        case .waiting: isHeldByOthers = false
        case .running, .released, .stopping, .ended: break
        }
    }

    /// Whether the kernel shows the command as stopped.
    private var isStopped: Bool {
        guard let file = fopen("/proc/\(process)/stat", "r") else { return false }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 1024)
        guard fgets(&line, Int32(line.count), file) != nil,
            let end = line.lastIndex(of: CChar(bitPattern: UInt8(ascii: ")"))), end + 2 < line.count
        else { return false }
        return line[end + 2] == CChar(bitPattern: UInt8(ascii: "T"))
    }

    /// This process was continued, for example by `fg`: continue the command too.
    private func weContinued() {
        switch phase {
        case .running: terminal.lend()
        case .stopped, .suspended: takeBack()
        case .released:
            holdBack()
            takeBack()
        case .waiting, .stopping, .ended: break
        }
    }

    /// The user wants it to continue: it does when its session is active again.
    private func takeBack() {
        guard !isTakingBack else { return }
        // Without a session there are no rules: it continues at once.
        guard let session else { return resume() }
        isTakingBack = true
        // Even if the user continued it, it runs only while the session is active.
        kill(-process, SIGSTOP)
        session.activate { [unowned self] result in
            isTakingBack = false
            switch result {
            case .success: resume()
            case .failure(let failure):
                guard phase != .ended else { return }
                say("\(name) stays stopped: \(service.complaint(failure).message)")
                sayHow()
            }
        }
    }

    private func finish(_ code: Int32) {
        phase = .ended
        release.disarm()
        terminal.takeBack()
        dropping.disarm()
        outcome = .success(isDropped ? 1 : code)
        leave()
    }

    /// Deactivates the session with notify-others, closes it, then ends the loop.
    private func leave() {
        guard let session else { return loop.quit() }
        deadline = Deadline(on: loop) { [unowned self] in loop.quit() }
        deadline?.arm(after: Self.farewell)
        session.deactivate(notifyOthers: true) { [unowned self] _ in
            self.session?.close { [unowned self] _ in loop.quit() }
        }
    }

    // MARK: The session

    private func heard(_ event: AudioSessionClient.Event) {
        guard phase != .waiting, phase != .ended else { return }
        switch event {
        case .session(.interruptionBegan(let reason, _, let by, _)): began(reason, by: by.escaped)
        case .session(.interruptionEnded(let shouldResume, _, _)): ended(shouldResume)
        case .daemonLost: if isInterrupted { isLost = true }
        // A daemon that returned with the interruption reports its end.
        case .registered:
            let wasLost = isLost
            isLost = false
            if wasLost, session?.state != .interrupted { ended(false) }
        case .refused(let failure): say("\(name): \(service.complaint(failure).message)")
        case .session, .servicesLost, .servicesReset: break
        }
    }

    private func began(_ reason: InterruptionReason, by name: String) {
        let text = Wording.interruption(reason, by: name.isEmpty ? nil : name)
        // If the user stopped it, only the user continues it.
        guard phase == .running, !isDropped else { return }
        if fate == .drop {
            isDropped = true
            kill(-process, SIGTERM)
            dropping.arm(after: Self.reaction)
            return say("\(self.name) \(text); dropped")
        }
        stop()
        say("\(self.name) \(text); stopped until the interruption ends")
    }

    private func ended(_ shouldResume: Bool) {
        isLost = false
        guard isInterrupted else { return }
        guard shouldResume else {
            say("\(name): the interruption ended without the should-resume hint")
            return sayHow()
        }
        session?.activate { [unowned self] result in
            switch result {
            case .success:
                if isInterrupted { say("\(name) continues") }
                resume()
            case .failure(let failure):
                guard phase != .ended else { return }
                say("\(name) stays stopped: \(service.complaint(failure).message)")
                sayHow()
            }
        }
    }

    private func lost() {
        // Without a daemon there are no rules: a running command continues, but one that waits for the activation must
        // end.
        if phase == .waiting { return fail(Complaint.unreachable("the bus connection was lost")) }
        say("the bus connection was lost; \(name) no longer has a session")
        session = nil
        if isInterrupted { sayHow() }
    }

    /// Whether an interruption has stopped it, also if it is released for a moment.
    private var isInterrupted: Bool {
        switch phase {
        case .stopping, .stopped: true
        case .released: !wasSuspended
        case .waiting, .running, .suspended, .ended: false
        }
    }

    private func say(_ text: String) { Output.complain(text) }

    private func sayHow() {
        let inTerminal = isatty(STDIN_FILENO) == 1 ? ", or ctrl-Z and fg" : ""
        say("continue it with: kill -CONT \(process)\(inTerminal)")
    }

    // MARK: Signals

    private func watchSignals() {
        signals.append(loop.watch(signal: SIGCHLD) { [unowned self] in reap() })
        signals.append(loop.watch(signal: SIGCONT) { [unowned self] in weContinued() })
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2] where !Self.isIgnored(number) {
            signals.append(loop.watch(signal: number) { [unowned self] in pass(on: number) })
        }
    }

    /// For example SIGHUP under nohup: it stays ignored, for the command too.
    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    private func pass(on number: Int32) {
        if phase == .waiting, number != SIGUSR1, number != SIGUSR2 {
            return fail(Complaint(code: 128 + number, message: "\(name) was not started"))
        }
        kill(-process, number)
        // A stopped process reacts to no signal. Once continued, it ends before it can play much.
        guard number != SIGUSR1, number != SIGUSR2 else { return }
        switch phase {
        case .stopping, .stopped, .suspended:
            wasSuspended = phase == .suspended
            phase = .released
            proceed()
            release.arm(after: Self.reaction)
        case .released: release.arm(after: Self.reaction)
        case .waiting, .running, .ended: break
        }
    }

    /// It goes on in spite of the signal.
    private func releaseEnds() {
        guard phase == .released else { return }
        if session?.state == .active { resume() } else { holdBack() }
    }

    /// Stops it again, as it was before it was released.
    private func holdBack() {
        release.disarm()
        stop()
        if wasSuspended { phase = .suspended }
    }
}
