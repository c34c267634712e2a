import Testing

@testable import HTTP

@Suite struct WebAddressTests {
    @Test(arguments: [
        "", "x", "/x", "ftp://host/x", "file:///etc/passwd", "http://", "http://host:99999/",
        "http://a b/",
        "javascript:alert(1)", "http://host/\0",
    ]) func noAddressOfTheWeb_isNone(_ text: String) { #expect(WebAddress(text) == nil) }

    @Test func origin_isSchemeHostAndPort() throws {
        func origin(_ text: String) -> String? { WebAddress(text)?.origin }
        #expect(origin("http://Host/a") == origin("http://host:80/b?c"))
        #expect(origin("https://host/") == origin("https://host:443/"))
        #expect(origin("http://host/") != origin("https://host/"))
        #expect(origin("http://host/") != origin("http://host:8080/"))
        #expect(origin("http://host/") != origin("http://host.example/"))
        #expect(origin("http://[::1]:80/") == origin("http://[::1]/"))
    }

    @Test func reference_isResolved() throws {
        let base = try #require(WebAddress("https://user:secret@host:8443/files/?key=1"))
        func resolved(_ text: String) -> String? { base.resolving(text)?.text }
        // Not with what the server did not name.
        #expect(resolved("abc") == "https://host:8443/files/abc")
        #expect(resolved("/abc?d=e") == "https://host:8443/abc?d=e")
        #expect(resolved("") == "https://host:8443/files/")
        #expect(resolved("//me:own@other/abc") == "https://me:own@other/abc")
        #expect(resolved("//other/abc") == "https://other/abc")
        #expect(resolved("http://other/abc") == "http://other/abc")
        #expect(resolved("file:///etc/passwd") == nil)
        #expect(resolved("ftp://other/abc") == nil)
    }

    @Test func addressThatIsTooLong_isNone() throws {
        let base = "http://host/"
        let most = WebAddress.limit - base.utf8.count
        #expect(WebAddress(base + String(repeating: "a", count: most)) != nil)
        #expect(WebAddress(base + String(repeating: "a", count: most + 1)) == nil)
        // With its escapes.
        #expect(WebAddress(base + String(repeating: "é", count: most / 4)) == nil)
        #expect(try #require(WebAddress(base)).resolving(String(repeating: "a", count: 58_000)) == nil)
        // User and password come on top of it.
        let other = try #require(WebAddress("http://user:secret@host/"))
        let long = try #require(WebAddress(base + String(repeating: "a", count: most)))
        #expect(long.authorized(like: other).secrets == ["user", "secret"])
    }

    @Test func shown_hasNoSecrets() throws {
        let address = try #require(WebAddress("https://user:secret@host:8443/a/b?key=1#c"))
        #expect(address.shown == "https://host:8443/a/b")
        #expect(address.secrets == ["user", "secret", "key=1"])
    }

    @Test func authorized_hasTheUserOfTheOther() throws {
        let base = try #require(WebAddress("https://us%40er:sec%2fret@host/a"))
        let other = try #require(WebAddress("https://host/b"))
        #expect(other.authorized(like: base).text == "https://us%40er:sec%2fret@host/b")
        let own = try #require(WebAddress("https://me@host/b"))
        #expect(own.authorized(like: base) == own)
        #expect(base.authorized(like: other) == base)
    }

    @Test func field_thatWouldEndTheHead_isNone() {
        #expect(HTTPField("X-Key", "a b\tc é") != nil)
        #expect(HTTPField("X-Key", "") != nil)
        for name in ["", "X Key", "X:Key", "X\nKey", "é"] { #expect(HTTPField(name, "a") == nil, "\(name)") }
        for value in ["a\r\nb", "a\nb", "\0", "\u{7F}"] { #expect(HTTPField("X-Key", value) == nil) }
    }

    @Test func retryAfter_isSecondsOrADate() {
        func after(_ text: String) -> Double? {
            HTTPResponse(status: 503, fields: [HTTPField(known: "retry-after", text)]).retryAfter(now: 784_111_770)
        }
        #expect(after("120") == 120)
        #expect(after("0") == 0)
        #expect(after("Sun, 06 Nov 1994 08:49:37 GMT") == 7)
        #expect(after("Sun, 06 Nov 1994 08:40:00 GMT") == 0)
        #expect(after("soon") == nil)
        #expect(after("-1") == nil)
    }
}
