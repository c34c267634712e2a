/// MP4 (ISO/IEC 14496-12) with the tags of iTunes.
enum MP4File {
    struct Atom {
        let name: String
        let kind: ArraySlice<UInt8>
        let body: UInt64
        let end: UInt64
        var size: Int { Int(clamping: end - body) }
    }

    /// The atoms in a range, up to the first damaged one.
    private static func atoms(_ source: SoundSource, _ start: UInt64, _ end: UInt64) -> [Atom] {
        var atoms: [Atom] = []
        var place = start
        while place + 8 <= end, atoms.count < 4_096 {
            let head = source.bytes(place, 16)
            guard head.count >= 8 else { break }
            var size = head.bigNumber(0, 4)
            var body = place + 8
            if size == 1 {
                size = head.bigNumber(8, 8)
                body += 8
            } else if size == 0 {
                size = end - place
            }
            guard size >= body - place, size <= end - place else { break }
            let kind = head.dropFirst(4).prefix(4)
            atoms.append(Atom(name: kind.latinText, kind: kind, body: body, end: place + size))
            place += size
        }
        return atoms
    }

    static func read(_ source: SoundSource, into facts: inout SoundFacts) -> Bool {
        guard let movie = atoms(source, 0, source.size).first(where: { $0.name == "moov" }) else { return false }
        var hasSound = false
        for atom in atoms(source, movie.body, movie.end) {
            switch atom.name {
            case "mvhd":
                let header = source.bytes(atom.body, 32)
                let isLong = header.first == 1
                let scale = header.bigNumber(isLong ? 20 : 12, 4)
                let length = header.bigNumber(isLong ? 24 : 16, isLong ? 8 : 4)
                if scale > 0 { facts.duration = Double(length) / Double(scale) }
            case "trak": hasSound = hasSound || isSound(source, atom)
            case "udta":
                for meta in atoms(source, atom.body, atom.end) where meta.name == "meta" { read(source, meta, &facts) }
            case "meta": read(source, atom, &facts)
            default: break
            }
        }
        return hasSound
    }

    private static func isSound(_ source: SoundSource, _ track: Atom) -> Bool {
        for media in atoms(source, track.body, track.end) where media.name == "mdia" {
            for handler in atoms(source, media.body, media.end) where handler.name == "hdlr" {
                return source.starts(handler.body + 8, with: "soun")
            }
        }
        return false
    }

    /// The sizes of the samples of the first audio track with its first bytes, its last bytes, and the number of its
    /// samples; of a fragmented file the bytes of its `mdat` atoms. Nil: there is no audio track.
    static func sound(_ source: SoundSource, part: Int) -> (first: [UInt8], last: [UInt8], count: UInt64)? {
        let all = atoms(source, 0, source.size)
        guard let movie = all.first(where: { $0.name == "moov" }),
            let track = atoms(source, movie.body, movie.end).first(where: { $0.name == "trak" && isSound(source, $0) })
        else { return nil }
        var tables: [String: Atom] = [:]
        for path in ["mdia", "minf", "stbl"].reduce([track], { inner(source, $0, $1) }) {
            for table in atoms(source, path.body, path.end) { tables[table.name] = table }
        }
        if let samples = SampleTable(source, tables) {
            let (first, last) = samples.ends(source, part: part)
            return (samples.sizes(source, part: part) + first, last, samples.count)
        }
        var (first, last): ([UInt8], [UInt8]) = ([], [])
        for data in all where data.name == "mdat" && first.count < part {
            first += source.bytes(data.body, min(data.size, part - first.count))
        }
        for data in all.reversed() where data.name == "mdat" && last.count < part {
            let size = min(data.size, part - last.count)
            last = source.bytes(data.end - UInt64(size), size) + last
        }
        return (first, last, 0)
    }

    private static func inner(_ source: SoundSource, _ outer: [Atom], _ name: String) -> [Atom] {
        outer.flatMap { atoms(source, $0.body, $0.end) }.filter { $0.name == name }
    }

    private static func read(_ source: SoundSource, _ meta: Atom, _ facts: inout SoundFacts) {
        // In QuickTime files this atom has no version and flags.
        let start = source.starts(meta.body + 4, with: "hdlr") ? meta.body : meta.body + 4
        for list in atoms(source, start, meta.end) where list.name == "ilst" {
            for item in atoms(source, list.body, list.end) { read(source, item: item, &facts) }
        }
    }

    private static func read(_ source: SoundSource, item: Atom, _ facts: inout SoundFacts) {
        let parts = atoms(source, item.body, item.end)
        let data = parts.filter { $0.name == "data" && $0.size >= 8 }
        func content(_ atom: Atom) -> ArraySlice<UInt8> { source.bytes(atom.body + 8, atom.size - 8) }
        func text(_ atom: Atom) -> ArraySlice<UInt8> { content(atom).prefix(Int(SoundFacts.longest)) }
        func number(_ atom: Atom) -> UInt64 { content(atom).prefix(8).number }
        switch item.name {
        case "covr": for atom in data { facts.addPicture(isFront: false) { content(atom) } }
        case "trkn", "disk":
            for atom in data {
                let bytes = content(atom)
                let (place, total) = (bytes.bigNumber(2, 2), bytes.bigNumber(4, 2))
                let text = total > 0 ? "\(place)/\(total)" : "\(place)"
                if place > 0 { facts.add(item.name == "trkn" ? "TRACKNUMBER" : "DISCNUMBER", text) }
            }
        case "cpil": for atom in data { facts.add("COMPILATION", number(atom) != 0 ? "1" : "0") }
        case "pcst": for atom in data where number(atom) != 0 { facts.add("PODCAST", "1") }
        case "stik": for atom in data { facts.add("STIK", "\(number(atom))") }
        case "gnre":
            for atom in data { if let name = Genres.name(Int(clamping: number(atom)) - 1) { facts.add("GENRE", name) } }
        case "----":
            guard let atom = parts.first(where: { $0.name == "name" }), atom.size > 4 else { return }
            let name = SoundFacts.name(source.bytes(atom.body + 4, atom.size - 4).utf8Text)
            for atom in data { facts.add(name, text(atom).utf8Text) }
        default:
            guard let name = names[item.name] else { return }
            for atom in data {
                // Type 2 is UTF-16; all others are read as UTF-8.
                let isWide = source.bytes(atom.body + 3, 1).first == 2
                facts.add(name, isWide ? text(atom).utf16Text(isBig: true) : text(atom).utf8Text)
            }
        }
    }

    private static let names = [
        "\u{A9}nam": "TITLE", "\u{A9}ART": "ARTIST", "aART": "ALBUMARTIST", "\u{A9}alb": "ALBUM",
        "\u{A9}wrt": "COMPOSER", "\u{A9}gen": "GENRE", "\u{A9}day": "DATE", "sonm": "TITLESORT", "soar": "ARTISTSORT",
        "soal": "ALBUMSORT", "soaa": "ALBUMARTISTSORT", "soco": "COMPOSERSORT",
    ]
}
