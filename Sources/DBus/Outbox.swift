import EventLoop
import Glibc

/// Messages on their way to the bus, in the order they were sent.
struct Outbox {
    /// A buffer that grew larger is given back when it has been written.
    private static let keptBytes = 64 << 10
    private static let largeBytes = 1 << 20
    /// Away from those that libdbus counts up from 1 for its own blocking calls.
    private var lastSerial: UInt32 = 1 << 30
    private var bytes: [UInt8] = []
    private var written = 0
    /// Bytes of the message that was added last.
    private(set) var lastSize = 0

    init() {}

    var isEmpty: Bool { bytes.isEmpty }

    /// The message's serial; nil where it cannot be sent.
    mutating func add(_ message: Message) -> UInt32? {
        let end = bytes.count
        // Never 0, nor one of libdbus's.
        lastSerial = lastSerial == .max ? 1 << 30 : lastSerial + 1
        do throws(Failure) {
            let serial = try message.write(to: &bytes, serial: lastSerial)
            lastSize = bytes.count - end
            return serial
        } catch {
            bytes.removeSubrange(end...)
            return nil
        }
    }

    /// Writes as much as fits without waiting.
    mutating func write(to descriptor: Int32) {
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                send(
                    descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written,
                    Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count > 0 {
                written += count
            } else if errno == EAGAIN {
                return compact()
            } else if errno != EINTR {
                // The bus is gone, as reading will say; what was not written never will be.
                break
            }
        }
        written = 0
        let capacity = bytes.capacity
        if capacity > Self.keptBytes { bytes = [] } else { bytes.removeAll(keepingCapacity: true) }
        // What it was made of is as large, in pieces.
        if capacity > Self.largeBytes { Footprint.releaseHeap() }
    }

    /// What was written goes when it is the larger part, so that each byte is moved once at the most.
    private mutating func compact() {
        guard written > bytes.count / 2 else { return }
        bytes.removeSubrange(..<written)
        written = 0
    }
}
