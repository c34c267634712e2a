// The index of an ordinary film, from the samples of the fragments.
extension FilmMending {
    /// The index of all samples, and the length of the film in seconds.
    func makeIndex(_ movie: ArraySlice<UInt8>, _ soundDelay: Int) -> (index: [UInt8], seconds: Double) {
        var timescale = 0
        MovieIndex.each(movie) { kind, content in
            if kind == "mvhd" { timescale = MovieIndex.number(content, content.first == 1 ? 20 : 12, 4) }
        }
        let scale = timescale > 0 ? timescale : 1_000
        let used = order.filter { tracks[$0].map { $0.samples.count > 0 } ?? false }
        var shifts: [Int: Double] = [:]
        for id in used {
            guard let track = tracks[id] else { continue }
            let delay = Self.isSound(track.header) ? Double(soundDelay) / Double(track.timescale) : 0
            shifts[id] = Self.shift(track.header, track.samples, track.timescale, scale) - delay
        }
        // What begins first begins at 0.
        let earliest = max(0, shifts.values.min() ?? 0)
        var longest = 0
        var boxes: [UInt8] = []
        var rewritten: [Int: [UInt8]] = [:]
        for id in used {
            guard let track = tracks[id] else { continue }
            let shift = (shifts[id] ?? 0) - earliest
            let length = Self.units(
                Double(track.samples.presentationEnd) / Double(track.timescale) + min(0, shift), scale)
            let whole = length + Self.units(max(0, shift), scale)
            longest = max(longest, whole)
            rewritten[id] = Self.trackBox(track.header, track.samples, length, whole, shift, track.timescale, scale)
        }
        MovieIndex.each(movie) { kind, content in
            switch kind {
            case "mvhd": boxes += Self.box(kind, Self.setting(content, duration: longest, after: 4))
            case "trak":
                var id = 0
                MovieIndex.each(content) { kind, content in
                    if kind == "tkhd" { id = MovieIndex.number(content, content.first == 1 ? 20 : 12, 4) }
                }
                boxes += rewritten[id] ?? []
            case "mvex": break
            default: boxes += Self.box(kind, Array(content))
            }
        }
        return (Self.box("moov", boxes), Double(longest) / Double(scale))
    }

    private static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] { FilmBox.box(kind, content) }

    private static func units(_ seconds: Double, _ scale: Int) -> Int {
        Int(min(max(0, seconds * Double(scale)), 1e15).rounded())
    }

    /// When the first sample of a track is presented, in seconds; negative: the track's start is cut off.
    private static func shift(
        _ track: ArraySlice<UInt8>, _ samples: FilmSamples, _ timescale: Int, _ scale: Int
    ) -> Double {
        var (empty, media) = (0, 0)
        MovieIndex.each(track) { kind, content in
            MovieIndex.each(kind == "edts" ? content : content.prefix(0)) { kind, content in
                guard kind == "elst" else { return }
                let size = content.first == 1 ? 8 : 4
                let count = min(MovieIndex.number(content, 4, 4), (content.count - 8) / (2 * size + 4))
                for entry in 0..<max(0, count) {
                    let field = 8 + entry * (2 * size + 4)
                    let time = MovieIndex.number(content, field + size, size)
                    guard time == (size == 8 ? Int.max : Int(UInt32.max)) else {
                        media = time
                        return
                    }
                    empty &+= MovieIndex.number(content, field, size)
                }
            }
        }
        return Double(empty) / Double(scale) + Double((samples.start ?? 0) - media) / Double(timescale)
    }

    private static func isSound(_ track: ArraySlice<UInt8>) -> Bool {
        var isSound = false
        MovieIndex.each(track) { kind, content in
            MovieIndex.each(kind == "mdia" ? content : content.prefix(0)) { kind, content in
                if kind == "hdlr", content.dropFirst(8).prefix(4).elementsEqual("soun".utf8) { isSound = true }
            }
        }
        return isSound
    }

    private static func trackBox(
        _ track: ArraySlice<UInt8>, _ samples: FilmSamples, _ length: Int, _ whole: Int, _ shift: Double,
        _ timescale: Int, _ scale: Int
    ) -> [UInt8] {
        let empty = units(max(0, shift), scale)
        let media = units(max(0, -shift), timescale)
        var edits: [UInt8] = []
        if empty > 0 || media > 0 {
            let parts = (empty > 0 ? [(empty, -1)] : []) + [(length, media)]
            let entries = parts.flatMap {
                FilmBox.big($0.0, 8) + FilmBox.big($0.1, 8) + FilmBox.big(1 << 16, 4)
            }
            edits = box("edts", FilmBox.full("elst", FilmBox.big(parts.count, 4) + entries, version: 1))
        }
        var boxes: [UInt8] = []
        MovieIndex.each(track) { kind, content in
            switch kind {
            case "tkhd": boxes += box(kind, setting(content, duration: whole, after: 8)) + edits
            case "edts": break
            case "mdia": boxes += box(kind, mediaContent(content, samples))
            default: boxes += box(kind, Array(content))
            }
        }
        return box("trak", boxes)
    }

    private static func mediaContent(_ media: ArraySlice<UInt8>, _ samples: FilmSamples) -> [UInt8] {
        var boxes: [UInt8] = []
        MovieIndex.each(media) { kind, content in
            switch kind {
            case "mdhd": boxes += box(kind, setting(content, duration: samples.length, after: 4))
            case "minf":
                var inner: [UInt8] = []
                MovieIndex.each(content) { kind, content in
                    guard kind == "stbl" else {
                        inner += box(kind, Array(content))
                        return
                    }
                    var tables: [UInt8] = []
                    MovieIndex.each(content) { kind, content in
                        if kind == "stsd" || kind == "sgpd" { tables += box(kind, Array(content)) }
                    }
                    inner += box(kind, tables + samples.tables)
                }
                boxes += box(kind, inner)
            default: boxes += box(kind, Array(content))
            }
        }
        return boxes
    }

    /// A header with another duration. A duration that does not fit makes the times of the header wide.
    /// - Parameter after: the bytes between the two dates and the duration.
    private static func setting(_ header: ArraySlice<UInt8>, duration: Int, after: Int) -> [UInt8] {
        let bytes = Array(header)
        let isWide = bytes.first == 1
        let date = isWide ? 8 : 4
        let middle = 4 + 2 * date
        guard bytes.count >= middle + after + date else { return bytes }
        let rest = bytes[(middle + after + date)...]
        if isWide || duration <= Int(UInt32.max) {
            return bytes[..<(middle + after)] + FilmBox.big(duration, date) + rest
        }
        let dates = [bytes[4..<8], bytes[8..<12]].flatMap { [0, 0, 0, 0] + $0 }
        return [1] + bytes[1..<4] + dates + bytes[middle..<(middle + after)] + FilmBox.big(duration, 8) + rest
    }
}
