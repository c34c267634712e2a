import Glibc

/// Names of folders as clients write them.
enum FolderPath {
    /// Without a "/" at its end, without two of them, and without "." and "..". Only a path with ".." is resolved, because the
    /// user has given a link its name on purpose; nil if such a folder is not there, or the path is not absolute.
    static func plain(_ path: [UInt8]) -> [UInt8]? {
        guard path.first == UInt8(ascii: "/"), !path.contains(0) else { return nil }
        let parts = path.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
        guard parts.contains(where: { $0.elementsEqual("..".utf8) }) else {
            return parts.isEmpty ? [UInt8(ascii: "/")] : parts.flatMap { [UInt8(ascii: "/")] + $0 }
        }
        let real = (path + [0]).withUnsafeBytes { realpath($0.baseAddress!.assumingMemoryBound(to: CChar.self), nil) }
        guard let real else { return nil }
        defer { free(real) }
        return Array(UnsafeBufferPointer(start: real, count: strlen(real))).map { UInt8(bitPattern: $0) }
    }
}
