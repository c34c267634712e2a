/// What a sequence parameter set says of an H.264 stream (ITU-T H.264, 7.3.2.1.1).
package struct AVCParameters: Equatable {
    package private(set) var profile = 0
    /// 1: the colours have half the width and half the height of the picture.
    package private(set) var chroma = 1
    package private(set) var bits = 8
    /// In units of 16 pixels.
    package private(set) var width = 0
    package private(set) var height = 0
    /// Whether no picture consists of two fields.
    package private(set) var isProgressive = false
    /// Whether it is the constrained form of its profile.
    private var isConstrained = false

    /// The profiles that state chroma and bits.
    private static let high: Set = [44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244]

    /// - Parameter bytes: the parameter set, with the byte that states its type. Nil if it is damaged.
    package init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.first.map({ $0 & 0x1f == 7 }) ?? false, bytes.count >= 5 else { return nil }
        var bits = Bits(bytes.dropFirst())
        profile = bits.number(8)
        isConstrained = bits.number(8) & 0x40 != 0
        bits.skip(8)
        bits.skipCode()
        if Self.high.contains(profile) {
            chroma = bits.code()
            if chroma == 3 { bits.skip(1) }
            self.bits = 8 + max(bits.code(), bits.code())
            bits.skip(1)
            if bits.number(1) == 1 { Self.skipScaling(&bits, lists: chroma == 3 ? 12 : 8) }
        }
        bits.skipCode()
        switch bits.code() {
        case 0: bits.skipCode()
        case 1:
            bits.skip(1)
            bits.skipCode()
            bits.skipCode()
            let count = bits.code()
            guard count <= 255 else { return nil }
            for _ in 0..<count { bits.skipCode() }
        default: break
        }
        bits.skipCode()
        bits.skip(1)
        width = bits.code() + 1
        height = bits.code() + 1
        isProgressive = bits.number(1) == 1
        guard !bits.isOver else { return nil }
    }

    private static func skipScaling(_ bits: inout Bits, lists: Int) {
        for list in 0..<lists where bits.number(1) == 1 {
            var (last, next) = (8, 8)
            for _ in 0..<(list < 6 ? 16 : 64) {
                if next != 0 { next = (last + bits.signedCode() + 256) & 0xff }
                if next != 0 { last = next }
            }
        }
    }

    /// Whether every decoder of H.264 can decode the stream: baseline without its rare parts, main or high; progressive, 8 bits,
    /// with colours of half the size, at most 4096×2304.
    package var isCommon: Bool {
        ([77, 100].contains(profile) || profile == 66 && isConstrained)
            && chroma == 1 && bits == 8 && isProgressive && width * height <= 256 * 144
    }

    /// The parameter sets of an `avcC` box (ISO/IEC 14496-15, 5.3.3.1); empty if it is damaged.
    package static func sets(ofConfiguration record: ArraySlice<UInt8>) -> [AVCParameters] {
        var rest = record.dropFirst(5)
        guard let first = rest.popFirst() else { return [] }
        var sets: [AVCParameters] = []
        for _ in 0..<(first & 0x1f) {
            let length = MovieIndex.number(rest, 0, 2)
            guard rest.count >= 2 + length, let set = AVCParameters(rest.dropFirst(2).prefix(length)) else { return [] }
            sets.append(set)
            rest = rest.dropFirst(2 + length)
        }
        return sets
    }
}

/// Reads single bits. After the end it reads zeros, and ``isOver``.
private struct Bits {
    private let bytes: [UInt8]
    private var place = 0
    private(set) var isOver = false

    /// Leaves out the bytes that were inserted so that no start code is in the data.
    init(_ content: ArraySlice<UInt8>) {
        var bytes: [UInt8] = []
        var zeros = 0
        for byte in content.prefix(1_024) {
            if zeros < 2 || byte != 3 { bytes.append(byte) }
            zeros = byte == 0 ? zeros + 1 : 0
        }
        self.bytes = bytes
    }

    mutating func number(_ count: Int) -> Int {
        var value = 0
        for _ in 0..<count {
            guard place < bytes.count * 8 else {
                isOver = true
                return 0
            }
            value = value << 1 | Int(bytes[place / 8] >> (7 - place % 8) & 1)
            place += 1
        }
        return value
    }

    mutating func skip(_ count: Int) { _ = number(count) }

    /// An Exp-Golomb code, ue(v).
    mutating func code() -> Int {
        var zeros = 0
        while zeros < 24, !isOver, number(1) == 0 { zeros += 1 }
        guard zeros < 24 else {
            isOver = true
            return 0
        }
        return (1 << zeros) - 1 + number(zeros)
    }

    /// se(v).
    mutating func signedCode() -> Int {
        let value = code()
        return value % 2 == 1 ? (value + 1) / 2 : -value / 2
    }

    mutating func skipCode() { _ = code() }
}
