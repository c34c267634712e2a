import TagFormats
import Testing

/// Tags that programs of others do not write any more, as bytes.
@Suite struct TagFormatTests {
    private func tag(_ version: UInt8, _ frames: [UInt8], flags: UInt8 = 0) -> [UInt8] {
        let size = frames.count
        return Array("ID3".utf8) + [version, 0, flags] + [21, 14, 7, 0].map { UInt8(size >> $0 & 0x7F) } + frames
            // Two frames of MPEG 1, layer III, 128 kbit/s.
            + ([0xFF, 0xFB, 0x90, 0x64] + [UInt8](repeating: 0, count: 413)) + [0xFF, 0xFB, 0x90, 0x64]
            + [UInt8](repeating: 0, count: 413)
    }

    @Test func oldFrames_areRead() throws {
        let frames: [UInt8] =
            Array("TT2".utf8) + [0, 0, 5, 0] + Array("Song".utf8) + Array("TP1".utf8) + [0, 0, 4, 0] + Array("Who".utf8)
        let facts = try #require(SoundFile.read(SoundSource(tag(2, frames))))
        #expect(facts.tags == ["TITLE": ["Song"], "ARTIST": ["Who"]])
    }

    /// iTunes 12 writes them so.
    @Test func namesOfThreeLettersAndAZero_areThoseOfVersion2() throws {
        func frame(_ name: String, _ text: String) -> [UInt8] {
            let content = [0] + Array(text.utf8)
            return Array(name.utf8) + [0, 0, 0, 0, UInt8(content.count), 0, 0] + content
        }
        let frames = frame("TT2", "Three Letters") + frame("TP1", "Tacocat")
        let facts = try #require(SoundFile.read(SoundSource(tag(3, frames))))
        #expect(facts.first("TITLE") == "Three Letters")
        #expect(facts.first("ARTIST") == "Tacocat")
    }

    @Test func unsynchronisedTag_isReadWithoutTheZeros() throws {
        let frames: [UInt8] = Array("TIT2".utf8) + [0, 0, 0, 4, 0, 0, 0, 0xFF, 0x00, 0xFE, UInt8(ascii: "x")]
        let facts = try #require(SoundFile.read(SoundSource(tag(3, frames, flags: 0x80))))
        #expect(facts.first("TITLE") == "ÿþx")
    }

    @Test func plainSizesOfITunes_areUnderstood() throws {
        let long = [UInt8](repeating: UInt8(ascii: "y"), count: 199)
        let frames: [UInt8] =
            Array("TIT2".utf8) + [0, 0, 0, 200, 0, 0, 3] + long + Array("TALB".utf8) + [
                0, 0, 0, 2, 0, 0, 3, UInt8(ascii: "A"),
            ]
        let facts = try #require(SoundFile.read(SoundSource(tag(4, frames))))
        #expect(facts.first("TITLE")?.utf8.count == 199)
        #expect(facts.first("ALBUM") == "A")
    }

    @Test(arguments: [
        ("(17)", ["Rock"]), ("17", ["Rock"]), ("(17)(18)", ["Rock", "Techno"]), ("(17)Rock", ["Rock"]),
        ("(17)My rock", ["Rock", "My rock"]), ("((x)", ["(x)"]), ("(RX)", ["Remix"]), ("Jazz", ["Jazz"]),
        ("(?)", ["(?)"]),
    ]) func genre_hasItsName(_ text: String, _ names: [String]) throws {
        let frames: [UInt8] = Array("TCON".utf8) + [0, 0, 0, UInt8(text.utf8.count + 1), 0, 0, 0] + Array(text.utf8)
        let facts = try #require(SoundFile.read(SoundSource(tag(3, frames))))
        #expect(facts.tags["GENRE"] == names)
    }

