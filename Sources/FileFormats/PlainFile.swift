/// A file that GStreamer has no good reader for, read as one of a kind that it reads well: another header stands in the
/// place of its own, the samples stay where they are.
///
/// Of AU files auparse ends at once where it is asked for another rate, for CAF there is no reader at all, and of AIFF-C
/// only what is not compressed is read.
package struct PlainFile {
    /// Bytes before the samples.
    package let skip: Int
    /// What is read in their place.
    package let header: [UInt8]
    /// How its samples lie.
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
