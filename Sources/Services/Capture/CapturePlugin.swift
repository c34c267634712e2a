import CameraBackend
import Capturing
import DBus
import EventLoop
import Glibc
import Installation
import PluginAPI
public import PluginKit
import Processes
import SessionBus

/// The cameras and microphones of this machine, photos and films of them, on the bus as `org.sessiond1.Capture`.
///
/// A capture session of a client has an audio session of its own while it records sound: a call interrupts it, and the film goes on
/// after the call.
public final class CapturePlugin: Plugin {
    /// The most capture sessions.
    private static let most: Int = 64

    let host: PluginHost
    let callers: FreeCallers
    let monitor: CameraMonitor
    let hardware: CameraHardware
    /// Nil: cameras are used directly.
    let portal: CameraPortal?
    let journal: TakeJournal
    private(set) var sessions: [UInt64: CaptureSession] = [:]
    /// Which session may change a device, by its id.
    var locks: [String: UInt64] = [:]
    private var lastNumber: UInt64 = 0
    private lazy var owned = OwnedObjects(on: host.connection) { [unowned self] in sessions[$0]?.close() }
    private let inhibitor: Inhibitor
    let shutter: ShutterSound
    private var ending: (() -> Void)?
    private lazy var health = Timer(on: host.loop) { [unowned self] in endIfStuck() }

    public convenience init(_ host: PluginHost) { self.init(host, state: UserFolder.state.path) }

    /// - Parameter state: the folder for states of the user.
    init(_ host: PluginHost, state: String?) {
        self.host = host
        callers = FreeCallers(on: host.connection)
        hardware = CameraHardware(on: host.loop)
        let usesPortal = Self.usesPortal(host)
        monitor = CameraMonitor(on: host.loop, isOfPortal: usesPortal)
        portal = usesPortal ? CameraPortal(monitor, on: host.connection) : nil
        shutter = ShutterSound(on: host.connection) { [unowned host] in host.complain($0) }
        journal = TakeJournal(in: state)
        // Also while the user does nothing, as with a film of the door.
        inhibitor = Inhibitor(
            "sleep:idle", .block, who: "sessiond", why: "A film is being recorded", on: SystemBus(on: host.loop))
        for film in journal.mendOthers() {
            host.complain(
                film.problem.map { "'\(film.path)' was not completed, and \($0)" }
                    ?? "'\(film.path)' was not completed; it is an ordinary film now")
        }
        // If this program ended, the portal would remember a no.
        portal?.onAsking = { [unowned self] in settleBusy() }
        monitor.onConnected = { [unowned self] id in
            portal?.cameraConnected()
            emit("DeviceConnected", [.string(id)])
            for session in sessions.values { session.cameraConnected(id) }
        }
        monitor.onDisconnected = { [unowned self] id in
            emit("DeviceDisconnected", [.string(id)])
            for session in sessions.values { session.cameraDisconnected(id) }
        }
        hardware.onIdle = { [unowned self] in endIfDone() }
        host.connection.objects.export(self, at: PluginKind.capture.objectPath, interfaces: [CapturePlugin.interface])
    }

    /// Whether this program may use cameras only if the user agrees.
    private static func usesPortal(_ host: PluginHost) -> Bool {
        let setting = SettingsFiles(isSystem: host.bus.isSystem).read { host.complain($0) }.camera.portal
        guard !host.bus.isSystem else {
            if setting == .always {
                host.complain("portal = always of [camera] has no effect: on the system bus there is no portal")
            }
            return false
        }
        return setting.isUsed(isSandboxed: Sandbox(of: UInt32(getpid())).isOfApplication)
    }

    public func end(_ done: @escaping () -> Void) {
        ending = done
        for session in sessions.values { session.close() }
        endIfDone()
    }

    private func endIfDone() {
        guard sessions.isEmpty, hardware.isIdle, let done = ending else { return }
        ending = nil
        host.connection.flush()
        done()
    }

