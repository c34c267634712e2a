public import Foundation

/// The web server nginx with a folder that files may be put in, where it is installed.
public final class Nginx {
    public let folder: PrivateFolder
    public let port: Int
    private let child: Child

    public init() throws {
        let folder = try PrivateFolder()
        self.folder = folder
        let files = try folder.folder("files")
        port = try Nginx.freePort()
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(folder.path)/\($0);"
        }
        let configuration = try folder.file(
            "nginx.conf",
            """
            daemon off; master_process off; pid \(folder.path)/pid; error_log stderr warn;
            events {}
            http {
                access_log off; \(temporary.joined(separator: " "))
                server {
                    listen 127.0.0.1:\(port);
                    root \(files); client_max_body_size 0;
                    dav_methods PUT DELETE; create_full_put_path on; dav_access user:rw;
                }
            }
            """)
        child = try Child(
            access("/usr/sbin/nginx", X_OK) == 0 ? "/usr/sbin/nginx" : "nginx",
            ["-p", folder.path, "-c", configuration], environment: ["PATH": searchPath + ":/usr/sbin"])
        let address = port
        guard eventually({ Nginx.accepts(address) || !child.isRunning }), child.isRunning else {
            throw SupportError("nginx did not start: \(child.errors)")
        }
    }

    public func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    public func stored(_ path: String) -> Data? { FileManager.default.contents(atPath: folder.path + "/files/" + path) }

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
        var address = address(port)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func accepts(_ port: Int) -> Bool { withSocket(port) { connect($0, $1, $2) == 0 } }

    /// One that nobody uses now: nginx cannot say which one it was given.
    private static func freePort() throws -> Int {
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

extension Child {
    /// nginx is where only root's PATH leads.
    public static var hasNginx: Bool { isInstalled("nginx") || access("/usr/sbin/nginx", X_OK) == 0 }
}
