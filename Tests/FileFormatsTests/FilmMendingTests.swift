import FileFormats
import Testing

/// A fragmented film becomes an ordinary one. The index is read by a second reader, which knows ordinary films only.
@Suite struct FilmMendingTests {
    private typealias Boxes = MovieIndexTests

    /// A sample as a film states it. Times are in units of its track.
    struct Sample: Equatable {
        var track: Int
        var place: Int
        var size: Int
        var time: Int
        var offset: Int
        var isKey: Bool
    }

    /// A film with pictures (track 1, 3000 units per second) and sound (track 2, 48000).
    struct Film {
        var bytes: [UInt8]
        var samples: [Sample] = []

        init() {
            func track(_ id: UInt32, _ scale: UInt32, _ kind: String) -> [UInt8] {
                let tables = ["stts", "stsc", "stco"].flatMap { FilmMendingTests.full($0, Boxes.big(UInt32(0))) }
                let description = FilmMendingTests.full(
                    "stsd", Boxes.big(UInt32(1)) + Boxes.box(kind, Boxes.zeros(8)))
                let stbl = Boxes.box(
                    "stbl", description + tables + FilmMendingTests.full("stsz", Boxes.zeros(8)))
                let media = Boxes.box(
                    "mdia",
                    FilmMendingTests.full("mdhd", Boxes.zeros(8) + Boxes.big(scale) + Boxes.zeros(8))
                        + FilmMendingTests.full("hdlr", Boxes.zeros(20)) + Boxes.box("minf", stbl))
                return Boxes.box(
                    "trak", FilmMendingTests.full("tkhd", Boxes.zeros(8) + Boxes.big(id) + Boxes.zeros(68)) + media)
            }
            let extends = Boxes.box(
                "mvex",
                [UInt32(1), 2].flatMap { id in
                    FilmMendingTests.full("trex", [id, 1, 0, 0, 0].flatMap { Boxes.big($0) })
                })
            let header = FilmMendingTests.full("mvhd", Boxes.zeros(8) + Boxes.big(UInt32(1_000)) + Boxes.zeros(84))
            bytes =
                Boxes.box("ftyp", Array("iso5".utf8) + Boxes.zeros(4))
                + Boxes.box("moov", header + track(1, 3_000, "avc1") + track(2, 48_000, "mp4a") + extends)
        }

        /// Adds a fragment with `pictures` pictures and `sounds` buffers of sound.
        mutating func add(at time: (pictures: Int, sound: Int), pictures: Int, sounds: Int) {
            var data: [UInt8] = []
            var found: [Sample] = []
            func run(_ track: Int, _ time: Int, _ count: Int, _ duration: Int) -> (UInt32) -> [UInt8] {
                let begin = data.count
                var rows: [UInt8] = []
                for number in 0..<count {
                    let size = 5 + (number * 7 + track) % 11
                    let isKey = track == 2 || number == 0
                    let offset = track == 1 && number % 3 == 1 ? duration : 0
                    found.append(
                        Sample(
                            track: track, place: data.count, size: size, time: time + number * duration, offset: offset,
                            isKey: isKey))
                    data += [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
                    rows += Boxes.big(UInt32(duration)) + Boxes.big(UInt32(size))
                    rows += Boxes.big(UInt32(isKey ? 0 : 0x1_0000)) + Boxes.big(UInt32(offset))
                }
                return { base in
                    Boxes.box(
                        "traf",
                        FilmMendingTests.full("tfhd", Boxes.big(UInt32(track)), flags: 0x2_0000)
                            + FilmMendingTests.full("tfdt", Boxes.big(UInt32(time)))
                            + FilmMendingTests.full(
                                "trun",
                                Boxes.big(UInt32(count)) + Boxes.big(base + UInt32(begin)) + rows, flags: 0xF01))
                }
            }
            let parts = [run(1, time.pictures, pictures, 100), run(2, time.sound, sounds, 1_024)]
            func header(_ base: UInt32) -> [UInt8] {
                Boxes.box(
                    "moof", FilmMendingTests.full("mfhd", Boxes.big(UInt32(1))) + parts.flatMap { $0(base) })
            }
            let size = header(0).count
            for index in found.indices { found[index].place += bytes.count + size + 8 }
            samples += found
            bytes += header(UInt32(size + 8)) + Boxes.box("mdat", data)
        }

        static func make() -> Film {
            var film = Film()
            film.add(at: (0, 0), pictures: 15, sounds: 23)
            film.add(at: (1_500, 23 * 1_024), pictures: 15, sounds: 24)
            film.add(at: (3_000, 47 * 1_024), pictures: 4, sounds: 6)
            return film
        }
    }

