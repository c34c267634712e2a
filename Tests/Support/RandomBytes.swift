public import Foundation

/// Bytes that look random and of which no two blocks are alike; the same for the same seed. Made fast, also for many.
public func randomBytes(_ count: Int, seed: UInt64 = 1) -> Data {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    let block = (0..<8_192).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
    var bytes = Data(count: count)
    bytes.withUnsafeMutableBytes { (buffer: UnsafeMutableRawBufferPointer) in
        block.withUnsafeBytes { block in
            for start in stride(from: 0, to: count, by: block.count) {
                let size = min(block.count, count - start)
                buffer[start..<start + size].copyBytes(from: block[..<size])
            }
        }
        for start in stride(from: 0, to: count - 8, by: 4_096) {
            buffer.storeBytes(of: UInt64(start), toByteOffset: start, as: UInt64.self)
        }
    }
    return bytes
}
