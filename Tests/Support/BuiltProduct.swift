import Foundation
import PluginAPI

/// The path of an executable of this package, next to the running tests.
///
/// The plugins have their own names there, as `make install` installs them.
public func builtProduct(named name: String) throws -> String {
    let folder = try folderOfProducts.get()
    let path = folder + "/" + name
    guard FileManager.default.isExecutableFile(atPath: path) else {
        throw SupportError("no executable '\(name)' in \(folder): swift build first")
    }
    return path
}

/// The folder of the executables. Each plugin of the package `sessiond-plugins` in it is a hard link to
/// the executable that SwiftPM builds.
private let folderOfProducts = Result<String, any Error> {
    let running = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    var folder = URL(fileURLWithPath: running).deletingLastPathComponent()
    func built(_ name: String) -> String? {
        let path = folder.appendingPathComponent(name).path
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }
    for _ in 0..<5 {
        if built("sessiond") != nil {
            // The short runs of the sanitizers have no plugins.
            if let plugin = built("sessiond-plugin") {
                for kind in PluginKind.all where kind.package == "sessiond-plugins" {
                    try link(plugin, to: folder.appendingPathComponent(kind.program).path)
                }
            }
            let linked = ["sessiond-thumbnailer": "sessiond-assets", "sessiond-cache": "sessiond-transfer"]
            for (name, program) in linked {
                if let file = built(program) { try link(file, to: folder.appendingPathComponent(name).path) }
            }
            return folder.path
        }
        folder.deleteLastPathComponent()
    }
    throw SupportError("no executables beside \(running): swift build first")
}

/// Makes `path` a hard link to `file`, unless it is one already. Several suites may do this at the same time, and
/// programs that run from `path` must go on, so the link is made under another name and renamed.
private func link(_ file: String, to path: String) throws {
    var built = stat()
    var there = stat()
    guard stat(file, &built) == 0 else { throw SupportError("\(file) is gone") }
    if lstat(path, &there) == 0, there.st_ino == built.st_ino, there.st_dev == built.st_dev { return }
    let temporary = "\(path).\(getpid())"
    unlink(temporary)
    // If another suite has just made the link, renaming does nothing, and this name remains.
    defer { unlink(temporary) }
    guard Glibc.link(file, temporary) == 0, rename(temporary, path) == 0 else {
        throw SupportError("\(path): \(String(cString: strerror(errno)))")
    }
}