    func emit(_ member: String, _ arguments: [Value]) {
        host.connection.objects.emit(
            path: PluginKind.capture.objectPath, interface: PluginKind.capture.interface, member: member, arguments)
    }

    // MARK: Devices

    /// Those that can be listed: before the user has allowed cameras, one stands for all of them.
    var cameras: [CaptureSource] { (portal?.hiddenCameras ?? []) + monitor.cameras.map(\.device) }

    /// Looks for cameras; does not ask the user.
    func look(_ done: @escaping () -> Void) {
        if let portal { return portal.look(done) }
        monitor.refresh()
        done()
    }

    /// A camera by its id, as it is listed.
    func camera(_ id: String) -> CaptureSource? {
        // The id that was listed before the user has agreed stays valid.
        if id == CameraPortal.hidden.id, portal != nil { return monitor.camera(called: nil)?.device ?? cameras.first }
        return cameras.first { $0.id == id }
    }

    /// Reads what can be set of cameras.
    func readControls(of cameras: [CaptureSource], _ done: @escaping () -> Void) {
        hardware.read(cameras, among: monitor.cameras.map(\.device), done)
    }

    /// The microphones as the daemon knows them; the first one is that of the route.
    func microphones(_ reply: @escaping ([CaptureSource]) -> Void) {
        let route = CaptureSource(id: CaptureSession.routeInput, name: "Microphone", media: .audio)
        host.connection.call(
            BusName.service, ObjectPath.root, StandardName.properties, "Get",
            [.string(BusName.manager), .string("AvailableInputs")], timeout: 5
        ) { answer in
            let ports = (try? answer.get())?.first?.unwrapped.ports ?? []
            guard !ports.isEmpty else { return reply([]) }
            reply([route] + ports.map { CaptureSource(id: $0.uid, name: $0.name, media: .audio) })
        }
    }

    /// The names of the sessions that use a device.
    func users(of device: CaptureSource) -> [String] {
        sessions.values.sorted { $0.number < $1.number }.filter { $0.isRunning && $0.uses(device.id) }.map(\.name)
    }

    /// Looks for cameras anew, unless other sessions use some of those that are known.
    /// - Returns: whether it does.
    func lookAgain(for camera: String, besides session: CaptureSession) -> Bool {
        guard !hasBusySession(besides: session) else { return false }
        guard let portal, !portal.isOpen else { return monitor.lookAgain(for: camera) }
        portal.look {}
        return true
    }

    func hasBusySession(besides session: CaptureSession) -> Bool {
        sessions.values.contains { $0 !== session && $0.isBusy }
    }

    // MARK: Sessions

    func create(_ name: String, _ options: CaptureSession.Options, for owner: String) throws(Failure) -> CaptureSession
    {
        guard sessions.count < Self.most else {
            throw .limitsExceeded("there are \(sessions.count) capture sessions already; close some of them")
        }
        lastNumber += 1
        let session = CaptureSession(lastNumber, name: name, owner: owner, options, in: self)
        sessions[lastNumber] = session
        owned.add(lastNumber, of: owner)
        session.export()
        return session
    }

    func closed(_ session: CaptureSession) {
        guard sessions.removeValue(forKey: session.number) != nil else { return }
        owned.remove(session.number, of: session.owner)
        host.connection.objects.remove(path: session.path)
        locks = locks.filter { $0.value != session.number }
        settleBusy()
        endIfDone()
        if sessions.isEmpty { health.arm(after: 0.2) }
    }

    /// Another process can open cameras that this one cannot any more; the daemon starts it when it is needed.
    private func endIfStuck() {
        guard sessions.isEmpty, CaptureEngine.hasLostCamera else { return }
        host.complain("a camera was lost; ending, so that the next session can use it")
        host.quit(0, ending: self)
    }

    func settleBusy() {
        host.isBusy = sessions.values.contains(where: \.isBusy) || portal?.isAsking == true
        let isWriting = sessions.values.contains(where: \.isWriting)
        if inhibitor.isHeld != isWriting { inhibitor.isHeld = isWriting }
    }
}
