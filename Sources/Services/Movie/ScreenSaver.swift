import DBus
import SessionBus

/// Keeps the screen on while a film plays (`org.freedesktop.ScreenSaver`). Without that service, it does nothing.
final class ScreenSaver {
    private static let name = "org.freedesktop.ScreenSaver"
    private let connection: Connection
    private let application: String
    /// Of the last request that was granted.
    private var cookie: UInt32?
    private var isAsking = false

    init(_ application: String, on connection: Connection) {
        (self.application, self.connection) = (application, connection)
    }

    /// Whether it is to stay on.
    var isInhibited = false {
        didSet { if isInhibited != oldValue { update() } }
    }

    private func update() {
        guard !isAsking else { return }
        if isInhibited, cookie == nil {
            isAsking = true
            call("Inhibit", [.string(application), .string("A film plays")]) { [weak self] answer in
                guard let self else { return }
                isAsking = false
                guard case .success(let values) = answer else { return }
                cookie = values.first?.uint32Value
                update()
            }
        } else if !isInhibited, let given = cookie {
            cookie = nil
            call("UnInhibit", [.uint32(given)]) { _ in }
        }
    }

    private func call(
        _ member: String, _ arguments: [Value], _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        connection.call(
            ScreenSaver.name, "/org/freedesktop/ScreenSaver", ScreenSaver.name, member, arguments, reply)
    }
}
