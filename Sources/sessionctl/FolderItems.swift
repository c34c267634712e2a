import Glibc
import MediaValues
import PluginAPI

/// The sounds and films in a folder and the folders below it, in the order of their names.
enum FolderItems {
    /// More folders inside one another are not visited.
    private static let deepest = 32

    /// The URIs of the files, or nil if the path is not a folder. Hidden files, files of other types and linked folders are
    /// left out. Throws if the folder cannot be read, or has nothing to play.
    static func uris(_ path: String) throws -> [String]? {
        var status = stat()
        guard let absolute = FileURI.absolute(path), stat(absolute, &status) == 0, isFolder(status) else { return nil }
        guard let folder = opendir(absolute) else {
            throw Complaint.refused("\(path.escaped): \(String(cString: strerror(errno)))")
        }
        closedir(folder)
        let found = walk(Array(absolute.utf8), deepest)
        if found.isEmpty { throw Complaint.refused("\(path.escaped): nothing in this folder can be played") }
        return found
    }

    private static func walk(_ path: [UInt8], _ depth: Int) -> [String] {
        guard depth > 0 else { return [] }
        guard let folder = opendir(path.map(CChar.init(bitPattern:)) + [0]) else {
            let reason = String(cString: strerror(errno))
            Output.complain("\(String(decoding: path, as: UTF8.self).escaped) is left out: \(reason)")
            return []
        }
        defer { closedir(folder) }
        var names: [[UInt8]] = []
        while let entry = readdir(folder) {
            // The name ends with a zero.
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name.first != UInt8(ascii: ".") { names.append(name) }
        }
        names.sort { $0.lexicographicallyPrecedes($1) }
        return names.flatMap { name -> [String] in
            let child = path + [UInt8(ascii: "/")] + name
            var status = stat()
            guard lstat(child.map(CChar.init(bitPattern:)) + [0], &status) == 0 else { return [] }
            if isFolder(status) { return walk(child, depth - 1) }
            return isPlayable(name) ? [FileURI.shared(child)] : []
        }
    }

    /// Playlists are left out: their items are usually in the folder, too.
    private static func isPlayable(_ name: [UInt8]) -> Bool {
        guard let type = MediaType.ofFile(String(decoding: name, as: UTF8.self)) else { return false }
        let lists: Set = ["audio/x-mpegurl", "audio/x-scpls"]
        return (type.hasPrefix("audio/") || type.hasPrefix("video/")) && !lists.contains(type)
    }

    private static func isFolder(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFDIR }
}
