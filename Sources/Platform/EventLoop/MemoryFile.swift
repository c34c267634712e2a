import CLinux
import Glibc

/// A file in memory, without a name in any folder (`memfd_create`); gone with the object.
public final class MemoryFile {
    /// Owned by the object, which closes it.
    public let descriptor: Int32
    /// The path by which this process can open it.
    public var path: String { "/proc/self/fd/\(descriptor)" }

    /// Nil if the process may open no more files.
    public init?(holding bytes: [UInt8] = []) {
        descriptor = memfd_create("sessiond", UInt32(shim_close_on_exec))
        guard descriptor >= 0, write(bytes) else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private func write(_ bytes: [UInt8]) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    /// Frees the memory of a part, which then has zeros. Only whole pages are freed.
    public func punch(_ range: Range<UInt64>) {
        shim_punch(descriptor, off_t(range.lowerBound), off_t(range.upperBound - range.lowerBound))
    }

    /// Its first bytes, at most `limit`.
    public func bytes(_ limit: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: limit) { $1 = max(0, pread(descriptor, $0.baseAddress, limit, 0)) }
    }
}
