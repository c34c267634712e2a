import DBus
import Foundation
import SessionBus
import TestSupport

/// A folder with one plugin's manifest.
final class PluginFolder {
    private let folder: PrivateFolder
    private let id: String

    /// - Parameter script: The plugin's program, a shell script.
    init(_ id: String, script: String) throws {
        self.id = id
        folder = try PrivateFolder()
        let plugins = try folder.folder("sessiond/plugins")
        let program = try folder.file("plugin", "#!/bin/sh\n\(script)\n")
        chmod(program, 0o755)
        try "[sessiond Plugin]\nId=\(id)\nName=\(id)\nKind=player\nVersion=1\nExec=\(program)\nSchemes=\(id);\n".write(
            toFile: plugins + "/x.plugin", atomically: true, encoding: .utf8)
        // The daemon may run as another user.
        for path in ["", "/sessiond", "/sessiond/plugins"] { chmod(folder.path + path, 0o755) }
        chmod(plugins + "/x.plugin", 0o644)
    }

    var environment: [String: String] { ["XDG_DATA_HOME": "/nowhere", "XDG_DATA_DIRS": folder.path] }

    /// Opens the plugin, and waits until its process runs.
    func start(on stage: DaemonStage) throws -> Int32 {
        let message = try Message.methodCall(
            destination: BusName.service, path: ObjectPath.root, interface: BusName.plugins, member: "Open")
        message.append([.string("player"), .string("\(id):x")])
        stage.observer.call(message) { _ in }
        stage.observer.flush()
        return try process(of: stage.daemon.processID)
    }

    /// The daemon's only child.
    func process(of daemon: Int32) throws -> Int32 {
        var found: Int32?
        _ = eventually {
            let text = try? String(contentsOfFile: "/proc/\(daemon)/task/\(daemon)/children", encoding: .utf8)
            found = text?.split(separator: " ").first.flatMap { Int32($0) }
            let command = found.flatMap { try? String(contentsOfFile: "/proc/\($0)/comm", encoding: .utf8) }
            return command?.hasPrefix("sleep") == true
        }
        guard let found else { throw SupportError("the plugin was not started") }
        return found
    }
}
