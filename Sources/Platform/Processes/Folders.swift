import Glibc

/// The folders for data of programs, as the XDG Base Directory Specification names them.
public enum UserFolder {
    /// `$XDG_CACHE_HOME`, or `~/.cache`.
    case cache
    /// `$XDG_STATE_HOME`, or `~/.local/state`.
    case state
    /// `$XDG_DATA_HOME`, or `~/.local/share`.
    case data
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    case config

    /// The path; nil if the user has no such folder.
    public var path: String? {
        switch self {
        case .cache: absolutePath("XDG_CACHE_HOME") ?? absolutePath("HOME").map { $0 + "/.cache" }
        case .state: absolutePath("XDG_STATE_HOME") ?? absolutePath("HOME").map { $0 + "/.local/state" }
        case .data: absolutePath("XDG_DATA_HOME") ?? absolutePath("HOME").map { $0 + "/.local/share" }
        case .config: absolutePath("XDG_CONFIG_HOME") ?? absolutePath("HOME").map { $0 + "/.config" }
        }
    }
}

/// The value of an environment variable that names a folder. Relative paths are ignored, as the specification requires.
public func absolutePath(_ variable: String) -> String? {
    getenv(variable).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
}

/// Creates a folder and its parents, for this user only. False, with errno, if one of them cannot be created.
public func makeFolders(_ path: String) -> Bool {
    var folder = ""
    for part in path.split(separator: "/") {
        folder += "/" + part
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { return false }
    }
    return true
}

/// Whether no other user can replace files in the folder: it is a folder of this user, and others may not write to it.
/// False, with errno, otherwise.
public func isPrivate(_ folder: String) -> Bool {
    var status = stat()
    guard lstat(folder, &status) == 0 else { return false }
    guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else {
        errno = EACCES
        return false
    }
    return true
}

/// The names in a folder, unsorted, with hidden ones; empty if it cannot be read.
public func namesIn(_ folder: String) -> [String] {
    guard let listing = opendir(folder) else { return [] }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}