    static func full(_ kind: String, _ content: [UInt8], flags: UInt32 = 0) -> [UInt8] {
        Boxes.box(kind, Boxes.big(flags) + content)
    }

    private static func mending(_ bytes: [UInt8]) throws(FilmMending.Refusal) -> FilmMending {
        try FilmMending(size: bytes.count) { place, count in
            place < bytes.count ? Array(bytes[place..<min(bytes.count, place + count)]) : []
        }
    }

    /// The file after that many steps: the index is one, each header another one.
    private static func apply(_ mending: FilmMending, to bytes: [UInt8], steps: Int = .max) -> [UInt8] {
        guard steps > 0 else { return bytes }
        var film = mending.index.isEmpty ? bytes : Array(bytes[..<mending.end]) + mending.index
        for place in mending.unused.prefix(steps == .max ? .max : steps - 1) {
            film.replaceSubrange(place..<(place + 4), with: FilmMending.unusedType)
        }
        return film
    }

    // MARK: The second reader

    private static func number(_ bytes: ArraySlice<UInt8>, _ place: Int, _ count: Int = 4) -> Int {
        bytes.dropFirst(place).prefix(count).reduce(0) { $0 << 8 | Int($1) }
    }

    private static func boxes(_ bytes: ArraySlice<UInt8>) -> [(kind: String, content: ArraySlice<UInt8>)] {
        var rest = bytes
        var found: [(String, ArraySlice<UInt8>)] = []
        while rest.count >= 8 {
            let length = number(rest, 0)
            guard length >= 8, length <= rest.count else { break }
            let kind = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
            found.append((kind, rest.prefix(length).dropFirst(8)))
            rest = rest.dropFirst(length)
        }
        return found
    }

    private static func inner(_ bytes: ArraySlice<UInt8>, _ path: String...) -> ArraySlice<UInt8> {
        path.reduce(bytes) { bytes, kind in boxes(bytes).first { $0.kind == kind }?.content ?? [] }
    }

    private static func samples(_ film: [UInt8]) -> [Sample] {
        var all: [Sample] = []
        for track in boxes(inner(film[...], "moov")) where track.kind == "trak" {
            let id = number(inner(track.content, "tkhd"), 12)
            let tables = inner(track.content, "mdia", "minf", "stbl")
            let stsz = inner(tables, "stsz")
            let count = number(stsz, 8)
            func expand(_ kind: String) -> [Int] {
                let table = inner(tables, kind)
                return (0..<number(table, 4)).flatMap { row in
                    Array(repeating: number(table, 12 + row * 8), count: number(table, 8 + row * 8))
                }
            }
            let (durations, offsets) = (expand("stts"), expand("ctts"))
            let stss = inner(tables, "stss")
            let keys = Set((0..<number(stss, 4)).map { number(stss, 8 + 4 * $0) })
            let (stsc, co64) = (inner(tables, "stsc"), inner(tables, "co64"))
            var (sample, time) = (0, 0)
            for chunk in 0..<number(co64, 4) {
                let row = (0..<number(stsc, 4)).last { number(stsc, 8 + 12 * $0) <= chunk + 1 } ?? 0
                var place = number(co64, 8 + 8 * chunk, 8)
                for _ in 0..<number(stsc, 12 + 12 * row) {
                    let size = number(stsz, 4) > 0 ? number(stsz, 4) : number(stsz, 12 + 4 * sample)
                    all.append(
                        Sample(
                            track: id, place: place, size: size, time: time,
                            offset: offsets.isEmpty ? 0 : offsets[sample],
                            isKey: stss.isEmpty || keys.contains(sample + 1)))
                    place += size
                    time += durations[sample]
                    sample += 1
                }
            }
            #expect(sample == count && durations.count == count)
        }
        return all
    }

    private static func sorted(_ samples: [Sample]) -> [Sample] { samples.sorted { $0.place < $1.place } }

    // MARK: Tests

