import Glibc
import Processes

/// Where photos and films of a camera go if nobody names a file: the folders of the user for pictures and for videos
/// (xdg-user-dirs), with a name that tells the time.
enum Album {
    case photo, film

    private var key: String { self == .photo ? "XDG_PICTURES_DIR" : "XDG_VIDEOS_DIR" }
    private var usual: String { self == .photo ? "Pictures" : "Videos" }

    /// A new path in the folder, which is created; nil if the user has no home.
    func path(ending: String) -> String? {
        guard let home = absolutePath("HOME") else { return nil }
        let settings = UserFolder.config.path.flatMap { readFile($0 + "/user-dirs.dirs", limit: 1 << 16) } ?? []
        let folder = Self.folder(key, in: String(decoding: settings, as: UTF8.self), home: home) ?? "\(home)/\(usual)"
        guard makeFolders(folder) else { return nil }
        let name = (self == .photo ? "Photo " : "Film ") + Self.now()
        for number in 1...1_000 {
            let path = "\(folder)/\(name)\(number > 1 ? " (\(number))" : "").\(ending)"
            if access(path, F_OK) != 0 { return path }
        }
        return nil
    }

    /// The value of a line like `XDG_VIDEOS_DIR="$HOME/Videos"`.
    static func folder(_ key: String, in text: String, home: String) -> String? {
        for line in text.split(separator: "\n") where line.hasPrefix(key + "=\"") && line.hasSuffix("\"") {
            let value = line.dropFirst(key.count + 2).dropLast()
            if value.hasPrefix("/") { return String(value) }
            if value.hasPrefix("$HOME/") { return home + value.dropFirst(5) }
        }
        return nil
    }

    private static func now() -> String {
        var seconds = time(nil)
        var parts = tm()
        localtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, "%Y-%m-%d %H.%M.%S", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
