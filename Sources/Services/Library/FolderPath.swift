import Glibc

/// Paths of folders as clients write them.
enum FolderPath {
    /// The path without a "/" at its end, without "//", and without "." and "..". Links are resolved only in a path
    /// with "..", because otherwise the user has chosen the name of a link on purpose. Nil: a path with ".." does not
    /// exist, or the path is not absolute.
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