    @Test func wholeFragments_becomeAnOrdinaryFilmOfTheSameSamples() throws {
        let film = Film.make()
        let mending = try Self.mending(film.bytes)
        let result = Self.apply(mending, to: film.bytes)
        #expect(mending.lost == 0 && mending.end == film.bytes.count)
        // The last picture is presented after 34 of 100 units; one unit of 3000 is less than a thousandth of a second.
        #expect(abs(mending.seconds - 3_400.0 / 3_000) < 0.002)
        #expect(Self.samples(result) == film.samples.filter { $0.track == 1 } + film.samples.filter { $0.track == 2 })
        #expect(throws: FilmMending.Refusal.ordinary) { try Self.mending(result) }
        let index = try #require(
            MovieIndex(size: result.count) { Array(result.dropFirst($0).prefix($1)) })
        #expect(!index.isFragmented && index.seconds.map { abs($0 - mending.seconds) < 0.001 } == true)
    }

    @Test func cutAtEachByte_keepsAllWholeFragments() throws {
        let film = Film.make()
        var kept: Set<Int> = []
        for size in 0..<film.bytes.count {
            let cut = Array(film.bytes[..<size])
            guard let mending = try? Self.mending(cut) else { continue }
            let result = Self.samples(Self.apply(mending, to: cut))
            #expect(Self.sorted(result) == Self.sorted(film.samples.filter { $0.place + $0.size <= mending.end }))
            #expect(mending.end + mending.lost == size)
            kept.insert(result.count)
        }
        #expect(kept == [38, 77])
    }

    @Test func aRepairThatIsKilledAfterAnyStep_isFinishedByTheNextOne() throws {
        let film = Film.make()
        let mending = try Self.mending(film.bytes)
        let whole = Self.apply(mending, to: film.bytes)
        for steps in 0...mending.unused.count {
            let half = Self.apply(mending, to: film.bytes, steps: steps)
            #expect(Self.apply(try Self.mending(half), to: half) == whole, "after \(steps) steps")
        }
        // Half of the index was written.
        let half = film.bytes + mending.index.prefix(mending.index.count / 2)
        #expect(Self.apply(try Self.mending(half), to: half) == whole)
    }

    @Test func aGapBetweenFragments_lengthensTheSampleBefore() throws {
        var film = Film()
        film.add(at: (0, 0), pictures: 3, sounds: 3)
        film.add(at: (900, 9 * 1_024), pictures: 3, sounds: 3)
        let times = Self.samples(Self.apply(try Self.mending(film.bytes), to: film.bytes)).map(\.time)
        #expect(times == [0, 100, 200, 900, 1_000, 1_100] + [0, 1, 2, 9, 10, 11].map { $0 * 1_024 })
    }

    @Test func soundThatBeginsLater_getsAnEmptyEdit() throws {
        var film = Film()
        film.add(at: (300, 0), pictures: 3, sounds: 30)
        let result = Self.apply(try Self.mending(film.bytes), to: film.bytes)
        let tracks = Self.boxes(Self.inner(result[...], "moov")).filter { $0.kind == "trak" }
        let edits = tracks.map { Self.inner($0.content, "edts", "elst") }
        // 300 of 3000 units are 100 thousandths of a second without a picture.
        #expect(Self.number(edits[0], 4) == 2 && Self.number(edits[0], 8, 8) == 100)
        #expect(Self.number(edits[0], 16, 8) == -1)
        #expect(edits[1].isEmpty)
    }

    private func refusal(of bytes: [UInt8]) -> String {
        do throws(FilmMending.Refusal) {
            _ = try Self.mending(bytes)
            return "mended"
        } catch .unknown(let text) {
            return text
        } catch {
            return "\(error)"
        }
    }

    /// The places of the boxes of a type.
    private func places(of kind: String, in bytes: [UInt8]) -> [Int] {
        bytes.indices.dropLast(4).filter { bytes[($0 + 4)..<min(bytes.count, $0 + 8)].elementsEqual(kind.utf8) }
    }

