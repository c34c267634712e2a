import FileFormats
import PluginAPI
import Testing

/// Reads the formats of files from their bytes only.
@Suite struct FileFormatsTests {
    /// Returns the bytes at a place, fewer at the end, like a file.
    private func reader(_ bytes: [UInt8]) -> (_ place: Int, _ count: Int) -> [UInt8] {
        { place, count in place < bytes.count ? Array(bytes[place..<min(bytes.count, place + count)]) : [] }
    }

    private func big<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    private func part(_ name: String, _ bytes: [UInt8]) -> [UInt8] {
        Array(name.utf8) + big(UInt64(bytes.count)) + bytes
    }

    /// A CAF file of that coding, with two channels at 44.1 kHz.
    private func coreAudio(
        _ coding: String, flags: UInt32 = 0, packet: UInt32, frames: UInt32 = 1, bits: UInt32, sound: [UInt8]
    ) -> [UInt8] {
        let format =
            big(44_100.0.bitPattern) + Array(coding.utf8) + big(flags) + big(packet) + big(frames) + big(UInt32(2))
            + big(bits)
        return Array("caff".utf8) + [0, 1, 0, 0] + part("desc", format) + part("data", [0, 0, 0, 0] + sound)
    }

    private func atom(_ name: String, _ bytes: [UInt8]) -> [UInt8] {
        big(UInt32(bytes.count + 8)) + Array(name.utf8) + bytes
    }

    @Test func coreAudioFile_hasTheFormatOfItsHeader() throws {
        let bytes = coreAudio("lpcm", flags: 2, packet: 4, bits: 16, sound: [UInt8](repeating: 7, count: 40))
        let file = try #require(try AppleFile.read(head: Array(bytes[..<12]), reader(bytes)))
        #expect(file.format.coding == .samples(bits: 16, isFloat: false, isLittleEndian: true))
        #expect(file.format.rate == 44_100 && file.format.channels == 2 && file.format.unit == 4)
        #expect(file.size == 40 && bytes[file.place] == 7 && bytes[file.place - 1] == 0)
    }

    @Test func coreAudioFileOfAnotherCodingOrTruncated_isRefused() {
        for bytes in [coreAudio("aac ", packet: 0, bits: 0, sound: [1]), Array("caff".utf8) + [0, 1, 0, 0]] {
            #expect(throws: AppleFile.Refusal.self) { try AppleFile.read(head: bytes, reader(bytes)) }
        }
    }

    @Test func everyPrefixOfACoreAudioFile_isReadOrRefused() {
        let whole = coreAudio("ima4", packet: 68, frames: 64, bits: 0, sound: [UInt8](repeating: 0x77, count: 136))
        for count in whole.indices {
            let bytes = Array(whole[..<count])
            _ = try? AppleFile.read(head: Array(bytes.prefix(12)), reader(bytes))
            _ = try? PlainFile(head: bytes, size: bytes.count, read: reader(bytes))
        }
    }

    @Test func sunFile_isReadWithTheHeaderOfAnotherFormat() throws {
        // 16 bits, big-endian, becomes an AIFF-C; µ-law becomes a WAV.
        for (number, name) in [(UInt32(3), "FORM"), (1, "RIFF")] {
            let head =
                Array(".snd".utf8) + big(UInt32(24)) + big(UInt32.max) + big(number) + big(UInt32(8_000))
                + big(UInt32(1))
            let file = try #require(try PlainFile(head: head, size: 1_024, read: reader(head)))
            #expect(file.skip == 24 && file.header.starts(with: name.utf8))
            #expect(file.format.rate == 8_000 && file.format.channels == 1)
        }
    }

    @Test func packetsOfIMA4_have64SamplesEach() {
        // The predictor is 0x1000 with the smallest step, and all samples are zero, so the signal stays constant.
        let packet = [0x10, 0x00] + [UInt8](repeating: 0, count: 32)
        let samples = IMA4.samples(packet + packet, channels: 2)
        #expect(samples.count == 64 * 2 * 2)
        #expect(samples.prefix(4).elementsEqual([0x00, 0x10, 0x00, 0x10]))
        #expect(IMA4.samples(Array(packet.dropLast()), channels: 1).isEmpty)
    }

