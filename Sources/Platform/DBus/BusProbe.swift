public import EventLoop
import Glibc

/// Checks from the loop whether a bus answers, before a blocking connect: libdbus waits up to 25 seconds each for the
/// answers to the greeting and to Hello.
public final class BusProbe {
    private let loop: EventLoop
    private let descriptor: Int32
    private let handler: (Bool) -> Void
    private var watch: IOWatch?
    private var deadline: Timer?
    private var isGreeted = false

    /// Reports once, from the loop, whether the bus answered in that time; true without asking for unknown address
    /// types.
    public init(_ bus: BusAddress, loop: EventLoop, patience: Double, _ handler: @escaping (Bool) -> Void) {
        self.loop = loop
        self.handler = handler
        guard let path = bus.socketPath else {
            descriptor = -1
            loop.later { handler(true) }
            return
        }
        descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let greeting = "\0AUTH EXTERNAL " + String(geteuid()).utf8.map { String($0, radix: 16) }.joined() + "\r\n"
        guard descriptor >= 0, BusProbe.connect(descriptor, path), BusProbe.say(Array(greeting.utf8), descriptor) else {
            loop.later { [weak self] in self?.end(false) }
            return
        }
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [weak self] _ in self?.hear() }
        deadline = Timer(on: loop) { [weak self] in self?.end(false) }
        deadline?.arm(after: patience)
    }

    deinit {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
    }

    private static func connect(_ descriptor: Int32, _ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    private static func say(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    private func hear() {
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return end(false) }
        // The first data after Hello are its answer.
        guard !isGreeted else { return end(true) }
        isGreeted = true
        var hello = Array("BEGIN\r\n".utf8)
        let message = try? Connection.busCall("Hello", [])
        guard bytes.starts(with: "OK".utf8), let message, (try? message.write(to: &hello, serial: 1)) != nil,
            BusProbe.say(hello, descriptor)
        else { return end(false) }
    }

    private func end(_ answers: Bool) {
        watch = nil
        deadline = nil
        handler(answers)
    }
}

extension BusAddress {
    /// The path of a socket in the file system; nil for any other kind.
    fileprivate var socketPath: String? {
        let address: String
        switch self {
        case .system: address = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? Self.systemAddress
        case .custom(let custom): address = custom
        case .session, .starter: return nil
        }
        let prefix = "unix:path="
        guard address.hasPrefix(prefix), !address.contains(where: { $0 == ";" || $0 == "%" }) else { return nil }
        return String(address.dropFirst(prefix.count).prefix { $0 != "," })
    }
}