    @Test func damageBeforeTheEnd_isRefusedBecauseGoodFragmentsFollow() {
        let film = Film.make().bytes
        let (headers, data) = (places(of: "moof", in: film), places(of: "mdat", in: film))
        #expect(headers.count == 3 && data.count == 3)
        // The type of the second header, the type of its data, the length of its data, the length of its header.
        for place in [headers[1] + 4, data[1] + 4, data[1], headers[1]] {
            var broken = film
            broken[place] = 0x7F
            #expect(!["mended", "empty"].contains(refusal(of: broken)), "byte \(place)")
        }
        // A length of 0 in the middle.
        var zero = film
        zero.replaceSubrange(data[1]..<(data[1] + 4), with: [0, 0, 0, 0])
        #expect(refusal(of: zero) == "it is damaged at byte \(data[1]), before its end")
        // A sample that is longer than the data.
        var long = film
        let run = places(of: "trun", in: film)[2]
        long[run + 8 + 4 + 4 + 4 + 4] = 1
        #expect(refusal(of: long) == "the fragment at byte \(headers[1]) is damaged")
        // A fragment whose data were taken out.
        #expect(
            refusal(of: Array(film[..<data[1]] + film[headers[2]...]))
                == "the data of the fragment before byte \(data[1]) is missing")
    }

    @Test func eachByteOfTheMiddle_setToZeroNeverShortensTheFilm() {
        let film = Film.make().bytes
        let headers = places(of: "moof", in: film)
        for place in headers[1]..<headers[2] {
            var broken = film
            broken[place] = 0
            guard let mending = try? Self.mending(broken) else { continue }
            #expect(mending.lost == 0 && mending.end == film.count, "byte \(place)")
        }
    }

    @Test func twoFilmsInOneFile_areRefused() throws {
        let film = Film.make().bytes
        #expect(refusal(of: film + film) == "it is two films in one file")
        let header = places(of: "moov", in: film)[0]
        #expect(refusal(of: film + film[header...]) == "it has two headers, like two films in one file")
        let whole = Self.apply(try Self.mending(film), to: film)
        #expect(refusal(of: film + whole) == "it is two films in one file")
        let index = places(of: "moov", in: whole).last ?? 0
        var other = whole
        other[whole.count - 1] ^= 1
        #expect(refusal(of: film + other[index...]).contains("two indices that differ"))
    }

    @Test func wholeBoxesAtTheEnd_areKept() throws {
        let film = Film.make()
        let note = Boxes.box("uuid", Array("sixteen bytes id".utf8) + [1, 2, 3])
        let table = Boxes.box("mfra", Self.full("tfra", Boxes.zeros(12)))
        let mending = try Self.mending(film.bytes + note + table)
        let result = Self.apply(mending, to: film.bytes + note + table)
        #expect(mending.lost == 0 && mending.end == film.bytes.count + note.count + table.count)
        #expect(result[film.bytes.count...].starts(with: note))
        #expect(places(of: "mfra", in: result).isEmpty)
        #expect(Self.sorted(Self.samples(result)) == Self.sorted(film.samples))
        // What was not whole is cut off behind them.
        #expect(try Self.mending(film.bytes + note + table.prefix(9)).end == film.bytes.count + note.count)
    }

    @Test func zerosThatAFileEndsIn_areCutOff() throws {
        // After a power failure, the length of a file may be on the disk, and its last bytes not.
        let film = Film.make()
        let mending = try Self.mending(film.bytes + Boxes.zeros(5_000))
        #expect(mending.end == film.bytes.count && mending.lost == 5_000)
        #expect(refusal(of: film.bytes + Boxes.zeros(5_000) + [1]).contains("damaged at byte"))
    }

    @Test func ordinaryFilmThatWasCut_isNotCalledComplete() throws {
        let bytes = Self.apply(try Self.mending(Film.make().bytes), to: Film.make().bytes)
        let index = places(of: "moov", in: bytes).last ?? 0
        let fast = Array(bytes[..<16]) + Array(bytes[index...]) + Boxes.box("mdat", Boxes.zeros(100))
        #expect(throws: FilmMending.Refusal.ordinary) { try Self.mending(fast) }
        #expect(refusal(of: fast.dropLast(50)).contains("whose end is missing"))
    }

    @Test func filmsThatCannotBeMended_areRefusedWithTheReason() {
        #expect(throws: FilmMending.Refusal.otherFormat) { try Self.mending(Array("RIFF....WAVE....".utf8)) }
        #expect(throws: FilmMending.Refusal.otherFormat) { try Self.mending([]) }
        #expect(throws: FilmMending.Refusal.empty) { try Self.mending(Film().bytes) }
        var film = Film.make()
        film.bytes.replaceSubrange(0..<8, with: Boxes.big(UInt32(16)) + Array("styp".utf8))
        #expect(throws: FilmMending.Refusal.otherFormat) { try Self.mending(film.bytes) }
    }
}
