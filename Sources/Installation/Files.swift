import Glibc

/// The value of the variable; nil if unset or empty.
public func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// The files in the folder with that extension, without hidden ones, sorted by name.
public func filesIn(_ folder: String, suffix: String) -> [String] {
    guard let handle = opendir(folder) else { return [] }
    defer { closedir(handle) }
    var names: [String] = []
    while let entry = readdir(handle) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name.hasSuffix(suffix), !name.hasPrefix(".") { names.append(folder + "/" + name) }
    }
    return names.sorted()
}
