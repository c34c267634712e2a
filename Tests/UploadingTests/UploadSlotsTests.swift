import Testing

@testable import ReferenceModel
@testable import Uploading

@Suite struct UploadSlotsTests {
    private typealias Wish = UploadSlots.Wish

    private func allowed(_ wishes: [UploadSlots.Wish], isMetered: Bool = false, asleep: Bool = false) -> [UInt64] {
        UploadSlots.allowed(wishes, isMetered: isMetered, isFallingAsleep: asleep).sorted()
    }

    @Test func threeAtMost_theOldestFirst() {
        let wishes = (1...6).reversed().map { Wish(number: $0, wantsNetwork: $0 != 2, isAllowed: false) }
        #expect(allowed(wishes) == [1, 3, 4])
    }

    @Test func whoIsAtIt_goesOn() {
        let wishes = (1...6).map { Wish(number: $0, wantsNetwork: true, isAllowed: $0 > 3) }
        #expect(allowed(wishes) == [4, 5, 6])
    }

    @Test func meteredNetwork_isForThoseWhoMay() {
        let wishes = (1...6).map {
            Wish(number: $0, wantsNetwork: true, isAllowed: $0 < 3, sendsOnMetered: $0 % 2 == 0)
        }
        #expect(allowed(wishes, isMetered: true) == [2, 4, 6])
        #expect(allowed(wishes) == [1, 2, 3])
    }

    @Test func fallingAsleep_onlyWhatWouldBeginAnewGoesOn() {
        let wishes = (1...4).map { Wish(number: $0, wantsNetwork: true, isAllowed: $0 < 4, continues: $0 != 2) }
        #expect(allowed(wishes, asleep: true) == [2])
    }

    @Test func randomWishes_settleAtOnce() {
        var chance = SplitMix64(seed: 4)
        for _ in 0..<2_000 {
            let wishes = (0..<UInt64.random(in: 0...12, using: &chance)).map {
                Wish(
                    number: $0, wantsNetwork: .random(using: &chance), isAllowed: .random(using: &chance),
                    sendsOnMetered: .random(using: &chance), continues: .random(using: &chance))
            }
            let (isMetered, isAsleep) = (Bool.random(using: &chance), Bool.random(using: &chance))
            let first = UploadSlots.allowed(wishes, isMetered: isMetered, isFallingAsleep: isAsleep)
            let then = wishes.map {
                Wish(
                    number: $0.number, wantsNetwork: $0.wantsNetwork, isAllowed: first.contains($0.number),
                    sendsOnMetered: $0.sendsOnMetered, continues: $0.continues)
            }
            #expect(UploadSlots.allowed(then, isMetered: isMetered, isFallingAsleep: isAsleep) == first)
        }
    }
}

/// The bytes and texts of tus.
@Suite struct TusTextTests {
    private static func hex(_ text: String) -> String {
        SHA1.digest(of: Array(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// FIPS 180-4's examples, and RFC 3174's.
    @Test func sha1_isThatOfTheStandard() {
        #expect(Self.hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        #expect(Self.hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            Self.hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "84983e441c3bd26ebaae4aa1f95129e5e54670f1")
        #expect(Self.hex(String(repeating: "a", count: 1_000_000)) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f")
    }

    @Test func sha1InPieces_isTheSame() {
        var chance = SplitMix64(seed: 5)
        let bytes = (0..<1_000).map { _ in UInt8.random(in: 0...255, using: &chance) }
        let whole = SHA1.digest(of: bytes)
        for _ in 0..<100 {
            var hash = SHA1()
            var place = 0
            while place < bytes.count {
                let end = min(bytes.count, place + Int.random(in: 0...200, using: &chance))
                bytes[place..<end].withUnsafeBytes { hash.update($0) }
                place = end
            }
            #expect(hash.digest() == whole)
        }
    }

    /// RFC 4648, 10.
    @Test(
        arguments: zip(
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"],
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"])) func base64_isThatOfTheStandard(
            _ plain: String, _ text: String
        )
    {
        #expect(Base64.text(of: Array(plain.utf8)) == text)
    }

    @Test func metadata_isAListOfNamesAndBase64() {
        #expect(
            Base64.metadata([("filename", "a b.mp4"), ("is-public", ""), ("title", "é")])
                == "filename YSBiLm1wNA==,is-public,title w6k=")
    }
}
