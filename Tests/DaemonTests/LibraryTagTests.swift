import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// Tags whose texts do not state their encoding, and files that the library cannot read.
@Suite struct LibraryTagTests {
    /// An MP3 file whose title has these bytes, as programs of the nineties wrote them.
    private func song(_ title: [UInt8]) -> Data {
        let frame = Array("TIT2".utf8) + [0, 0, 0, UInt8(title.count + 1), 0, 0, 0] + title
        let sound = [0xFF, 0xFB, 0x90, 0x64] + [UInt8](repeating: 0, count: 413)
        return Data(Array("ID3".utf8) + [3, 0, 0, 0, 0, 0, UInt8(frame.count)] + frame + sound + sound)
    }

    private func titles(_ encoding: String?, _ songs: [[UInt8]]) throws -> [String] {
        let stage = try LibraryStage(adds: false)
        stage.stop()
        if let encoding {
            let settings = try stage.home.folder(".config/sessiond") + "/sessiond.conf"
            try "[library]\ntag-encoding = \(encoding)\n".write(toFile: settings, atomically: true, encoding: .utf8)
        }
        try stage.begin()
        for (index, title) in songs.enumerated() {
            try song(title).write(to: URL(fileURLWithPath: stage.music + "/\(index).mp3"))
        }
        _ = try stage.call("AddFolder", [.string(stage.music), .properties([])])
        #expect(stage.waitUntilScanned())
        let titles = try stage.items([], ["title"]).compactMap { $0["title"]?.stringValue }
        stage.stop()
        return titles.sorted()
    }

    @Test(
        arguments: [
            (nil, [0xCF, 0xE5, 0xF1, 0xED, 0xFF], "Ïåñíÿ"), ("cp1251", [0xCF, 0xE5, 0xF1, 0xED, 0xFF], "Песня"),
            ("koi8-r", [0xF0, 0xC5, 0xD3, 0xCE, 0xD1], "Песня"), ("shift-jis", [0x89, 0xCC, 0x93, 0xFA], "歌日"),
            ("gbk", [0xB8, 0xE8, 0xC7, 0xFA], "歌曲"), ("big5", [0xBA, 0x71, 0xA6, 0xB1], "歌曲"),
            ("euc-kr", [0xB3, 0xEB, 0xB7, 0xA1], "노래"), ("cp1250", [0xBE, 0x6C, 0x75, 0x9D], "ľluť"),
        ] as [(String?, [UInt8], String)])
    func oldTexts_areReadInTheEncodingOfTheSettings(_ encoding: String?, _ bytes: [UInt8], _ title: String) throws {
        #expect(try titles(encoding, [bytes]) == [title])
    }

    @Test func textThatIsNotInTheEncoding_isReadAsBefore() throws {
        #expect(try titles("shift-jis", [[0x61, 0xFD], Array("plain".utf8)]) == ["aý", "plain"])
    }

    @Test func fileOfAnUnknownFormat_isNamedAsNotRead() throws {
        let stage = try LibraryStage { stage in
            for name in ["a.tak", "b.ofr", "c.txt"] {
                try Data([1, 2, 3]).write(to: URL(fileURLWithPath: stage.music + "/" + name))
            }
        }
        #expect(stage.status["failed"] == .uint32(2))
        stage.stop()
    }
}
