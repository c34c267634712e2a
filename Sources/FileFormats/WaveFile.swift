import Glibc

/// A WAV file's header, kept true while somebody else appends samples to the file.
///
/// While the file grows, its header gives the largest size there is, which stands for "to the end of the file"
/// (GStreamer, FFmpeg, libsndfile and who reads a pipe take it so): the file plays whole at any moment, also after a
/// kill or when it was copied. Sizes that say less would be ruined for readers that look for further chunks behind the
/// samples, as GStreamer's own does; one of zero is no sound at all for libsndfile.
package struct WaveFile: ~Copyable {
    private let descriptor: Int32
    private let headerSize: Int
    private let frame: Int

    /// Writes the header of a growing file at the beginning of an empty one, whose descriptor it takes over.
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

    /// Bytes of samples in the file.
    package var bytes: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? max(0, Int(status.st_size) - headerSize) : 0
    }

    /// From now on the file grows. In place, so a full disk does not matter.
    package func grow() { write(riff: .max, data: .max) }

    /// Says what is there, and takes away a last frame that is not whole; for a file that does not grow.
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

    /// What stands before `size` bytes of samples; the largest size is that of a growing file. `tag` is WAVE's number for
    /// the kind of samples.
    package static func header(tag: UInt16, bits: Int, channels: Int, sampleRate: Int, size: UInt32) -> [UInt8] {
        func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        let frame = bits / 8 * channels
        // More than two channels need the extended form, which says where their loudspeakers stand.
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
