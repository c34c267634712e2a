import Glibc

/// A file to send: an open descriptor, and a check whether the file is unchanged.
///
/// Only the block that is being sent is in memory.
public final class BodyFile {
    let descriptor: Int32
    /// Called after each block that was read: if the file has changed, the block is not sent.
    let isUnchanged: (Int32) -> Bool

    /// Takes over the descriptor, and closes it.
    public init(owning descriptor: Int32, isUnchanged: @escaping (_ descriptor: Int32) -> Bool) {
        self.descriptor = descriptor
        self.isUnchanged = isUnchanged
    }

    /// Whether the file is unchanged.
    public var isTheSame: Bool { isUnchanged(descriptor) }

    deinit { close(descriptor) }

    /// Reads a part of the file block by block; false if it cannot be read, or has changed.
    public func read(offset: UInt64, count: UInt64, _ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
        var reader = HTTPBody([.file(self, offset: offset, length: count)]).reader
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            switch reader.read(buffer) {
            case .bytes(0): return true
            case .bytes(let count): body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            case .failed: return false
            }
        }
    }
}

/// The body of a request: bytes and parts of files, in order.
public struct HTTPBody {
    public enum Part {
        case bytes([UInt8])
        case file(BodyFile, offset: UInt64, length: UInt64)

        var length: UInt64 {
            switch self {
            case .bytes(let bytes): UInt64(bytes.count)
            case .file(_, _, let length): length
            }
        }
    }

    public let parts: [Part]
    public let length: UInt64

    public init(_ parts: [Part] = []) {
        self.parts = parts
        length = parts.reduce(0) { $0 + $1.length }
    }

    var reader: Reader { Reader(parts: parts) }

    /// The position of the next bytes in a body.
    struct Reader {
        enum Outcome: Equatable {
            /// 0: the end.
            case bytes(Int)
            case failed(SourceFailure)
        }

        private let parts: [Part]
        private var index = 0
        /// The position in the part.
        private var offset: UInt64 = 0

        init(parts: [Part]) { self.parts = parts }

        /// Reads the next bytes, at most as many as fit.
        mutating func read(_ buffer: UnsafeMutableRawBufferPointer) -> Outcome {
            while index < parts.count, offset == parts[index].length {
                index += 1
                offset = 0
            }
            guard index < parts.count, !buffer.isEmpty else { return .bytes(0) }
            let part = parts[index]
            let count = Int(min(UInt64(buffer.count), part.length - offset))
            switch part {
            case .bytes(let bytes):
                let start = Int(offset)
                bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[start..<start + count])) }
                offset += UInt64(count)
                return .bytes(count)
            case .file(let file, let start, _):
                var done = -1
                repeat {
                    done = pread(file.descriptor, buffer.baseAddress, count, off_t(start + offset))
                } while done < 0
                    && errno == EINTR
                if done < 0 { return .failed(.unreadable(errno)) }
                // The file is shorter than before, or its content has changed.
                guard done > 0, file.isUnchanged(file.descriptor) else { return .failed(.changed) }
                offset += UInt64(done)
                return .bytes(done)
            }
        }

        /// Moves to a position of the whole body; false if it is after the end.
        mutating func seek(to place: UInt64) -> Bool {
            var rest = place
            for (number, part) in parts.enumerated() {
                if rest <= part.length {
                    (index, offset) = (number, rest)
                    return true
                }
                rest -= part.length
            }
            return rest == 0
        }
    }
}

/// The reason why a file could not be sent.
public enum SourceFailure: Sendable, Hashable {
    case changed
    /// The errno of the failure.
    case unreadable(Int32)
}
