import Glibc

/// Apple's IMA 4:1 compression in CAF and AIFF-C. Packets of the channels alternate; each has 34 bytes and 64 samples
/// (IMA Recommended Practices for Enhancing Digital Audio Compatibility; QuickTime File Format, "IMA 4:1").
package enum IMA4 {
    package static let packetSize = 34
    package static let framesPerPacket = 64

    /// Decodes the samples of a file to a WAV. Nil for a file without IMA4, or one that cannot be read.
    /// - Parameter limit: the maximal length in seconds. A longer file is cut a little later.
    package static func wave(path: String, limit: Double) throws(AppleFile.Refusal) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        func read(_ place: Int, _ count: Int) -> [UInt8] { FileContent.bytes(of: file, at: place, count: count) }
        guard let found = try AppleFile.read(head: read(0, 12), read), found.format.coding == .packets else {
            return nil
        }
        let (format, channels) = (found.format, found.format.channels)
        let samples = samples(read(found.place, min(found.size, format.size(limit))), channels: channels)
        let sound = samples.prefix(min(found.frames, samples.count) * channels * 2)
        return format.waveHeader(size: sound.count) + sound
    }

    /// Decodes packets to 16-bit, little-endian, interleaved samples. An incomplete last packet is ignored.
    package static func samples(_ packets: [UInt8], channels: Int) -> [UInt8] {
        let count = packets.count / (packetSize * channels)
        var samples = [UInt8](repeating: 0, count: count * framesPerPacket * channels * 2)
        for packet in 0..<count {
            for channel in 0..<channels {
                decode(packets[(packet * channels + channel) * packetSize..<packets.count]) { frame, sample in
                    let place = ((packet * framesPerPacket + frame) * channels + channel) * 2
                    let bits = UInt16(bitPattern: Int16(clamping: sample))
                    samples[place] = UInt8(truncatingIfNeeded: bits)
                    samples[place + 1] = UInt8(truncatingIfNeeded: bits >> 8)
                }
            }
        }
        return samples
    }

    /// Decodes a packet: the predictor (nine bits), the step index (seven bits), then four bits for each sample.
    private static func decode(_ packet: ArraySlice<UInt8>, _ put: (_ frame: Int, _ sample: Int) -> Void) {
        let start = packet.startIndex
        let head = Int(packet[start]) << 8 | Int(packet[start + 1])
        var sample = Int(Int16(truncatingIfNeeded: head & 0xff80))
        var index = min(head & 0x7f, steps.count - 1)
        for frame in 0..<framesPerPacket {
            let byte = Int(packet[start + 2 + frame / 2])
            let code = frame % 2 == 0 ? byte & 15 : byte >> 4
            let step = steps[index]
            var change = step >> 3
            if code & 4 != 0 { change += step }
            if code & 2 != 0 { change += step >> 1 }
            if code & 1 != 0 { change += step >> 2 }
            sample = min(max(sample + (code & 8 != 0 ? -change : change), -32_768), 32_767)
            index = min(max(index + (code & 4 != 0 ? (code & 3) * 2 + 2 : -1), 0), steps.count - 1)
            put(frame, sample)
        }
    }

    private static let steps = [
        7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97,
        107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796,
        876, 963, 1_060, 1_166, 1_282, 1_411, 1_552, 1_707, 1_878, 2_066, 2_272, 2_499, 2_749, 3_024, 3_327, 3_660,
        4_026, 4_428, 4_871, 5_358, 5_894, 6_484, 7_132, 7_845, 8_630, 9_493, 10_442, 11_487, 12_635, 13_899, 15_289,
        16_818, 18_500, 20_350, 22_385, 24_623, 27_086, 29_794, 32_767,
    ]
}
