import Foundation

/// TCP ports of 127.0.0.1.
public enum LoopbackPort {
    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    private static func withSocket<Outcome>(_ port: Int, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Outcome)
        -> Outcome
    {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = LoopbackPort.address(port)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    static func accepts(_ port: Int) -> Bool { withSocket(port) { connect($0, $1, $2) == 0 } }

    /// A TCP port that nobody uses now, for programs that cannot choose one and report it.
    public static func free() throws -> Int {
        let port: Int? = withSocket(0) { descriptor, address, size in
            guard bind(descriptor, address, size) == 0 else { return nil }
            var own = sockaddr_in()
            var length = size
            let status = withUnsafeMutablePointer(to: &own) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
            return status == 0 ? Int(in_port_t(bigEndian: own.sin_port)) : nil
        }
        guard let port else { throw SupportError("no free port") }
        return port
    }
}
