import CameraBackend
import Capturing
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// The cameras that the desktop gives to this program, after it has asked the user (`org.freedesktop.portal.Camera`).
///
/// Nothing here waits: the question may stay open for ever, and the portal may hang, vanish and come back.
final class CameraPortal {
    typealias Reply = (SessionError?) -> Void

    /// The id of the camera that is listed before the user has agreed: which cameras there are is not known then.
    static let hidden = CaptureSource(id: "portal", name: "Camera", media: .video, isHidden: true)

    private static let name = "org.freedesktop.portal.Desktop"
    private static let path = "/org/freedesktop/portal/desktop"
    private static let interface = "org.freedesktop.portal.Camera"
    private static let request = "org.freedesktop.portal.Request"
    /// Seconds for an answer that does not need the user.
    private static let timeout = 10.0
    /// The same if the portal may have to be started first.
    private static let starting = 25.0
    /// Seconds in which the cameras of a new connection are expected: PipeWire's session manager shows them after it has read the
    /// permissions.
    private static let showing = 2.0

    private let connection: Connection
    private let monitor: CameraMonitor
    private let patience: Double
    private var access = PortalAccess()
    /// Those who wait: to see cameras, and to use one.
    private var lookers: [Reply] = []
    private var users: [UInt64: (reply: Reply, limit: Timer)] = [:]
    private var lastUser: UInt64 = 0
    private var lastToken: UInt64 = 0
    /// Whether the portal knows a camera; nil: it has not said.
    private var hasCamera: Bool?
    private var question: Subscription?
    private var questionPath = ""
    private var owner: Subscription?
    /// Counts the calls: an answer to an older one changes nothing.
    private var turn: UInt64 = 0
    private lazy var shown = Timer(on: connection.loop) { [unowned self] in take(.opened) }
    private lazy var linking = Timer(on: connection.loop) { [unowned self] in
        take(.failed(Self.failed("PipeWire does not answer")))
    }

    /// Whether the user is asked has changed.
    var onAsking: (() -> Void)?

    /// - Parameter patience: seconds for which somebody waits until a camera may be used.
    init(_ monitor: CameraMonitor, on connection: Connection, patience: Double = PortalAccess.patience) {
        (self.monitor, self.connection, self.patience) = (monitor, connection, patience)
        monitor.onLinkLost = { [unowned self] in take(.lost) }
        owner = connection.watchOwner(of: Self.name) { [unowned self] owner in
            if owner.isEmpty { take(.portalGone) }
        }
    }

    var isOpen: Bool { access.isOpen }
    var isAsking: Bool { access.isAsking }

    /// What is listed, beside the cameras of the connection.
    var hiddenCameras: [CaptureSource] { isOpen || hasCamera == false ? [] : [Self.hidden] }

    /// Answers when the cameras that the user has allowed are known: at once while the user is asked. Does not make the portal ask.
    func look(_ reply: @escaping () -> Void) {
        guard !isAsking else { return reply() }
        lookers.append { _ in reply() }
        if isOpen { return take(.looked) }
        // Whether there are cameras is known to everybody, also if they may not be seen.
        connection.call(
            Self.name, Self.path, StandardName.properties, "Get",
            [.string(Self.interface), .string("IsCameraPresent")], timeout: Self.timeout
        ) { [weak self] answer in
            guard let self else { return }
            hasCamera = (try? answer.get())?.first?.unwrapped.boolValue
            if hasCamera == nil, access.state == .closed {
                // There is no portal.
                hasCamera = false
                return tell(nil)
            }
            take(.looked)
        }
    }

    /// Somebody waits until it is released.
    final class Wait {
        private weak var portal: CameraPortal?
        private let number: UInt64

        fileprivate init(_ number: UInt64, at portal: CameraPortal) { (self.number, self.portal) = (number, portal) }
        deinit { portal?.forget(number) }
    }

    /// Answers, once, when a camera can be opened; the user may have to be asked. After a minute, the answer is an error, and the
    /// question stays.
    /// - Parameter isAnew: the cameras that are known are not the wanted one.
    /// - Returns: nil if the answer is there already.
    func want(isAnew: Bool = false, _ reply: @escaping Reply) -> Wait? {
        lastUser += 1
        let number = lastUser
        let limit = Timer(on: connection.loop) { [weak self] in
            self?.forget(number)
            reply(PortalAccess.unanswered)
        }
        limit.arm(after: patience)
        users[number] = (reply, limit)
        take(isAnew ? .wantedAnew : .wanted)
        return users[number] == nil ? nil : Wait(number, at: self)
    }

