/// The tables of MP4 that say where the samples of a track are.
struct SampleTable {
    let count: UInt64
    /// The size of all samples; 0: `sizes` has the size of each.
    private let size: UInt64
    private let sizes: MP4File.Atom
    /// The table of the chunks' places, and the size of its entries in bytes.
    private let places: MP4File.Atom
    private let width: Int
    private let chunks: UInt64
    /// From which chunk on each chunk has how many samples.
    private let runs: [(first: UInt64, count: UInt64)]

    /// - Returns: nil: a table is missing, or there is no sample.
    init?(_ source: SoundSource, _ tables: [String: MP4File.Atom]) {
        guard let sizes = tables["stsz"], let places = tables["stco"] ?? tables["co64"], let runs = tables["stsc"]
        else { return nil }
        (self.sizes, self.places, width) = (sizes, places, tables["stco"] == nil ? 8 : 4)
        let head = source.bytes(sizes.body, 12)
        (size, count) = (head.bigNumber(4, 4), head.bigNumber(8, 4))
        chunks = source.bytes(places.body, 8).bigNumber(4, 4)
        let number = min(Int(source.bytes(runs.body, 8).bigNumber(4, 4)), max(0, runs.size - 8) / 12)
        let table = source.bytes(runs.body + 8, number * 12)
        self.runs = (0..<(table.count / 12)).map {
            (table.bigNumber($0 * 12, 4), table.bigNumber($0 * 12 + 4, 4))
        }
        if count == 0 || chunks == 0 || self.runs.isEmpty { return nil }
    }

    func sizes(_ source: SoundSource, part: Int) -> [UInt8] {
        size > 0 ? [] : Array(source.bytes(sizes.body + 12, min(part, max(0, sizes.size - 12))))
    }

    /// The place and the size in bytes of each chunk, in this order, until `body` returns false.
    private func eachChunk(_ source: SoundSource, _ body: (_ place: UInt64, _ size: UInt64) -> Bool) {
        var (run, sample): (Int, UInt64) = (0, 0)
        for chunk in 1...min(chunks, 1 << 20) {
            while run + 1 < runs.count, runs[run + 1].first <= chunk { run += 1 }
            let samples = min(runs[run].count, count - sample)
            let table = source.bytes(places.body + 8 + (chunk - 1) * UInt64(width), width)
            guard samples > 0, table.count == width else { return }
            var length = samples.multipliedReportingOverflow(by: size).partialValue
            if size == 0 {
                let own = source.bytes(sizes.body + 12 + sample * 4, Int(clamping: samples * 4))
                for index in 0..<(own.count / 4) { length += own.bigNumber(index * 4, 4) }
            }
            sample += samples
            guard body(table.number, length) else { return }
        }
    }

    /// The first bytes of the first samples. If all samples have the same size, also the last bytes of the last ones.
    func ends(_ source: SoundSource, part: Int) -> (first: [UInt8], last: [UInt8]) {
        var first: [UInt8] = []
        var all: [(place: UInt64, size: UInt64)] = []
        eachChunk(source) { place, length in
            if first.count < part { first += source.bytes(place, Int(min(length, UInt64(part - first.count)))) }
            if size > 0 { all.append((place, length)) }
            return first.count < part || size > 0
        }
        var last: [UInt8] = []
        for chunk in all.reversed() where last.count < part {
            let length = min(chunk.size, UInt64(part - last.count))
            last = source.bytes(chunk.place &+ chunk.size - length, Int(length)) + last
        }
        return (first, last)
    }
}
