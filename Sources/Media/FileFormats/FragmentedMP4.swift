import Glibc

/// A fragmented MP4, the format of a growing recording: headers (`moof`) and their data (`mdat`) alternate.
package enum FragmentedMP4 {
    /// Removes an incomplete last fragment after the disk was full. Readers that first read all headers, such as
    /// FFmpeg, would otherwise refuse the whole file. A complete file is not changed.
    package static func settle(_ path: String) {
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        let size = Int(lseek(file, 0, SEEK_END))
        var place = 0
        // The end of the last complete fragment. A header without its data cannot be played.
        var end = 0
        while place + 8 <= size {
            let head = [UInt8](unsafeUninitializedCapacity: 8) {
                $1 = max(0, pread(file, $0.baseAddress, 8, off_t(place)))
            }
            guard head.count == 8 else { return }
            let length = head[..<4].reduce(0) { $0 << 8 | Int($1) }
            guard length >= 8, length <= size - place else { break }
            place += length
            if !head[4...].elementsEqual("moof".utf8) { end = place }
        }
        if end > 0, end < size { _ = ftruncate(file, off_t(end)) }
    }
}
