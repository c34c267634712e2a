/// The coded sound of a music file without its tags: the same before and after a change of the tags, also if the file
/// was written anew by another program.
public struct SoundSample: Sendable, Equatable {
    /// The first and the last bytes of the coded sound.
    public private(set) var first: [UInt8] = []
    public private(set) var last: [UInt8] = []
    /// The length of the sound, in a unit of the format: bytes, or for MP4 the number of its samples; 0: unknown.
    public private(set) var length: UInt64 = 0

    /// How much is taken from each end, in bytes.
    static let part = 16_384

    /// - Returns: nil: the file has no sound, or its format is not supported.
    public init?(_ source: SoundSource) {
        let start = ID3.skip(source, 0)
        let head = source.bytes(start, 16)
        let range: Range<UInt64>?
        switch SoundFormat(head) {
        case .flac:
            var facts = SoundFacts(wantsPicture: false)
            range = Self.range(FLACFile.read(source, start, into: &facts), TrailingTags.start(source))
        case .ogg:
            (first, last) = OggFile.sound(source, start, part: Self.part)
            range = nil
        case .mp4:
            if let sound = MP4File.sound(source, part: Self.part) {
                (first, last, length) = (sound.first, sound.last, sound.count)
            }
            range = nil
        case .wave: range = ChunkFile.sound(source, isBig: false)
        case .aiff: range = ChunkFile.sound(source, isBig: true)
        case .asf:
            (first, last) = ASFFile.sound(source, part: Self.part)
            range = nil
        case .dsf:
            let size = source.bytes(84, 8).littleNumber(0, 8)
            range = Self.range(92, size >= 12 ? 80 + min(size, source.size) : 0)
        case .dff: range = OtherFiles.soundOfDFF(source)
        // Programs that copy the sound write some fields of the first header anew.
        case .wavPack: range = Self.range(start + 32, TrailingTags.start(source))
        case .monkey, .trueAudio, .musepack: range = Self.range(start, TrailingTags.start(source))
        case .au: range = AUFile.sound(source)
        case .caf: range = CAFFile.sound(source)
        case .flv: range = nil
        case nil:
            range = MPEGAudio.sound(source, start).flatMap { Self.range($0, TrailingTags.start(source)) }
        }
        if let range {
            let end = min(range.upperBound, source.size)
            length = end - min(end, range.lowerBound)
            first = Array(source.bytes(range.lowerBound, Int(min(length, UInt64(Self.part)))))
            let rest = min(length - UInt64(first.count), UInt64(Self.part))
            last = Array(source.bytes(end - rest, Int(rest)))
        }
        if first.isEmpty { return nil }
    }

    private static func range(_ start: UInt64, _ end: UInt64) -> Range<UInt64>? { start < end ? start..<end : nil }
}

/// The formats of music files, recognised by their first bytes after a tag of ID3v2.
enum SoundFormat {
    case flac
    case ogg
    case mp4
    case wave
    case aiff
    case asf
    case dsf
    case dff
    case wavPack
    case monkey
    case trueAudio
    case musepack
    case au
    case caf
    case flv

    /// - Parameter head: 16 bytes.
    /// - Returns: nil: another format, or one that has no header, such as MP3.
    init?(_ head: ArraySlice<UInt8>) {
        func has(_ text: StaticString, at place: Int = 0) -> Bool {
            head.dropFirst(place).starts(
                with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
        switch true {
        case has("fLaC"): self = .flac
        case has("OggS"): self = .ogg
        case has("ftyp", at: 4): self = .mp4
        case has("RIFF") && has("WAVE", at: 8), has("RF64"): self = .wave
        case has("FORM") && has("AIF", at: 8): self = .aiff
        case head.elementsEqual(ASFFile.identity): self = .asf
        case has("DSD "): self = .dsf
        case has("FRM8") && has("DSD ", at: 12): self = .dff
        case has("wvpk"): self = .wavPack
        case has("MAC "): self = .monkey
        case has("TTA1"): self = .trueAudio
        case has("MPCK"), has("MP+"): self = .musepack
        case has(".snd"): self = .au
        case has("caff"): self = .caf
        case has("FLV\u{1}"): self = .flv
        default: return nil
        }
    }
}

/// The tags at the end of a file: ID3v1 with its extension, APEv1 and APEv2, Lyrics3, ID3v2.4.
enum TrailingTags {
    /// The place where they begin; the size of the file if there are none.
    static func start(_ source: SoundSource) -> UInt64 {
        var end = source.size
        // Programs append their tag to those of others.
        for _ in 0..<8 {
            guard let start = start(source, before: end), start < end else { break }
            end = start
        }
        return end
    }

    private static func start(_ source: SoundSource, before end: UInt64) -> UInt64? {
        if end >= 128, source.starts(end - 128, with: "TAG") {
            return end >= 355 && source.starts(end - 355, with: "TAG+") ? end - 355 : end - 128
        }
        if end >= 32, source.starts(end - 32, with: "APETAGEX") {
            let footer = source.bytes(end - 32, 32)
            let header: UInt64 = footer.littleNumber(20, 4) >> 31 != 0 ? 32 : 0
            let size = footer.littleNumber(12, 4) + header
            return size >= 32 && size <= end ? end - size : nil
        }
        if end >= 15, source.starts(end - 9, with: "LYRICS200") {
            guard let size = UInt64(source.bytes(end - 15, 6).utf8Text), size + 15 <= end else { return nil }
            return end - 15 - size
        }
        if end >= 20, source.starts(end - 10, with: "3DI") {
            let size = UInt64(source.bytes(end - 4, 4).syncsafe) + 20
            return size <= end ? end - size : nil
        }
        return nil
    }
}
