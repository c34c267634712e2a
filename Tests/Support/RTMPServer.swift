import Foundation

/// nginx with its server of live streams (libnginx-mod-rtmp), where it is installed or unpacked.
///
/// The application `live` takes every stream and records each publication into a file of its own; `private` takes only the key
/// `right-key`.
public final class RTMPServer {
    public let folder: PrivateFolder
    public let port: Int
    private let configuration: String
    private var child: Child

    /// Where the module is; nil: it is not there, or nginx is not.
    private static let module: String? = {
        let name = "/usr/lib/nginx/modules/ngx_rtmp_module.so"
        let places = [name, unpackedServers + "/../root" + name]
        return Child.hasNginx ? places.first { FileManager.default.fileExists(atPath: $0) } : nil
    }()
    public static var isInstalled: Bool { module != nil }

    public init() throws {
        let folder = try PrivateFolder()
        self.folder = folder
        let taken = try folder.folder("taken")
        port = try LoopbackPort.free()
        let web = try LoopbackPort.free()
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(folder.path)/\($0);"
        }
        configuration = try folder.file(
            "nginx.conf",
            """
            load_module \(Self.module ?? "");
            daemon off; master_process off; pid \(folder.path)/pid; error_log stderr warn;
            events {}
            rtmp {
                server {
                    listen 127.0.0.1:\(port);
                    application live {
                        live on; record all; record_path \(taken); record_suffix -%s.flv; drop_idle_publisher 10s;
                    }
                    application keys {
                        live on; wait_key on;
                    }
                    application private {
                        live on; notify_method get; on_publish http://127.0.0.1:\(web)/check;
                    }
                }
            }
            http {
                access_log off; \(temporary.joined(separator: " "))
                server {
                    listen 127.0.0.1:\(web);
                    location /check { if ($arg_name != "right-key") { return 403; } return 204; }
                }
            }
            """)
        child = try Self.start(folder, configuration, port)
    }

    private static func start(_ folder: PrivateFolder, _ configuration: String, _ port: Int) throws -> Child {
        let child = try Child(
            access("/usr/sbin/nginx", X_OK) == 0 ? "/usr/sbin/nginx" : "nginx",
            ["-p", folder.path, "-c", configuration], environment: ["PATH": searchPath + ":/usr/sbin"])
        guard eventually({ LoopbackPort.accepts(port) || !child.isRunning }), child.isRunning else {
            throw SupportError("nginx did not start: \(child.errors)")
        }
        return child
    }

    public func url(_ key: String, application: String = "live", port other: Int? = nil) -> String {
        "rtmp://127.0.0.1:\(other ?? port)/\(application)/\(key)"
    }

    /// The files with what was published, the oldest first.
    public var taken: [String] {
        let folder = folder.path + "/taken"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.sorted().map { folder + "/" + $0 }
    }

    /// Ends at once, as by a crash.
    public func kill() { child.kill() }
    public func restart() throws { child = try Self.start(folder, configuration, port) }
}
