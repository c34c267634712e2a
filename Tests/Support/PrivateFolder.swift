import Foundation

/// A new folder that only the own user can read. It is removed with this object, at the latest when the tests end. It
/// is in `SESSIOND_TEST_FOLDER` (/tmp).
public final class PrivateFolder {
    public let path: String

    public init() throws {
        // The path is short, because the paths of sockets in it must fit into 108 bytes.
        let place = ProcessInfo.processInfo.environment["SESSIOND_TEST_FOLDER"] ?? "/tmp"
        var template = Array("\(place)/sessiond-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SupportError("mkdtemp: \(String(cString: strerror(errno)))") }
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        Reaper.shared.add(folder: path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Makes a folder in this folder, with its parents, and returns its path.
    public func folder(_ name: String) throws -> String {
        let made = path + "/" + name
        try FileManager.default.createDirectory(
            atPath: made, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return made
    }

    /// Writes a file in this folder and returns its path.
    @discardableResult
    public func file(_ name: String, _ text: String) throws -> String {
        let made = path + "/" + name
        try text.write(toFile: made, atomically: true, encoding: .utf8)
        return made
    }
}
