import Glibc

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
