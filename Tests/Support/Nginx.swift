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
        port = try LoopbackPort.free()
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
        guard eventually({ LoopbackPort.accepts(address) || !child.isRunning }), child.isRunning else {
            throw SupportError("nginx did not start: \(child.errors)")
        }
    }

    public func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    public func stored(_ path: String) -> Data? { FileManager.default.contents(atPath: folder.path + "/files/" + path) }
}

extension Child {
    /// nginx may be in /usr/sbin, which is only in root's PATH.
    public static var hasNginx: Bool { isInstalled("nginx") || access("/usr/sbin/nginx", X_OK) == 0 }
}
