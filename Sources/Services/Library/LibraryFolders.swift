import MediaLibrary

/// The folders of the library, and what follows from them for other paths.
struct LibraryFolders {
    /// If more folders than this change at the same time, the whole library is scanned.
    private static let changedLimit = 64

    private let all: [Store.Folder]

    init(_ all: [Store.Folder] = []) { self.all = all }

    var isEmpty: Bool { all.isEmpty }
    var paths: [[UInt8]] { all.map(\.path) }
    var texts: [String] { paths.map { String(decoding: $0, as: UTF8.self) } }

    /// A scan of all folders.
    var whole: [ScanTargets.Target] { paths.map { ScanTargets.Target(path: $0, isDeep: true) } }

    func isRoot(_ path: [UInt8]) -> Bool { all.contains { $0.path == path } }

    /// The innermost folder of the library that contains a path.
    func folder(of path: [UInt8]) -> Store.Folder? {
        all.filter { path.isPath(in: $0.path) }.max { $0.path.count < $1.path.count }
    }

    /// The folder that contains a folder, in the same folder of the library.
    func parent(of path: [UInt8]) -> [UInt8]? {
        guard !isRoot(path), let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        return Array(path[..<slash])
    }

    /// The scan after changes in these folders; empty: none of them is in the library.
    func targets(changed paths: [[UInt8]]) -> [ScanTargets.Target] {
        let inside = paths.filter { folder(of: $0) != nil }
        return inside.count > Self.changedLimit ? whole : inside.map { ScanTargets.Target(path: $0, isDeep: false) }
    }

    /// The folders that a change of these mounts concerns.
    func concerned(by mounts: Set<MountWatch.Mount>) -> [[UInt8]] {
        paths.filter { path in mounts.contains { $0.concerns(path) } }
    }

    /// The user's music folder, as `user-dirs.dirs` of xdg-user-dirs names it; nil: there is none.
    ///
    /// The home folder is not added: `XDG_MUSIC_DIR` is the home folder if there is no music folder.
    /// - Parameters:
    ///   - home: the home folder, absolute.
    ///   - settings: the text of that file; empty: there is none.
    static func music(home: String, settings: String) -> String? {
        var music = home + "/Music"
        for line in settings.split(separator: "\n") where line.hasPrefix("XDG_MUSIC_DIR=\"") && line.hasSuffix("\"") {
            let text = line.dropFirst(15).dropLast()
            music = text.hasPrefix("$HOME/") ? home + text.dropFirst(5) : text == "$HOME/" ? home : String(text)
        }
        while music.hasSuffix("/"), music.count > 1 { music.removeLast() }
        return music != home && music.hasPrefix("/") && music != "/" ? music : nil
    }
}

extension [UInt8] {
    /// Whether the path is that folder or in it.
    func isPath(in folder: [UInt8]) -> Bool {
        folder == [UInt8(ascii: "/")] || starts(with: folder) && (count == folder.count || self[folder.count] == 0x2F)
    }
}