    @Test func waveHeaderOfAGrowingFile_hasTheLargestSize() {
        let header = WaveFile.header(tag: 1, bits: 16, channels: 2, sampleRate: 48_000, size: .max)
        #expect(header.count == 44 && header.suffix(4).elementsEqual([0xff, 0xff, 0xff, 0xff]))
        #expect(header[4..<8].elementsEqual([0xff, 0xff, 0xff, 0xff]))
        // More than two channels need the extended form.
        #expect(WaveFile.header(tag: 1, bits: 16, channels: 6, sampleRate: 48_000, size: 0).count == 68)
    }

    @Test func framesOfMP3_giveTheDuration() throws {
        // MPEG 1, layer 3, 128 kbit/s, 44.1 kHz: 417 bytes and 1,152 samples.
        let frame = [0xff, 0xfb, 0x90, 0x00] + [UInt8](repeating: 0, count: 413)
        let frames = try #require(MP3Frames(frame + frame))
        #expect(abs(frames.secondsPerByte * 417 - 1_152.0 / 44_100) < 1e-9)
        #expect(frames.sound == nil)
        #expect(MP3Frames([0xff, 0xfb, 0xf0, 0x00]) == nil)
        #expect(MP3Frames([]) == nil)
    }

    @Test func firstTrackOfAnMP4_hasItsCoding() {
        func file(_ coding: String) -> [UInt8] {
            let description = [UInt8](repeating: 0, count: 8) + big(UInt32(36)) + Array(coding.utf8) + [0, 0, 0, 0]
            let inside = ["stbl", "minf", "mdia", "trak", "moov"].reduce(atom("stsd", description)) { atom($1, $0) }
            return atom("ftyp", Array("M4A ".utf8)) + inside
        }
        for (coding, expected) in [("mp4a", MP4Codec.aac), ("alac", .alac), ("Opus", nil)] {
            let bytes = file(coding)
            #expect(MP4Codec(size: bytes.count, read: reader(bytes)) == expected)
            for count in stride(from: 0, to: bytes.count, by: 3) {
                _ = MP4Codec(size: bytes.count, read: reader(Array(bytes[..<count])))
            }
        }
    }

    @Test func preamble_endsWhereTheSoundBegins() {
        let flac = Array("fLaC".utf8) + [0, 0, 0, 34] + [UInt8](repeating: 0, count: 34) + [0x84, 0, 0x10, 0]
        #expect(Preamble.size(head: flac, read: reader(flac)) == 4 + 4 + 34 + 4 + 0x1000)
        #expect(Preamble.size(head: Array("RIFF".utf8), read: reader([])) == 0)
    }

    @Test func playlists_areParsed() throws {
        let m3u = Array("#EXTM3U\n#EXTINF:12,One\na b.wav\nhttp://host/two.mp3\n".utf8)
        let entries = try #require(Playlist.entries(m3u, base: "file:///music/list.m3u"))
        #expect(
            entries == [
                PlaylistEntry(uri: "file:///music/a%20b.wav", title: "One", duration: 12),
                PlaylistEntry(uri: "http://host/two.mp3"),
            ])
        // A list from the network must not name files on this machine.
        #expect(Playlist.entries(Array("#EXTM3U\nfile:///etc/passwd\n".utf8), base: "http://host/a.m3u") == [])
        let films = Playlist.entries(Array("Alien: Part #2 100%.mkv\n".utf8), base: "file:///films/list.m3u8")
        #expect(films?.map(\.uri) == ["file:///films/Alien:%20Part%20%232%20100%25.mkv"])
        #expect(Playlist.entries(Array("#EXTM3U\n#EXT-X-VERSION:3\na.ts\n".utf8), base: "http://host/a.m3u8") == nil)
        #expect(Playlist.entries(Array(m3u.dropFirst(8)) + [0], base: "file:///music/list.txt") == nil)
        let pls = Array("[Playlist]\nFile2=b.wav\nFile1=/a.wav\nTitle1=A\nLength1=-1\n".utf8)
        #expect(
            Playlist.entries(pls, base: "file:///music/list") == [
                PlaylistEntry(uri: "file:///a.wav", title: "A"), PlaylistEntry(uri: "file:///music/b.wav"),
            ])
    }
}
