import Testing

@testable import FileFormats

/// The length of MPEG streams, from the headers of their packets.
@Suite struct PresentationTimesTests {
    /// The header of a packet with a time, in units of 1/90,000 s, and the content after it.
    private func packet(_ kind: UInt8, _ time: Int, _ content: [UInt8] = [1, 2, 3]) -> [UInt8] {
        let parts = [
            0x21 | (time >> 30) << 1, time >> 22 & 0xFF, time >> 14 & 0xFE | 1, time >> 7 & 0xFF, time << 1 & 0xFE | 1,
        ]
        return [0, 0, 1, kind, 0, 0, 0x80, 0x80, 5] + parts.map { UInt8($0) } + content
    }

    @Test func length_isFromTheFirstTimeToTheLast() throws {
        let pictures = packet(0xE0, 90_000) + packet(0xE0, 97_200) + packet(0xE0, 93_600)
        let times = try #require(PresentationTimes(head: packet(0xC0, 89_100) + pictures, tail: pictures))
        #expect(abs(times.length - 0.09) < 1e-9)
        #expect(times.endsWithPictures)
        let long = packet(0xE0, 1 << 32) + packet(0xBD, 1 << 32 | 90_001)
        let sound = try #require(PresentationTimes(head: long, tail: long))
        #expect(abs(sound.length - 90_001.0 / 90_000) < 1e-9)
        #expect(!sound.endsWithPictures)
    }

    @Test func timesAreFoundBesideZeros() {
        let bytes = [0, 0, 0] + packet(0xE0, 5, [0, 0]) + packet(0xE1, 7, [0, 0, 0, 1, 0, 0])
        #expect(PresentationTimes.times(bytes).map(\.time) == [5, 7])
        for length in 0..<bytes.count { _ = PresentationTimes.times(Array(bytes.prefix(length))) }
    }

    @Test func streamsWithoutGrowingTimes_haveNoLength() {
        #expect(PresentationTimes(head: packet(0xE0, 900), tail: packet(0xE0, 900)) == nil)
        #expect(PresentationTimes(head: packet(0xE0, 900), tail: packet(0xE0, 5)) == nil)
        #expect(PresentationTimes(head: [], tail: [0, 0, 1]) == nil)
        // The kind of its content, its marks or its flags are others.
        for (place, byte) in [(3, 0xB8), (6, 0x40), (7, 0x00), (9, 0x01), (11, 0x00), (13, 0x00)] as [(Int, UInt8)] {
            var wrong = packet(0xE0, 900)
            wrong[place] = byte
            #expect(PresentationTimes.times(wrong).isEmpty, "\(place)")
        }
    }
}
