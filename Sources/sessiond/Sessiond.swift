import DBus
import EventLoop
import Glibc
import Installation
import Logging
import PluginAPI
import Processes
import SessionBus

/// The main program: reads arguments and settings, runs the daemon on the bus, returns the exit code.
@main
enum Sessiond {
    /// Seconds until the sound server has usually been read.
    private static let startUpTime = 1.0

    /// Seconds for which a new daemon waits for the end of the one that it replaces. That one needs one second at most.
    private static let replacementTime = 2.0

    /// Runs the daemon and ends the process with a code: 0 done, 1 refused, 64 wrong usage, 69 no bus, 78 wrong settings.
    static func main() {
        Capabilities.setAside()
        let openFiles = OpenFiles.raise()
        switch Arguments.parse(Array(CommandLine.arguments.dropFirst())) {
        case .print(let text): print(text, terminator: "")
        case .wrong(let message):
            complain("sessiond: \(message)\n\n\(Arguments.usage)")
            exit(64)
        case .run(let arguments): exit(run(arguments, openFiles))
        }
    }

    private static func run(_ arguments: Arguments, _ openFiles: OpenFiles?) -> Int32 {
        FailedWrites.ignoreSignals()
        Footprint.returnLargeBlocks()
        LoggingSystem.bootstrap { _ in LineLogHandler(.standardError(label: "sessiond")) }
        var log = Logger(label: "sessiond")
        log.logLevel = arguments.logLevel
        let files = SettingsFiles(explicit: arguments.configuration, isSystem: arguments.isSystem)
        let settings: Settings
        do throws(SettingsError) {
            settings = try files.read()
        } catch {
            complain("sessiond: \(error.message)\n")
            return 78
        }
        let loop = EventLoop()
        let bus = arguments.isSystem ? BusAddress.system : .session
        let connection: Connection
        do throws(Failure) {
            connection = try Connection(bus, loop: loop)
        } catch {
            complain("sessiond: no \(bus.name) bus: \(error.message)\n")
            return 69
        }
        connection.isSharedByUsers = arguments.isSystem
        let daemon = Daemon(
            settings, loop: loop, connection: connection, to: bus, pluginsMayOpen: openFiles, log: log)
        connection.onDisconnect = { [unowned daemon] in
            log.error("the bus connection was lost")
            daemon.leave(69)
        }
        connection.onNameLost = { [unowned daemon] name in
            log.notice("\(name) was taken over by another sessiond")
            daemon.leave(0)
        }
        // Before the name is claimed: as soon as it has an owner, systemd counts the service as started, and may stop it.
        let signals = watchSignals(loop, daemon, files, log)
        if let code = claimName(connection, arguments) { return code }
        CrashPoint.pass("name-taken")
        daemon.start()
        log.notice("sessiond \(version) serves \(BusName.service) as \(connection.uniqueName)")
        let settling = Timer(on: loop) { Footprint.releaseStartUp() }
        settling.arm(after: startUpTime)
        let code = loop.run()
        settling.disarm()
        withExtendedLifetime(signals) {}
        daemon.stop()
        return code
    }

    /// Nil when this daemon owns the name.
    private static func claimName(_ connection: Connection, _ arguments: Arguments) -> Int32? {
        do throws(Failure) {
            let name = [Value.string(BusName.service)]
            let before = arguments.replace ? try? connection.askBusAndWait("GetNameOwner", name, timeout: 5) : nil
            switch try connection.requestName(
                BusName.service, replaceExisting: arguments.replace, allowReplacement: true)
            {
            case .owner:
                if let before { awaitEnd(of: before, on: connection) }
                return nil
            case .taken(let owner):
                let process = owner.flatMap { owner in
                    try? connection.askBusAndWait("GetConnectionUnixProcessID", [.string(owner)], timeout: 5)
                }?.first?.uint32Value
                let other = (owner ?? "another connection") + (process.map { " (process \($0))" } ?? "")
                complain(
                    "sessiond: \(BusName.service) is already owned by \(other); stop it, or use --replace\n")
                return 1
            }
        } catch {
            complain("sessiond: \(BusName.service) cannot be owned: \(error.message)\n")
            return 1
        }
    }

    /// Waits until the replaced daemon has restored the sound server and left the bus: both would use the same files, and
    /// change the same streams.
    /// - Parameter owner: its unique name, as `GetNameOwner` returns it.
    private static func awaitEnd(of owner: [Value], on connection: Connection) {
        let end = MonotonicClock.seconds + replacementTime
        while MonotonicClock.seconds < end,
            (try? connection.askBusAndWait("NameHasOwner", owner, timeout: 1))?.first == .bool(true)
        { usleep(5_000) }
    }

    private static func watchSignals(
        _ loop: EventLoop, _ daemon: Daemon, _ files: SettingsFiles, _ log: Logger
    ) -> [SignalWatch] {
        let stops = [SIGTERM, SIGINT].map { signal in loop.watch(signal: signal) { [unowned daemon] in daemon.leave(0) }
        }
        let reload = loop.watch(signal: SIGHUP) { [unowned daemon] in
            do throws(SettingsError) {
                daemon.reload(try files.read())
                log.notice("settings reloaded")
            } catch {
                log.error("the old settings are kept: \(error.message)")
                daemon.tellSettingsError(error.message)
            }
        }
        return stops + [reload]
    }

    private static func complain(_ text: String) {
        let bytes = Array(printableLines(text).utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}
