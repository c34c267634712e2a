import Glibc

/// An MP4 in fragments, as a recording grows: a header for each piece (`moof`) and the piece (`mdat`), one after the
/// other.
package enum FragmentedMP4 {
    /// Takes away what a full disk left of a last fragment: readers that look at all headers first refuse the whole file
    /// for it, as FFmpeg does. A file that is whole stays as it is.
    package static func settle(_ path: String) {
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        let size = Int(lseek(file, 0, SEEK_END))
        var place = 0
        // The end of what plays: a header without its piece does not.
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
