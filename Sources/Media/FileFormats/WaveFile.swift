import Glibc

/// Keeps the header of a WAV file correct while GStreamer appends samples to the file.
///
/// While the file grows, its header contains the largest size, which means "to the end of the file" (for GStreamer,
/// FFmpeg, libsndfile and readers of a pipe). So the file can be played completely at any time, also after a kill or as
/// a copy. With a smaller size, readers such as GStreamer would look for further chunks within the samples. With a size
/// of zero, libsndfile finds no sound.
package struct WaveFile: ~Copyable {
    private let descriptor: Int32
    private let headerSize: Int
    private let frame: Int

    /// Takes over the descriptor of an empty file, and writes the header of a growing file.
    package init(taking descriptor: Int32, sampleRate: Int, channels: Int, bytesPerFrame: Int, isFloat: Bool) {
        self.descriptor = descriptor
        frame = bytesPerFrame
        let header = WaveFile.header(
            tag: isFloat ? 3 : 1, bits: bytesPerFrame / channels * 8, channels: channels, sampleRate: sampleRate,
            size: .max)
        headerSize = header.count
        _ = pwrite(descriptor, header, header.count, 0)
    }

    deinit { close(descriptor) }

    /// The number of bytes of samples in the file.
    package var bytes: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? max(0, Int(status.st_size) - headerSize) : 0
    }

    /// The file grows from now on. This overwrites the header, so it also works on a full disk.
    package func grow() { write(riff: .max, data: .max) }

    /// The file does not grow any more. Writes the exact size, and removes an incomplete last frame.
    package func settle() {
        let whole = bytes / frame * frame
        if whole != bytes { _ = ftruncate(descriptor, off_t(headerSize + whole)) }
        write(riff: UInt32(clamping: whole + headerSize - 8), data: UInt32(clamping: whole))
    }

    private func write(riff: UInt32, data: UInt32) {
        var (riff, data) = (riff.littleEndian, data.littleEndian)
        _ = pwrite(descriptor, &data, 4, off_t(headerSize - 4))
        _ = pwrite(descriptor, &riff, 4, 4)
    }

    /// The header before `size` bytes of samples. The largest size means a growing file. `tag` is the WAVE format code
    /// of the samples.
    package static func header(tag: UInt16, bits: Int, channels: Int, sampleRate: Int, size: UInt32) -> [UInt8] {
        func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        let frame = bits / 8 * channels
        // More than two channels need the extensible format, which contains the positions of the loudspeakers.
        let isExtended = channels > 2
        var format = bytes(isExtended ? 0xfffe : tag) + bytes(UInt16(clamping: channels))
        format += bytes(UInt32(clamping: sampleRate)) + bytes(UInt32(clamping: sampleRate * frame))
        format += bytes(UInt16(clamping: frame)) + bytes(UInt16(clamping: bits))
        if isExtended {
            let mask = [0, 0x4, 0x3, 0x7, 0x33, 0x37, 0x3f, 0x13f, 0x63f]
            format += bytes(UInt16(22)) + bytes(UInt16(clamping: bits))
            format += bytes(UInt32(clamping: mask[min(channels, 8)])) + bytes(tag)
            format += [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]
        }
        let (all, _) = size.addingReportingOverflow(UInt32(clamping: format.count) + 20)
        return Array("RIFF".utf8) + bytes(size == .max ? size : all) + Array("WAVEfmt ".utf8)
            + bytes(UInt32(clamping: format.count)) + format + Array("data".utf8) + bytes(size)
    }
}
