import FileFormats
import Testing

/// The tables of transport streams, from packets that are made here.
@Suite struct TransportStreamTests {
    private static func packet(_ id: Int, _ content: [UInt8], isStart: Bool = true) -> [UInt8] {
        let head: [UInt8] = [0x47, (isStart ? 0x40 : 0) | UInt8(id >> 8), UInt8(id & 0xFF), 0x10]
        return head + content + [UInt8](repeating: 0xFF, count: 184 - content.count)
    }

    private static func table(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = 5 + content.count + 4
        return [0, kind, 0xB0 | UInt8(count >> 8), UInt8(count & 0xFF), 0, 1, 0xC1, 0, 0] + content + [0, 0, 0, 0]
    }

    private static func entry(_ type: UInt8, _ id: Int, _ descriptors: [UInt8] = []) -> [UInt8] {
        [type, 0xE0 | UInt8(id >> 8), UInt8(id & 0xFF), 0xF0, UInt8(descriptors.count)] + descriptors
    }

    private static func stream(_ entries: [UInt8], _ own: [UInt8] = []) -> [UInt8] {
        packet(0, table(0, [0, 1, 0xE1, 0x00]))
            + packet(0x100, table(2, [0xE1, 0x01, 0xF0, UInt8(own.count)] + own + entries))
    }

    private static let filler = packet(0x1FFF, [])

    @Test func tracks_areThoseOfTheTable() throws {
        let bytes = Self.stream(
            Self.entry(0x1B, 0x101) + Self.entry(0x0F, 0x102) + Self.entry(0x06, 0x103, [0x59, 0])
                + Self.entry(0x06, 0x104, [0x05, 4] + Array("KLVA".utf8)) + Self.entry(0x86, 0x105))
        let tracks = try #require(TransportStream(start: bytes + Self.filler + Self.filler)).tracks
        #expect(tracks.map(\.id) == [0x101, 0x102, 0x103, 0x104, 0x105])
        #expect(tracks.map(\.kind) == [.video, .audio, .subtitle, .data, .data])
        #expect(tracks.map(\.codec) == ["h264", "aac", "dvb", "klv", "unknown"])
    }

    @Test func typeOfADisc_isItsOwn() throws {
        let bytes = Self.stream(Self.entry(0x86, 0x101), [0x05, 4] + Array("HDMV".utf8))
        #expect(try #require(TransportStream(start: bytes + Self.filler)).tracks.map(\.codec) == ["dts"])
    }

    @Test func trackWithoutAName_isKnownByItsFirstFrame() throws {
        let frame: [UInt8] = [0, 0, 1, 0xC0, 0, 0, 0x80, 0, 0, 0xFF, 0xF1]
        let bytes = Self.stream(Self.entry(6, 0x101)) + Self.packet(0x101, frame) + Self.filler
        let track = try #require(TransportStream(start: bytes)).tracks.first
        #expect(track?.kind == .audio)
        #expect(track?.codec == "aac")
    }

    @Test func tableInTwoPackets_isRead() throws {
        let names = [UInt8](repeating: 0, count: 200).enumerated().map { $0.offset % 2 == 0 ? UInt8(0xC0) : 0 }
        let table = Self.table(2, [0xE1, 0x01, 0xF0, 0xC8] + names + Self.entry(0x1B, 0x101))
        let bytes =
            Self.packet(0, Self.table(0, [0, 1, 0xE1, 0x00])) + Self.packet(0x100, Array(table.prefix(184)))
            + Self.packet(0x100, Array(table.dropFirst(184)), isStart: false) + Self.filler
        #expect(try #require(TransportStream(start: bytes)).tracks.map(\.codec) == ["h264"])
    }

    @Test func damagedTables_endWithoutATrack() {
        let good = Self.stream(Self.entry(0x1B, 0x101, [0x05, 200])) + Self.filler
        for place in stride(from: 4, to: 376, by: 1) where place % 188 > 3 {
            for value in [UInt8(0), 0x7F, 0xFF] {
                var bytes = good
                bytes[place] = value
                #expect((TransportStream(start: bytes)?.tracks.count ?? 0) < 8)
            }
        }
        #expect(TransportStream(start: [UInt8](repeating: 0, count: 1_000)) == nil)
        #expect(TransportStream(start: []) == nil)
    }
}