    private func forget(_ number: UInt64) {
        guard users.removeValue(forKey: number) != nil, users.isEmpty else { return }
        take(.left)
    }

    // MARK: Acts

    private func take(_ event: PortalAccess.Event) {
        let wasAsking = isAsking
        for act in access.handle(event) {
            switch act {
            case .ask: ask()
            case .open: open()
            case .close: close()
            case .tell(let problem): tell(problem)
            }
        }
        if !isAsking { question = nil }
        if isAsking != wasAsking { onAsking?() }
    }

    private func tell(_ problem: SessionError?) {
        for timer in [shown, linking] { timer.disarm() }
        let waiting = lookers + users.sorted { $0.key < $1.key }.map(\.value.reply)
        (lookers, users) = ([], [:])
        for reply in waiting { reply(problem) }
    }

    private func close() {
        turn += 1
        for timer in [shown, linking] { timer.disarm() }
        monitor.disconnect()
    }

    /// Asks the user. The answer is a signal, which may come before the answer of the call.
    private func ask() {
        // Those who look are answered at once.
        let looking = lookers
        lookers = []
        for reply in looking { reply(nil) }
        turn += 1
        let current = turn
        lastToken += 1
        let token = "sessiond_\(getpid())_\(lastToken)"
        let sender = connection.uniqueName.dropFirst().map { $0 == "." ? "_" : String($0) }.joined()
        listen(at: "\(Self.path)/request/\(sender)/\(token)")
        connection.call(
            Self.name, Self.path, Self.interface, "AccessCamera",
            [.properties([("handle_token", .string(token))])], timeout: Self.starting
        ) { [weak self] answer in
            guard let self, current == turn, isAsking else { return }
            switch answer {
            case .success(let values):
                // Portals before 0.9 choose the path themselves.
                if let path = values.first?.objectPathValue, path != questionPath { listen(at: path) }
            case .failure(let failure): take(Self.event(failure))
            }
        }
    }

    private func listen(at path: String) {
        questionPath = path
        question = connection.subscribe(
            path: path, interface: Self.request, member: "Response", sender: Self.name
        ) { [weak self] signal in
            guard let self, let code = (try? signal.arguments())?.first?.uint32Value else { return }
            take(.answered(code))
        }
    }

    private func open() {
        turn += 1
        let current = turn
        connection.call(
            Self.name, Self.path, Self.interface, "OpenPipeWireRemote", [.properties([])], timeout: Self.timeout
        ) { [weak self] answer in
            // A descriptor that nobody wants any more is closed with the answer.
            guard let self, current == turn else { return }
            switch answer {
            case .failure(let failure): take(Self.event(failure))
            case .success(let values):
                guard let descriptor = values.first?.fileDescriptorValue else {
                    return take(.failed(Self.failed("it has sent no connection")))
                }
                connect(descriptor, current)
            }
        }
    }

    private func connect(_ descriptor: FileDescriptor, _ current: UInt64) {
        linking.arm(after: Self.timeout)
        monitor.connect(through: descriptor.number) { [weak self] problem in
            guard let self, current == turn else { return }
            linking.disarm()
            if let problem { return take(.failed(problem)) }
            guard monitor.cameras.isEmpty, hasCamera != false else { return take(.opened) }
            shown.arm(after: Self.showing)
        }
    }

    /// The monitor has found a camera.
    func cameraConnected() {
        if shown.isArmed { take(.opened) }
    }

    // MARK: Errors

    private static func event(_ failure: Failure) -> PortalAccess.Event {
        switch failure.name {
        case "org.freedesktop.portal.Error.NotAllowed": .notPermitted
        // It does not recognize the sandbox of this program.
        case Failure.Name.accessDenied:
            .failed(SessionError(.missingEntitlement, "the camera portal refuses this program: \(failure.message)"))
        case Failure.Name.serviceUnknown, Failure.Name.nameHasNoOwner, Failure.Name.unknownMethod,
            Failure.Name.unknownInterface, Failure.Name.unknownObject:
            .failed(
                SessionError(
                    .notSupported,
                    "this desktop has no camera portal: install xdg-desktop-portal and the portal of the desktop "
                        + "(such as xdg-desktop-portal-gtk), or use cameras directly with portal = never in [camera]"))
        default: .failed(failed(failure.message))
        }
    }

    private static func failed(_ message: String) -> SessionError {
        SessionError(.resourceNotAvailable, "the camera portal of the desktop has failed: \(message)")
    }
}
