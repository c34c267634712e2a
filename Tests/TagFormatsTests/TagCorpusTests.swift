import Foundation
import TagFormats
import TestSupport
import Testing

@testable import ReferenceModel

/// Tags that another program has written, as a third one (mutagen) reads them.
@Suite struct TagCorpusTests {
    private struct Expected: Decodable {
        let file: String
        let tags: [String: [String]]
        let picture: Bool
        let duration: Double
    }

    private static let names: Set<String> = [
        "TITLE", "ARTIST", "ALBUM", "ALBUMARTIST", "COMPOSER", "GENRE", "TRACKNUMBER", "DISCNUMBER", "DATE",
        "COMPILATION",
        "MUSICBRAINZ_ALBUMID", "STIK",
    ]

    @Test(arguments: [1, 2, 3]) func tags_areThoseThatMutagenReads(_ seed: Int) throws {
        let folder = try PrivateFolder()
        let script = repository.path + "/Tests/Support/TagCorpus.py"
        let child = try Child("/usr/bin/python3", [script, folder.path, "\(seed)", "12"])
        #expect(child.wait(timeout: 120) == .code(0), "\(child.errors)")
        let files = try child.output.map { try JSONDecoder().decode(Expected.self, from: Data($0.utf8)) }
        #expect(files.count >= 100)
        for expected in files {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + expected.file)))
            for isWhole in [true, false] {
                // Also if only the ends of the file are in memory.
                let source =
                    isWhole
                    ? SoundSource(bytes)
                    : SoundSource(
                        size: UInt64(bytes.count), head: Array(bytes.prefix(64)), tail: Array(bytes.suffix(130))
                    ) {
                        place, count in Array(bytes[Int(place)..<min(bytes.count, Int(place) + count)])
                    }
                let facts = try #require(SoundFile.read(source, wantsPicture: isWhole), "\(expected.file)")
                let tags = facts.tags.filter { Self.names.contains($0.key) }
                #expect(tags == expected.tags, "\(expected.file)")
                #expect(facts.hasPicture == expected.picture, "\(expected.file)")
                #expect(abs(facts.duration - expected.duration) < 0.06, "\(expected.file): \(facts.duration)")
                if isWhole, expected.picture { #expect(facts.picture?.count == 8 + 256 * 30, "\(expected.file)") }
            }
        }
    }

    @Test func damagedFiles_endTheReaderWithoutACrash() throws {
        let folder = try PrivateFolder()
        let script = repository.path + "/Tests/Support/TagCorpus.py"
        let child = try Child("/usr/bin/python3", [script, folder.path, "9", "2"])
        #expect(child.wait(timeout: 120) == .code(0), "\(child.errors)")
        var random = SplitMix64(seed: 7)
        var count = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + name)))
            for _ in 0..<40 {
                var bytes = whole
                switch random.next() % 3 {
                case 0: bytes = Array(bytes.prefix(Int(random.next() % UInt64(bytes.count))))
                case 1:
                    for _ in 0..<8 {
                        bytes[Int(random.next() % UInt64(min(bytes.count, 2_000)))] = UInt8(
                            truncatingIfNeeded: random.next())
                    }
                default:
                    let place = Int(random.next() % UInt64(bytes.count))
                    for index in place..<min(bytes.count, place + 8) { bytes[index] = 0xFF }
                }
                _ = SoundFile.read(SoundSource(bytes), wantsPicture: true)
                count += 1
            }
        }
        #expect(count > 800)
    }
}
