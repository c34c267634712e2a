import CGStreamer
import Glibc
import PluginAPI

/// Apple's Core Audio Format, as far as sound effects need it: linear PCM (Core Audio Format Specification 1.0).
enum CoreAudioFile {
    private static let headerSize = 8
    private static let chunkHeaderSize = 12

    /// The samples as a WAV in memory, whose descriptor is the caller's; nil for a file that is no CAF, or that cannot be
    /// read.
    /// - Parameter limit: seconds; a longer one gives that much and a little more.
    static func wave(path: String, limit: Double) throws(SessionError) -> Int32? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard read(file, at: 0, count: 4) == Array("caff".utf8) else { return nil }
        func refused(_ reason: String) -> SessionError { .badParameter("'\(path)' cannot be decoded: \(reason)") }
        var place = headerSize
        var format: Format?
        // Bounded: a lying file may have any number of chunks.
        for _ in 0..<64 {
            let header = read(file, at: place, count: chunkHeaderSize)
            guard header.count == chunkHeaderSize else { throw refused("it is cut short") }
            let size = Int64(bitPattern: header[4...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
            place += chunkHeaderSize
            switch String(decoding: header[..<4], as: UTF8.self) {
            case "desc":
                format = Format(read(file, at: place, count: 32))
                guard format != nil else { throw refused("only linear PCM of 1 to 8 channels is read from CAF") }
            case "data":
                guard let format else { throw refused("its samples come before their format") }
                // The edit count comes first; a size of −1 is the rest of the file.
                let most = (Int(limit * format.rate) + 2) * format.frame
                let wanted = size < 4 ? most : Int(min(size - 4, Int64(most)))
                let samples = read(file, at: place + 4, count: wanted)
                return memory(format.wave(samples))
            default: break
            }
            guard size >= 0, size < 1 << 40 else { throw refused("a part of it has no size") }
            place += Int(size)
        }
        throw refused("it has no samples")
    }

    private static func read(_ file: Int32, at place: Int, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { $1 = max(0, pread(file, $0.baseAddress, count, off_t(place))) }
    }

    private static func memory(_ bytes: [UInt8]) -> Int32 {
        let file = shim_memory_file("caf")
        _ = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
        return file
    }

    /// CAFAudioFormat, of PCM.
    private struct Format {
        let rate: Double
        let channels: Int
        let bits: Int
        let isFloat: Bool
        let isLittleEndian: Bool
        var frame: Int { channels * bits / 8 }

        init?(_ bytes: [UInt8]) {
            guard bytes.count == 32 else { return nil }
            func word(_ place: Int) -> UInt32 { bytes[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) } }
            rate = Double(bitPattern: UInt64(word(0)) << 32 | UInt64(word(4)))
            let flags = word(12)
            (isFloat, isLittleEndian) = (flags & 1 != 0, flags & 2 != 0)
            (channels, bits) = (Int(word(24)), Int(word(28)))
            guard Array(bytes[8..<12]) == Array("lpcm".utf8), rate >= 1_000, rate <= 384_000,
                (1...8).contains(channels),
                (isFloat ? [32, 64] : [8, 16, 24, 32]).contains(bits), word(16) == UInt32(frame)
            else { return nil }
        }

        func wave(_ samples: [UInt8]) -> [UInt8] {
            var samples = samples
            samples.removeLast(samples.count % frame)
            let width = bits / 8
            if !isLittleEndian, width > 1 {
                for start in stride(from: 0, to: samples.count, by: width) { samples[start..<start + width].reverse() }
            }
            // A WAV's 8 bits have no sign.
            if width == 1 { for place in samples.indices { samples[place] ^= 0x80 } }
            func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
                withUnsafeBytes(of: value.littleEndian) { Array($0) }
            }
            var header = Array("RIFF".utf8) + bytes(UInt32(clamping: 36 + samples.count)) + Array("WAVEfmt ".utf8)
            header += bytes(UInt32(16)) + bytes(UInt16(isFloat ? 3 : 1)) + bytes(UInt16(clamping: channels))
            header += bytes(UInt32(clamping: Int(rate))) + bytes(UInt32(clamping: Int(rate) * frame))
            header += bytes(UInt16(clamping: frame)) + bytes(UInt16(clamping: bits))
            return header + Array("data".utf8) + bytes(UInt32(clamping: samples.count)) + samples
        }
    }
}
