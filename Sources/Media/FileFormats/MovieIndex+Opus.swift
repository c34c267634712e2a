import Glibc

extension MovieIndex {
    /// The changes of the descriptions of Opus sound (`dOps`) whose numbers have the lowest byte first.
    ///
    /// MP4 has the highest byte first, Ogg and Matroska the lowest; qtmux 1.22 copies the bytes. Then players leave out the first
    /// 0.3 s of the sound instead of the few milliseconds that the encoder added.
    package static func opusPatches(descriptor file: Int32) -> [Patch] {
        opusPatches(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package static func opusPatches(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) -> [Patch] {
        guard let index = contents(size: size, read: read) else { return [] }
        return opusPatches(of: index.boxes, ["trak", "mdia", "minf", "stbl", "stsd", "Opus", "dOps"], index.place)
    }

    /// - Parameter path: only these boxes in each other: a hostile file can nest boxes a million times.
    private static func opusPatches(of boxes: ArraySlice<UInt8>, _ path: ArraySlice<String>, _ origin: Int) -> [Patch] {
        var patches: [Patch] = []
        each(boxes) { kind, content in
            guard kind == path.first else { return }
            switch kind {
            case "stsd": patches += opusPatches(of: content.dropFirst(8), path.dropFirst(), origin)
            // The fields of each description of sound.
            case "Opus": patches += opusPatches(of: content.dropFirst(28), path.dropFirst(), origin)
            case "dOps":
                guard let bytes = turned(content) else { return }
                patches.append(Patch(place: origin + content.startIndex + 2, bytes: bytes))
            default: patches += opusPatches(of: content, path.dropFirst(), origin)
            }
        }
        return patches
    }

    /// The delay, the rate and the gain with the highest byte first; nil if they are so already.
    private static func turned(_ content: ArraySlice<UInt8>) -> [UInt8]? {
        guard content.count >= 10 else { return nil }
        let fields = Array(content.dropFirst(2).prefix(8))
        let turned = [(0, 2), (2, 6), (6, 8)].flatMap { fields[$0.0..<$0.1].reversed() }
        func rate(_ bytes: [UInt8]) -> Int { number(bytes[...], 2, 4) }
        func delay(_ bytes: [UInt8]) -> Int { number(bytes[...], 0, 2) }
        let rates = 1...768_000
        // The rate of the original sound shows the order; it may be missing. Delays are a few hundred samples.
        let isTurned =
            rate(fields) == 0
            ? delay(turned) < delay(fields) : rates.contains(rate(turned)) && !rates.contains(rate(fields))
        return isTurned ? turned : nil
    }
}
