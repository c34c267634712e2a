/// The properties of a music file, as the file states them.
public struct SoundFacts: Sendable, Equatable {
    /// The values by name. The names are those of Vorbis comments in capitals, for every format (`TITLE`, `ARTIST`,
    /// `ALBUMARTIST`, `TRACKNUMBER`, `DATE`, `COMPILATION`, `MUSICBRAINZ_ALBUMID`, …), and Apple's `STIK` and
    /// `PODCAST`.
    public internal(set) var tags: [String: [String]] = [:]
    /// Seconds; 0: unknown.
    public internal(set) var duration = 0.0
    /// The cover, if it was requested.
    public internal(set) var picture: [UInt8]?
    public internal(set) var hasPicture = false

    /// Whether the cover is requested.
    let wantsPicture: Bool

    init(wantsPicture: Bool) { self.wantsPicture = wantsPicture }

    public func first(_ name: String) -> String? { tags[name]?.first }

    private static let limits = (values: 64, bytes: 4_096)
    /// How many bytes of a text are read: with a part of the character that does not fit.
    static let longest: UInt64 = 4_100

    /// Adds a value without surrounding spaces, and without duplicates.
    mutating func add(_ name: String, _ value: String) {
        var text = value[...]
        while let last = text.unicodeScalars.last, last.value <= 0x20 { text.unicodeScalars.removeLast() }
        while let first = text.unicodeScalars.first, first.value <= 0x20 { text.unicodeScalars.removeFirst() }
        guard !text.isEmpty else { return }
        let value = text.utf8.count <= Self.limits.bytes ? String(text) : Self.cut(text)
        let known = tags[name] ?? []
        if known.count < Self.limits.values, !known.contains(value) { tags[name] = known + [value] }
    }

    /// The first characters of a text that fit.
    private static func cut(_ text: Substring) -> String {
        var bytes = 0
        let scalars = text.unicodeScalars.prefix { scalar in
            bytes += UTF8.width(scalar)
            return bytes <= limits.bytes
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Adds the values of a tag of lower rank, for names that have no value yet.
    mutating func addMissing(_ other: SoundFacts) {
        for (name, values) in other.tags where tags[name] == nil { tags[name] = values }
        hasPicture = hasPicture || other.hasPicture
        picture = picture ?? other.picture
    }

    /// - Parameter bytes: read only if the cover is requested.
    mutating func addPicture(isFront: Bool, _ bytes: () -> ArraySlice<UInt8>) {
        hasPicture = true
        if wantsPicture, picture == nil || isFront { picture = Array(bytes()) }
    }

    /// The standard name for a name that files spell in several ways, such as `MusicBrainz Album Id`.
    static func name(_ text: String) -> String {
        let name = text.uppercased()
        return aliases[name] ?? name
    }

    private static let aliases = [
        "ALBUM ARTIST": "ALBUMARTIST", "ALBUM_ARTIST": "ALBUMARTIST", "YEAR": "DATE", "TRACK": "TRACKNUMBER",
        "DISC": "DISCNUMBER", "MUSICBRAINZ ALBUM ID": "MUSICBRAINZ_ALBUMID",
        "MUSICBRAINZ_ALBUMCOMMENT": "ALBUMVERSION", "MUSICBRAINZ ALBUM COMMENT": "ALBUMVERSION",
        "ALBUM VERSION": "ALBUMVERSION",
        "MUSICBRAINZ TRACK ID": "MUSICBRAINZ_TRACKID", "MUSICBRAINZ ARTIST ID": "MUSICBRAINZ_ARTISTID",
        "MUSICBRAINZ/ALBUM ID": "MUSICBRAINZ_ALBUMID", "MUSICBRAINZ/TRACK ID": "MUSICBRAINZ_TRACKID",
        "MUSICBRAINZ/ARTIST ID": "MUSICBRAINZ_ARTISTID", "WM/ALBUMTITLE": "ALBUM", "WM/ALBUMARTIST": "ALBUMARTIST",
        "WM/GENRE": "GENRE", "WM/YEAR": "DATE", "WM/TRACKNUMBER": "TRACKNUMBER", "WM/PARTOFSET": "DISCNUMBER",
        "WM/COMPOSER": "COMPOSER", "WM/ISCOMPILATION": "COMPILATION", "WM/ARTISTS": "ARTISTS",
        "WM/TITLESORTORDER": "TITLESORT", "WM/ARTISTSORTORDER": "ARTISTSORT", "WM/ALBUMSORTORDER": "ALBUMSORT",
        "WM/ALBUMARTISTSORTORDER": "ALBUMARTISTSORT",
    ]
}

/// Reads music files.
public enum SoundFile {
    /// Nil: the format is not supported.
    public static func read(_ source: SoundSource, wantsPicture: Bool = false) -> SoundFacts? {
        var facts = SoundFacts(wantsPicture: wantsPicture)
        guard read(source, into: &facts) else { return nil }
        return facts
    }

    private static func read(_ source: SoundSource, into facts: inout SoundFacts) -> Bool {
        let start = ID3.skip(source, 0)
        if start > 0 { ID3.read(source, 0, into: &facts) }
        switch SoundFormat(source.bytes(start, 16)) {
        case .flac:
            var own = SoundFacts(wantsPicture: facts.wantsPicture)
            FLACFile.read(source, start, into: &own)
            own.addMissing(facts)
            facts = own
        case .ogg: return OggFile.read(source, start, into: &facts)
        case .mp4: return MP4File.read(source, into: &facts)
        case .wave: ChunkFile.readWave(source, into: &facts)
        case .aiff: ChunkFile.readAIFF(source, into: &facts)
        case .asf: return ASFFile.read(source, into: &facts)
        case .dsf: OtherFiles.readDSF(source, into: &facts)
        case .dff: OtherFiles.readDFF(source, into: &facts)
        case .wavPack:
            facts.duration = OtherFiles.wavPackDuration(source, start)
            APETag.readEnd(source, into: &facts)
        case .monkey:
            facts.duration = OtherFiles.monkeyDuration(source.bytes(start, 80))
            APETag.readEnd(source, into: &facts)
        case .trueAudio:
            facts.duration = OtherFiles.trueAudioDuration(source.bytes(start, 22))
            APETag.readEnd(source, into: &facts)
        case .musepack:
            facts.duration = OtherFiles.musepackDuration(source, start)
            APETag.readEnd(source, into: &facts)
        case .au: AUFile.read(source, into: &facts)
        case .caf: CAFFile.read(source, into: &facts)
        case .flv: FLVFile.read(source, into: &facts)
        case nil:
            guard let duration = MPEGAudio.duration(source, start) else { return false }
            facts.duration = duration
            APETag.readEnd(source, into: &facts)
        }
        return true
    }
}