    @Test func blockWithATooSmallSize_isReadAsWhatItIs() throws {
        func little(_ number: Int) -> [UInt8] { [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: number >> $0) } }
        func big(_ number: Int, _ count: Int) -> [UInt8] { little(number).prefix(count).reversed() }
        var comments = little(1) + Array("x".utf8) + little(2)
        for text in ["TITLE=Song", "ARTIST=Who"] { comments += little(text.utf8.count) + Array(text.utf8) }
        let picture =
            big(3, 4) + big(3, 4) + Array("x/y".utf8) + big(0, 4) + [UInt8](repeating: 0, count: 16) + big(500, 4)
        var bytes = Array("fLaC".utf8) + [0] + big(34, 3) + [UInt8](repeating: 0, count: 34)
        bytes += [4] + big(20, 3) + comments
        bytes += [6] + big(40, 3) + picture + [UInt8](repeating: 0xAB, count: 500)
        bytes += [0x84] + big(comments.count, 3) + comments.map { $0 == UInt8(ascii: "n") ? UInt8(ascii: "m") : $0 }
        let facts = try #require(SoundFile.read(SoundSource(bytes), wantsPicture: true))
        #expect(facts.tags == ["TITLE": ["Song", "Somg"], "ARTIST": ["Who"]])
        #expect(facts.picture == [UInt8](repeating: 0xAB, count: 500))
    }

    @Test func oldestTag_isRead() throws {
        func field(_ text: String, _ size: Int) -> [UInt8] {
            Array(text.utf8) + [UInt8](repeating: 0, count: size - text.utf8.count)
        }
        var bytes = tag(4, [])
        bytes +=
            Array("TAG".utf8) + field("Song", 30) + field("Who", 30) + field("Album", 30) + field("1999", 4)
            + field("note", 29)
        bytes += [7, 17]
        let facts = try #require(SoundFile.read(SoundSource(bytes)))
        #expect(
            facts.tags == [
                "TITLE": ["Song"], "ARTIST": ["Who"], "ALBUM": ["Album"], "DATE": ["1999"], "TRACKNUMBER": ["7"],
                "GENRE": ["Rock"],
            ])
    }

    private func frame(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let size = content.count
        return Array(name.utf8) + [24, 16, 8, 0].map { UInt8(size >> $0 & 0xFF) } + [0, 0] + content
    }

    @Test func dateOfTheRelease_isTheDateIfThereIsNoOther() throws {
        let release = frame("TDRL", [3] + Array("2001-02".utf8))
        #expect(try #require(SoundFile.read(SoundSource(tag(4, release)))).first("DATE") == "2001-02")
        let both = release + frame("TDRC", [3] + Array("1999".utf8))
        let facts = try #require(SoundFile.read(SoundSource(tag(4, both))))
        #expect(facts.tags == ["DATE": ["1999"], "RELEASEDATE": ["2001-02"]])
    }

    @Test func longText_isCutAndNotLost() throws {
        let text = "x" + String(repeating: "é", count: 4_000)
        let facts = try #require(SoundFile.read(SoundSource(tag(3, frame("TIT2", [3] + Array(text.utf8))))))
        let title = try #require(facts.first("TITLE"))
        #expect((4_090...4_096).contains(title.utf8.count))
        #expect(text.hasPrefix(title))
    }

    @Test func textWithoutAnEncoding_isReadAsTheCallerSays() throws {
        let bytes: [UInt8] = [0xCF, 0xE5, 0xF1, 0xED, 0xFF]
        func title(_ oldText: ((ArraySlice<UInt8>) -> String?)?) -> String? {
            SoundFile.read(SoundSource(tag(3, frame("TIT2", [0] + bytes)), oldText: oldText))?.first("TITLE")
        }
        #expect(title(nil) == "Ïåñíÿ")
        #expect(title { $0.elementsEqual(bytes) ? "Песня" : nil } == "Песня")
        #expect(title { _ in nil } == "Ïåñíÿ")
        // Texts that state their encoding are not concerned.
        let stated = tag(3, frame("TIT2", [1, 0xFF, 0xFE, 0xE9, 0]))
        #expect(SoundFile.read(SoundSource(stated, oldText: { _ in "wrong" }))?.first("TITLE") == "é")
    }

    private func little(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(number >> (8 * $0) & 0xFF) }
    }

    /// Versions before 3.98 do not state the samples of a frame. The expected lengths are those of mutagen.
    @Test(arguments: [(3_970, 2_000, 294_912), (3_930, 2_000, 73_728), (3_820, 4_000, 73_728), (3_700, 2_000, 9_216)])
    func oldMonkeysAudio_hasItsLength(_ version: Int, _ level: Int, _ blocks: Int) throws {
        let header =
            Array("MAC ".utf8) + little(version, 2) + little(level, 2) + little(0, 2) + little(2, 2)
            + little(44_100, 4) + little(0, 8) + little(3, 4) + little(100, 4)
        let facts = try #require(SoundFile.read(SoundSource(header + [UInt8](repeating: 1, count: 64))))
        #expect(abs(facts.duration - Double(2 * blocks + 100) / 44_100) < 1e-9)
    }

    @Test func wavPackFromAPipe_hasTheLengthOfItsLastBlock() throws {
        func block(_ first: Int, total: Int) -> [UInt8] {
            Array("wvpk".utf8) + little(56, 4) + little(0x0407, 2) + [0, 0] + little(total, 4) + little(first, 4)
                + little(22_050, 4) + little(9 << 23, 4) + little(0, 4) + [UInt8](repeating: 7, count: 32)
        }
        let bytes = block(0, total: 0xFFFF_FFFF) + block(22_050, total: 0) + block(44_100, total: 0)
        let facts = try #require(SoundFile.read(SoundSource(bytes)))
        #expect(facts.duration == 1.5)
    }

    @Test func dsdiff_isRead() throws {
        func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
            Array(name.utf8) + little(content.count, 8).reversed() + content + (content.count % 2 == 1 ? [0] : [])
        }
        let song = tag(4, frame("TIT2", [3] + Array("Song".utf8)))
        let content =
            Array("DSD ".utf8) + chunk("FVER", [1, 5, 0, 0])
            + chunk(
                "PROP",
                Array("SND ".utf8) + chunk("FS  ", little(2_822_400, 4).reversed()) + chunk("CHNL", [0, 2, 0, 0]))
            + chunk("DSD ", [UInt8](repeating: 0x69, count: 7_056)) + chunk("ID3 ", song)
        let facts = try #require(SoundFile.read(SoundSource(Array("FRM8".utf8) + little(0, 8) + content)))
        #expect(facts.first("TITLE") == "Song")
        #expect(facts.duration == 0.01)
    }

    @Test func linesOfAnAUFile_areTags() throws {
        let text = Array("title=Song\nartist=Who\nno tag\0".utf8)
        let offset = 24 + text.count
        let header = [offset, 16_000, 3, 8_000, 1].flatMap { value in
            (0..<4).map { UInt8(value >> (24 - 8 * $0) & 0xFF) }
        }
        let bytes = Array(".snd".utf8) + header + text + [UInt8](repeating: 1, count: 16_000)
        let facts = try #require(SoundFile.read(SoundSource(bytes)))
        #expect(facts.tags == ["TITLE": ["Song"], "ARTIST": ["Who"]])
        #expect(facts.duration == 1)
        #expect(SoundSample(SoundSource(bytes))?.length == 16_000)
    }

    @Test func coreAudioFile_isRead() throws {
        func big(_ value: UInt64, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64(count - 1 - $0))) }
        }
        func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
            Array(name.utf8) + big(UInt64(content.count), 8) + content
        }
        let format = big((8_000.0).bitPattern, 8) + Array("lpcm".utf8) + [0, 2, 1, 1, 16].flatMap { big($0, 4) }
        let names = big(3, 4) + Array("title\0Song\0track number\u{0}3\0recorded date\u{0}1999\0".utf8)
        let bytes =
            Array("caff".utf8) + [0, 1, 0, 0] + chunk("desc", format) + chunk("info", names)
            + Array("data".utf8) + big(.max, 8) + [0, 0, 0, 0] + [UInt8](repeating: 1, count: 8_000)
        let facts = try #require(SoundFile.read(SoundSource(bytes)))
        #expect(facts.tags == ["TITLE": ["Song"], "TRACKNUMBER": ["3"], "DATE": ["1999"]])
        #expect(facts.duration == 0.5)
        #expect(SoundSample(SoundSource(bytes))?.length == 8_000)
    }

    @Test func metadataOfFlash_areRead() throws {
        func text(_ words: String) -> [UInt8] { [0, UInt8(words.utf8.count)] + Array(words.utf8) }
        let duration = (0..<8).map { UInt8(truncatingIfNeeded: (2.5).bitPattern >> (56 - 8 * UInt64($0))) }
        let message =
            [2] + text("onMetaData") + [8, 0, 0, 0, 3] + text("duration") + [0] + duration + text("stereo") + [1, 1]
            + text("artist") + [2] + text("Who") + [0, 0, 9]
        let head = Array("FLV".utf8) + [1, 5, 0, 0, 0, 9, 0, 0, 0, 0]
        let bytes = head + [18, 0, 0, UInt8(message.count), 0, 0, 0, 0, 0, 0, 0] + message
        let facts = try #require(SoundFile.read(SoundSource(bytes)))
        #expect(facts.tags == ["ARTIST": ["Who"]])
        #expect(facts.duration == 2.5)
    }

    @Test(arguments: [
        "", "no music at all", "OggS", "ID3", "RIFF1234WAVE", "fLaC", "1234ftypM4A ", ".snd", "caff", "FLV\u{1}",
    ])
    func whatIsNoMusic_isNotTakenForIt(_ text: String) {
        let facts = SoundFile.read(SoundSource(Array(text.utf8)))
        #expect(facts == nil || facts?.tags.isEmpty == true && facts?.duration == 0)
    }
}
