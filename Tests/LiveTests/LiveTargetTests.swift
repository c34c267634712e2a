import LiveStreaming
import PluginAPI
import Testing

@Suite struct LiveTargetTests {
    struct Row: Sendable, CustomStringConvertible {
        let url: String
        var key = ""
        let location: String
        let shown: String
        var description: String { url }
    }

    static let rows = [
        Row(
            url: "rtmp://example.org/live/s3cret", location: "rtmp://example.org/live/s3cret",
            shown: "rtmp://example.org/live/…"),
        Row(
            url: "RTMPS://example.org:443/app/inst/s3cret?a=b", location: "rtmps://example.org:443/app/inst/s3cret?a=b",
            shown: "rtmps://example.org:443/app/inst/…"),
        Row(
            url: "rtmp://me:pass@example.org/live", key: "s3cret/x",
            location: "rtmp://me:pass@example.org/live/s3cret/x",
            shown: "rtmp://example.org/live/…"),
        Row(
            url: "rtmp://[::1]:1935/live/s3cret", location: "rtmp://[::1]:1935/live/s3cret",
            shown: "rtmp://[::1]:1935/live/…"),
        Row(
            url: "srt://example.org:9000?streamid=s3cret&latency=200",
            location: "srt://example.org:9000?streamid=s3cret&latency=200", shown: "srt://example.org:9000"),
        Row(
            url: "srt://example.org:9000", key: "#!::r=a b",
            location: "srt://example.org:9000?streamid=%23%21%3A%3Ar%3Da%20b",
            shown: "srt://example.org:9000"),
        Row(
            url: "https://example.org:8443/s3cret/whip?a=b", key: "pass",
            location: "https://example.org:8443/s3cret/whip?a=b",
            shown: "https://example.org:8443/…"),
        Row(url: "/srv/www/live", location: "/srv/www/live", shown: "/srv/www/live"),
        Row(url: "file:///srv/my%20live", location: "/srv/my live", shown: "/srv/my live"),
    ]

    @Test(arguments: rows) func address_isReadAndHidden(_ row: Row) throws {
        let target = try LiveTarget(row.url, key: row.key)
        #expect(target.location == row.location)
        #expect(target.shown == row.shown)
        #expect(!target.shown.contains("s3cret") && !target.shown.contains("pass"))
    }

    @Test(arguments: [
        "", "live", "rtmp:", "rtmp://", "rtmp:///live/key", "rtmp://host", "rtmp://host/live", "rtmp://host:0/live/key",
        "rtmp://host:99999/live/key", "rtmp://host/live/key#x", "rtmp://host/live/a b", "srt://host",
        "srt://host:9000/path", "srt://host:9000?pkt_size=1316", "srt://host:9000?latency=-1",
        "srt://host:9000?passphrase=short", "https://", "https://me@host/whip", "http://host/whip#x", "ftp:",
        "live/stream", "rtmp://host/live/key\u{0}",
        String(repeating: "x", count: 3_000),
    ]) func wrongAddress_isRefusedWithAReason(_ url: String) {
        let error = #expect(throws: SessionError.self) { try LiveTarget(url) }
        #expect(error?.code == .badParameter)
        #expect((error?.reason.count ?? 0) > 15)
    }

    @Test func listener_isNotSupported() {
        let error = #expect(throws: SessionError.self) { try LiveTarget("srt://host:9000?mode=listener") }
        #expect(error?.code == .notSupported)
    }

    @Test func words_ofAServer_loseTheKey() throws {
        let target = try LiveTarget("rtmp://me:pass@example.org/live/s3cr%65t?token=abcdef")
        for text in [
            "Failed to open rtmp://me:pass@example.org/live/s3cr%65t?token=abcdef: no", "no s3cret here", "s3cr%65t",
            "token=abcdef", "me:pass@",
        ] {
            let hidden = target.hidden(text)
            for part in ["s3cr", "abcdef", "pass"] { #expect(!hidden.contains(part), "\(hidden)") }
        }
        #expect(target.hidden("connection refused by example.org") == "connection refused by example.org")
    }
}
