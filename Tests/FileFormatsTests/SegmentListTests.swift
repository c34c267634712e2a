import FileFormats
import Testing

@Suite struct SegmentListTests {
    private static let base = "http://host/live/list.m3u8?key=1"

    @Test(
        arguments: [
            ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n", SegmentList.live(segment: 2)),
            ("\u{FEFF}#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-TARGETDURATION:10\r\n", .live(segment: 10)),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:no\n", .live(segment: 6)),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:99999\n", .live(segment: 6)),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n", .whole),
            ("#EXTM3U\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-TARGETDURATION:2\n", .whole),
            (
                "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/a.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nhigh.m3u8\n",
                .variants(first: "http://host/live/low/a.m3u8")
            ),
            (
                "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttps://other/a.m3u8\n",
                .variants(first: "https://other/a.m3u8")
            ),
            ("#EXTM3U\n#EXTINF:3,Song\nsong.mp3\n", nil),
            ("[playlist]\nFile1=a.mp3\n", nil), ("", nil), ("#EXTM3U", nil),
        ] as [(String, SegmentList?)])
    func list_saysWhetherItIsLive(_ text: String, _ expected: SegmentList?) {
        #expect(SegmentList(Array(text.utf8), base: Self.base) == expected)
    }
}
