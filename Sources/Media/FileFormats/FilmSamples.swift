/// The samples of one track of a fragmented film: their times, sizes and places, as the headers of the fragments state them.
struct FilmSamples {
    /// Samples that are next to each other in the file.
    struct Chunk: Equatable {
        var place: Int
        var count: Int
        /// The number of the sample description, from 1.
        var description: Int
    }

    /// What the film's header states about samples that do not state it themselves.
    struct Defaults {
        var description = 1
        var duration = 0
        var size = 0
        var flags = 0
    }

    /// The decoding time of the first sample, in units of the track.
    private(set) var start: Int?
    /// The decoding time after the last sample, in units of the track.
    private(set) var end = 0
    private(set) var durations: [UInt32] = []
    private(set) var sizes: [UInt32] = []
    /// The presentation time minus the decoding time of each sample.
    private(set) var offsets: [Int32] = []
    /// The numbers of the samples, from 1, at which decoding can begin.
    private(set) var keys: [UInt32] = []
    private(set) var chunks: [Chunk] = []

    /// Later times are not believed; sums of times stay far below the largest number.
    private static let latest = 1 << 56

    var count: Int { durations.count }
    /// The sum of ``durations``.
    var length: Int { end - (start ?? 0) }

    /// The samples continue at that decoding time: what a gap or an overlap changes is the duration of the last sample.
    mutating func `continue`(at stated: Int) {
        let time = min(stated, FilmSamples.latest)
        guard start != nil, let last = durations.last else {
            start = time
            end = time
            return
        }
        let wanted = min(max(0, Int(last) + time - end), Int(UInt32.max))
        end += wanted - Int(last)
        durations[durations.count - 1] = UInt32(wanted)
    }

    /// When the last picture has been presented, in units of the track after the decoding time of the first sample. Pictures
    /// that are decoded before earlier ones are presented later than that time says.
    var presentationEnd: Int {
        var (time, latest) = (0, 0)
        for (duration, offset) in zip(durations, offsets) {
            latest = max(latest, time + Int(offset) + Int(duration))
            time += Int(duration)
        }
        return latest
    }

    mutating func begin(_ chunk: Chunk) { chunks.append(chunk) }

    mutating func append(duration: Int, size: Int, offset: Int, isKey: Bool) {
        if start == nil { start = 0 }
        durations.append(UInt32(truncatingIfNeeded: duration))
        sizes.append(UInt32(truncatingIfNeeded: size))
        offsets.append(Int32(truncatingIfNeeded: offset))
        end += Int(durations[durations.count - 1])
        if isKey { keys.append(UInt32(durations.count)) }
    }

    // MARK: Tables

    /// The tables of an ordinary film, without the descriptions of the samples.
    var tables: [UInt8] {
        var tables = times
        if offsets.contains(where: { $0 != 0 }) { tables += presentation }
        if keys.count < count {
            tables += FilmBox.full("stss", FilmBox.big(keys.count, 4) + keys.flatMap { FilmBox.big(Int($0), 4) })
        }
        let size = sizes.first ?? 0
        let isConstant = sizes.allSatisfy { $0 == size } && size > 0
        tables += FilmBox.full(
            "stsz",
            FilmBox.big(isConstant ? Int(size) : 0, 4) + FilmBox.big(count, 4)
                + (isConstant ? [] : sizes.flatMap { FilmBox.big(Int($0), 4) }))
        return tables + places
    }

    private var times: [UInt8] {
        let runs = FilmSamples.runs(durations)
        return FilmBox.full(
            "stts",
            FilmBox.big(runs.count, 4) + runs.flatMap { FilmBox.big($0.count, 4) + FilmBox.big(Int($0.value), 4) })
    }

    private var presentation: [UInt8] {
        let runs = FilmSamples.runs(offsets)
        return FilmBox.full(
            "ctts",
            FilmBox.big(runs.count, 4)
                + runs.flatMap { FilmBox.big($0.count, 4) + FilmBox.big(Int(UInt32(bitPattern: $0.value)), 4) },
            version: offsets.contains { $0 < 0 } ? 1 : 0)
    }

    private var places: [UInt8] {
        var runs: [UInt8] = []
        var number = 0
        var before: Chunk?
        for (index, chunk) in chunks.enumerated() {
            defer { before = chunk }
            if let before, before.count == chunk.count, before.description == chunk.description { continue }
            number += 1
            runs += FilmBox.big(index + 1, 4) + FilmBox.big(chunk.count, 4) + FilmBox.big(chunk.description, 4)
        }
        return FilmBox.full("stsc", FilmBox.big(number, 4) + runs)
            + FilmBox.full("co64", FilmBox.big(chunks.count, 4) + chunks.flatMap { FilmBox.big($0.place, 8) })
    }

    private static func runs<Value: Equatable>(_ values: [Value]) -> [(count: Int, value: Value)] {
        var runs: [(count: Int, value: Value)] = []
        for value in values {
            if runs.last?.value == value { runs[runs.count - 1].count += 1 } else { runs.append((1, value)) }
        }
        return runs
    }
}

/// Bytes of new boxes of an MP4 file.
enum FilmBox {
    static func big(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }

    static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count + 8, 4) + Array(kind.utf8) + content
    }

    static func full(_ kind: String, _ content: [UInt8], version: UInt8 = 0) -> [UInt8] {
        box(kind, [version, 0, 0, 0] + content)
    }
}
