// The headers of the fragments.
extension FilmMending {
    /// False if a sample of the fragment is not in the file.
    mutating func readFragment(
        _ fragment: ArraySlice<UInt8>, at origin: Int, end: Int
    ) throws(Refusal) -> Bool {
        var next = origin
        var isWhole = true
        var problem: Refusal?
        MovieIndex.each(fragment) { kind, content in
            guard kind == "traf", isWhole, problem == nil else { return }
            do throws(Refusal) {
                isWhole = try readTrack(content, origin, &next, end)
            } catch {
                problem = error
            }
        }
        if let problem { throw problem }
        return isWhole
    }

    private mutating func readTrack(
        _ fragment: ArraySlice<UInt8>, _ origin: Int, _ next: inout Int, _ end: Int
    ) throws(Refusal) -> Bool {
        var track: Track?
        var id = 0
        var base = next
        var values = FilmSamples.Defaults()
        var isWhole = true
        var problem: Refusal?
        var place = next
        var added = sampleCount
        MovieIndex.each(fragment) { kind, content in
            let flags = MovieIndex.number(content, 1, 3)
            switch kind {
            case "tfhd":
                // The samples must have one reference, or each run of them would copy all that came before.
                if let track { tracks[id] = track }
                id = MovieIndex.number(content, 4, 4)
                track = tracks.removeValue(forKey: id)
                values = track?.defaults ?? values
                var field = 8
                func take(_ flag: Int, _ count: Int) -> Int? {
                    guard flags & flag != 0 else { return nil }
                    defer { field += count }
                    return MovieIndex.number(content, field, count)
                }
                if flags & 0x2_0000 != 0 { base = origin }
                if let stated = take(0x1, 8) { base = stated }
                values.description = take(0x2, 4) ?? values.description
                values.duration = take(0x8, 4) ?? values.duration
                values.size = take(0x10, 4) ?? values.size
                values.flags = take(0x20, 4) ?? values.flags
                place = base
            case "tfdt": track?.samples.continue(at: MovieIndex.number(content, 4, content.first == 1 ? 8 : 4))
            case "trun":
                guard problem == nil, isWhole, var samples = track?.samples else { return }
                track?.samples = FilmSamples()
                defer { track?.samples = samples }
                let count = MovieIndex.number(content, 4, 4)
                var field = 8
                if flags & 0x1 != 0 {
                    let offset = Int(Int32(truncatingIfNeeded: MovieIndex.number(content, field, 4)))
                    place = base &+ offset
                    field += 4
                }
                var first: Int?
                if flags & 0x4 != 0 {
                    first = MovieIndex.number(content, field, 4)
                    field += 4
                }
                let width = 4 * (flags >> 8 & 0xF).nonzeroBitCount
                // A sample has at least one byte, so a claim of more samples than bytes is wrong.
                guard count <= end, field + count * width <= content.count, place >= 0, place <= end else {
                    isWhole = false
                    return
                }
                added += count
                guard added <= FilmMending.sampleLimit else {
                    problem = .unknown("it has too many samples")
                    return
                }
                if count > 0 {
                    samples.begin(.init(place: place, count: count, description: max(1, values.description)))
                }
                for number in 0..<count {
                    func take(_ flag: Int) -> Int? {
                        guard flags & flag != 0 else { return nil }
                        defer { field += 4 }
                        return MovieIndex.number(content, field, 4)
                    }
                    let duration = take(0x100) ?? values.duration
                    let size = take(0x200) ?? values.size
                    let stated = take(0x400)
                    let offset = Int(Int32(truncatingIfNeeded: take(0x800) ?? 0))
                    let kind = stated ?? (number == 0 ? first : nil) ?? values.flags
                    samples.append(duration: duration, size: size, offset: offset, isKey: kind & 0x1_0000 == 0)
                    place += size
                    guard size > 0, place <= end else {
                        isWhole = false
                        return
                    }
                }
            // Encryption, whose tables would be lost.
            case "senc", "saiz", "saio": problem = .unknown("it is encrypted")
            default: break
            }
        }
        if let track { tracks[id] = track }
        if let problem { throw problem }
        sampleCount = added
        next = place
        return isWhole
    }
}
