import Testing

@testable import PluginAPI

@Suite struct CacheAddressTests {
    private static let token = String(repeating: "0a", count: 16)

    @Test func madeAddress_isOne() {
        #expect(CacheAddress.isOne(CacheAddress.text(port: 40_000, token: Self.token, name: "film.mp4")))
        #expect(CacheAddress.isOne(CacheAddress.text(port: 65_535, token: Self.token, name: "a%2Fb")))
    }

    @Test(arguments: [
        "", "film.mp4", "file:///home/a/\(token)/film.mp4", "http://127.0.0.1/\(token)/film.mp4",
        "http://127.0.0.1:70000/\(token)/film.mp4", "http://127.0.0.1:x/\(token)/film.mp4",
        "https://127.0.0.1:40000/\(token)/film.mp4", "http://127.0.0.2:40000/\(token)/film.mp4",
        "http://example.org:40000/\(token)/film.mp4", "http://127.0.0.1:40000/\(token)",
        "http://127.0.0.1:40000/\(token)0/film.mp4", "http://127.0.0.1:40000/\(token.dropLast())g/film.mp4",
        "http://user@127.0.0.1:40000/\(token)/film.mp4",
    ]) func otherAddress_isNone(_ address: String) { #expect(!CacheAddress.isOne(address)) }
}
