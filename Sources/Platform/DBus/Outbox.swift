import EventLoop
import Glibc

/// Messages that are not written to the bus yet, in the order they were sent.
struct Outbox {
    /// A larger buffer is freed when it has been written.
    private static let keptBytes = 64 << 10
    private static let largeBytes = 1 << 20
    /// Different from the serials of libdbus's own blocking calls, which count from 1.
    private var lastSerial: UInt32 = 1 << 30
    private var bytes: [UInt8] = []
    private var written = 0
    /// The size of the message that was added last, in bytes.
    private(set) var lastSize = 0

    init() {}

    var isEmpty: Bool { bytes.isEmpty }

    /// The message's serial; nil if it cannot be sent.
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
                // The bus is gone; reading will report that. The rest is not written.
                break
            }
        }
        written = 0
        let capacity = bytes.capacity
        if capacity > Self.keptBytes { bytes = [] } else { bytes.removeAll(keepingCapacity: true) }
        // The values of the message need as much memory.
        if capacity > Self.largeBytes { Footprint.releaseHeap() }
    }

    /// The written part is removed when it is the larger one, so that each byte is moved once at most.
    private mutating func compact() {
        guard written > bytes.count / 2 else { return }
        bytes.removeSubrange(..<written)
        written = 0
    }
}
