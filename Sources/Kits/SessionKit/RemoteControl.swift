import DBus
import EventLoop
import Glibc
import SessionBus
import Synchronization

/// The MPRIS object of this program, for ``NowPlayingInfoCenter`` and ``RemoteCommandCenter``: on the bus from the first
/// info or the first target on, until the program ends.
final class RemoteControl: Sendable {
    static let shared = RemoteControl(.session)

    let commands = Mutex<RemoteCommandCenter?>(nil)
    let info = Mutex<NowPlayingInfoCenter?>(nil)
    private let isDue = Mutex(false)
    private let served: RemoteObject

    init(_ bus: BusAddress) {
        served = RemoteObject(bus)
    }

    /// The app has changed something: what is shown follows soon.
    func changed() {
        let wasDue = isDue.withLock { due in
            defer { due = true }
            return due
        }
        if wasDue { return }
        Task { [self] in
            isDue.withLock { $0 = false }
            let (commands, info) = (commands.withLock { $0 }, info.withLock { $0 })
            guard info?.current != nil || commands?.hasTargets == true else { return await served.update() }
            await served.show(commands ?? .shared(), info ?? .default())
        }
    }
}

/// The part of ``RemoteControl`` on the thread of the loop.
actor RemoteObject {
    nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    private let bus: BusAddress
    private var connection: Connection?
    private var player: RemotePlayer?

    init(_ bus: BusAddress) { self.bus = bus }

    func show(_ commands: RemoteCommandCenter, _ info: NowPlayingInfoCenter) {
        if player == nil, let connection = try? Connection(bus, loop: LoopExecutor.shared.loop) {
            connection.objects.refuseLongTexts()
            self.connection = connection
            let session = OwnSessions.all.first(on: bus)
            let name = session?.name ?? OwnProcess.programName
            let player = RemotePlayer(commands, info, name: name, desktopEntry: session?.desktopEntry ?? "")
            player.export(on: connection)
            self.player = player
            let part = String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
            let first = part.first?.isNumber == false ? part : "app" + part
            // Several players of one program differ by the process.
            _ = try? connection.requestName("org.mpris.MediaPlayer2.\(first).instance\(getpid())")
        }
        update()
    }

    func update() { player?.update() }
}
