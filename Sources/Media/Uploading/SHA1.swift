/// SHA-1 (FIPS 180-4): the checksum that every server with tus's checksum extension must support. It does not protect
/// against an attacker. It is implemented here because no linked library offers it; libcurl does not export its own.
public struct SHA1 {
    private var state: (UInt32, UInt32, UInt32, UInt32, UInt32) = (
        0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0
    )
    /// The bytes of an incomplete block.
    private var rest: [UInt8] = []
    private var count: UInt64 = 0

    public init() {}

    public static func digest(of bytes: [UInt8]) -> [UInt8] {
        var hash = SHA1()
        bytes.withUnsafeBytes { hash.update($0) }
        return hash.digest()
    }

    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count &+= UInt64(bytes.count)
        var start = 0
        if !rest.isEmpty {
            start = min(64 - rest.count, bytes.count)
            rest += bytes[..<start]
            guard rest.count == 64 else { return }
            let block = rest
            block.withUnsafeBytes { add($0) }
            rest = []
        }
        while bytes.count - start >= 64 {
            add(UnsafeRawBufferPointer(rebasing: bytes[start..<start + 64]))
            start += 64
        }
        rest = Array(bytes[start...])
    }

    /// The 20 bytes of the digest.
    public func digest() -> [UInt8] {
        var hash = self
        let padding = [0x80] + [UInt8](repeating: 0, count: (119 - rest.count) % 64)
        let bits = count &* 8
        let length = (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * $0)) }
        (padding + length).withUnsafeBytes { hash.update($0) }
        let (a, b, c, d, e) = hash.state
        return [a, b, c, d, e].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) }
        }
    }

    private mutating func add(_ block: UnsafeRawBufferPointer) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { w in
            for i in 0..<16 {
                w[i] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: i * 4, as: UInt32.self))
            }
            for i in 16..<80 { w[i] = SHA1.turned(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1) }
            var (a, b, c, d, e) = state
            for i in 0..<80 {
                let (f, k): (UInt32, UInt32) =
                    switch i {
                    case 0..<20: (b & c | ~b & d, 0x5A82_7999)
                    case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                let next = SHA1.turned(a, 5) &+ f &+ e &+ k &+ w[i]
                (a, b, c, d, e) = (next, a, SHA1.turned(b, 30), c, d)
            }
            state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d, state.4 &+ e)
        }
    }

    private static func turned(_ word: UInt32, _ count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
}
