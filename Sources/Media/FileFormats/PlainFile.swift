/// A file that GStreamer cannot read well. It is read as a file of another kind: another header replaces its own, and
/// the samples stay unchanged.
///
/// auparse ends at once if another rate of an AU file is requested. There is no reader for CAF, and none for compressed
/// AIFF-C.
package struct PlainFile {
    /// The number of bytes before the samples.
    package let skip: Int
    /// The header that replaces them.
    package let header: [UInt8]
    /// The format of the samples.
    package let format: SampleFormat

    /// Nil for a file of another kind.
    package init?(
        head: [UInt8], size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]
    ) throws(AppleFile.Refusal) {
        if head.starts(with: ".snd".utf8), head.count >= 24, let format = SampleFormat(sun: Array(head[12..<24])) {
            let place = Int(head[4..<8].number)
            self.init(format, at: place, size: size - place)
        } else if let file = try AppleFile.read(head: head, read) {
            self.init(file.format, at: file.place, size: min(file.size, size - file.place))
        } else {
            return nil
        }
    }

    private init?(_ format: SampleFormat, at place: Int, size: Int) {
        guard size > 0 else { return nil }
        skip = place
        self.format = format
        switch format.coding {
        case .samples(_, _, isLittleEndian: false), .packets: header = format.aiffHeader(size: size)
        case .samples, .aLaw, .muLaw: header = format.waveHeader(size: size)
        }
    }
}
