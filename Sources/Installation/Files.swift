import Glibc

/// The value of the variable; nil if unset or empty.
public func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// The first `limit` bytes of a file; nil, with errno, if it cannot be read. Never waits for the writer of a FIFO.
public func readFile(_ path: String, limit: Int) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return readFile(descriptor, limit: limit)
}

/// The same for an open file, from its current position.
public func readFile(_ descriptor: Int32, limit: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while bytes.count < limit {
        let count = read(descriptor, &chunk, min(chunk.count, limit - bytes.count))
        if count < 0 { return nil }
        if count == 0 { break }
        bytes += chunk[..<count]
    }
    return bytes
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
