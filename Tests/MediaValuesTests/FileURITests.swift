import MediaValues
import Testing

/// The text forms of URIs.
@Suite struct FileURITests {
    @Test(
        arguments: [
            ("http://user:secret@host/a.ogg?token=secret#secret", "http://host/a.ogg"),
            ("https://host?token=secret", "https://host"), ("https://host#secret", "https://host"),
            ("https://host/a@b/c", "https://host/a@b/c"), ("https://user@host", "https://host"),
            ("cast:secret?a", "cast:secret"), ("file:///music/a%3Fb.ogg", "file:///music/a%3Fb.ogg"),
            ("file:///music/what?#1.ogg", "file:///music/what%3F%231.ogg"), ("/music/#1.ogg", "/music/#1.ogg"),
            ("", ""),
        ] as [(String, String)])
    func shownURI_hasNoSecrets(_ uri: String, _ shown: String) {
        #expect(FileURI.shown(uri) == shown)
        #expect(FileURI.shown(shown) == shown)
    }

    @Test(
        arguments: [
            ("'http://user:secret@host/a?token=secret' cannot be read", "'http://host/a' cannot be read"),
            ("http://host/a?secret: not found", "http://host/a not found"),
            ("<http://host/a#secret>, http://me@other", "<http://host/a>, http://other"), ("what? #1", "what? #1"),
        ] as [(String, String)])
    func urisInAText_haveNoSecrets(_ text: String, _ shown: String) {
        #expect(FileURI.withoutSecrets(text) == shown)
    }

    @Test(arguments: [
        ("http://h/Größe 100% #1?q=50%&r=%41", "http://h/Gr%C3%B6%C3%9Fe%20100%25%20#1?q=50%25&r=%41"),
        ("HTTPS://h/a%2Fb%zz%4", "HTTPS://h/a%2Fb%25zz%254"), ("rtmp://h/a b%", "rtmp://h/a b%"),
    ])
    func addressOfTheWeb_isEscapedAsBrowsersDo(text: String, expected: String) {
        #expect(FileURI.uri(text) == expected)
    }

    @Test(arguments: ["http://host/a", "cast:secret", "file:/a", "spotify:track:1", "rtsp://[::1]/a"])
    func uri_isLeftAsItIs(uri: String) { #expect(FileURI.uri(uri) == uri) }

    @Test(arguments: ["10:30.mp4", ":.mp4", "Star Wars: A New Hope.mkv", "/a:/b", "a/b:c"])
    func nameOfAFile_isNoURI(name: String) { #expect(FileURI.uri(name).hasPrefix("file:///")) }
}
