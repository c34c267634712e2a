import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing

@Suite(.serialized) struct HostileMediaTests {
    let folder: PrivateFolder
    let stage: Stage

    init() throws {
        folder = try PrivateFolder()
        stage = try Stage()
    }

    /// Loads and plays a URI until it fails or ends. Returns the message of the failure.
    private func outcome(_ uri: String) throws -> String? {
        stage.player.load(uri: uri)
        try stage.player.play()
        let ended = stage.until(8) { !stage.failures.isEmpty || !stage.finished.isEmpty }
        #expect(ended, "neither failed nor finished")
        #expect(stage.failures.count + stage.finished.count == 1)
        #expect(stage.player.state == (stage.failures.isEmpty ? .stopped : .failed))
        return stage.failures.first
    }

    private func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let path = folder.path + "/" + name
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return Media.uri(path)
    }

    @Test func missingFile_isNamed() throws {
        let message = try #require(try outcome("file:///nowhere/at/all.wav"))
        #expect(message.contains("/nowhere/at/all.wav") && message.contains("No such file"))
        #expect(throws: SessionError.self) { try stage.player.play() }
    }

    @Test func folderDeviceAndEmptyFile_areRefused() throws {
        #expect(try #require(try outcome(Media.uri(folder.path))).contains("folder"))
        stage.failures = []
        #expect(try #require(try outcome("file:///dev/zero")).contains("device"))
        stage.failures = []
        #expect(try #require(try outcome(try write("empty.wav", []))).contains("empty"))
        stage.failures = []
        #expect(try #require(try outcome("gopher://x/y")).contains("only file"))
        stage.failures = []
        #expect(try #require(try outcome("no uri")).contains("not a URI"))
    }

    @Test func text_isNotSound() throws {
        let text = String(repeating: "To be or not to be, that is the question.\n", count: 500)
        #expect(try #require(try outcome(try write("text.mp3", text.utf8))).contains("not audio"))
    }

    @Test func randomBytes_failOrEnd() throws {
        var generator = SystemRandomNumberGenerator()
        _ = try outcome(
            try write("random.mp3", (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &generator) }))
    }

    @Test func headerAlone_failsOrEnds() throws {
        for (name, head) in [
            ("a.wav", "RIFF\u{10}\0\0\0WAVEfmt \u{10}\0\0\0\u{1}\0"), ("a.flac", "fLaC"), ("a.ogg", "OggS"),
            ("a.mp3", "ID3"),
        ] {
            _ = try outcome(try write(name, head.utf8))
            stage.failures = []
            stage.finished = []
        }
    }

    @Test(arguments: [("flac", "flacenc"), ("ogg", "vorbisenc ! oggmux"), ("mp3", "lamemp3enc"), ("wav", "")])
    func truncatedFile_playsItsBeginning(kind: String, encoder: String) throws {
        let wave = folder.path + "/tone.wav"
        // Half of a short Ogg file has only headers.
        let seconds = kind == "ogg" ? 6.0 : 2.0
        try Media.wave(wave, [(440, seconds)])
        let path = folder.path + "/whole.\(kind)"
        if encoder.isEmpty { try Media.wave(path, [(440, seconds)]) } else { try Media.encode(wave, encoder, to: path) }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let failure = try outcome(try write("cut.\(kind)", bytes.prefix(bytes.count / 2)))
        #expect(failure == nil)
        #expect(stage.isHeardToItsEnd(440))
        let heard = stage.ear.trace(440, window: 0.01).filter { $0.level > -12 }.count
        #expect(heard > 60 && Double(heard) < 70 * seconds)
    }

    @Test func fileWithAWrongSuffix_plays() throws {
        let wave = folder.path + "/tone.wav"
        try Media.wave(wave, [(440, 0.5)])
        try Media.encode(wave, "flacenc", to: folder.path + "/really-flac.mp3")
        #expect(try outcome(Media.uri(folder.path + "/really-flac.mp3")) == nil)
    }

    @Test func fileOnAWebServer_playsToItsEnd_andErrorsAreReported() throws {
        try Media.wave(folder.path + "/tone.wav", [(440, 1)])
        let server = try Child(
            "python3", ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder.path])
        let line = try #require(server.line { $0.contains("port ") })
        let port = try #require(line.split(separator: "port ").last?.prefix { $0.isNumber })
        // This server cannot seek: playing again is another request.
        stage.player.loops = 1
        var heard = 0.0
        // On a busy machine, the server may run out of data sometimes, and lose sound. A loss by the player would occur
        // each time.
        for _ in 0..<5 where abs(heard - 2) > 0.05 {
            stage.finished = []
            let begin = monotonicNow()
            #expect(try outcome("http://127.0.0.1:\(port)/tone.wav") == nil)
            #expect(stage.until { stage.player.duration != nil })
            heard = stage.ear.sounding(since: begin).seconds
        }
        #expect(abs(heard - 2) <= 0.05, "\(heard) \(stage.states)")
        stage.finished = []
        #expect(try #require(try outcome("http://127.0.0.1:\(port)/none.wav")).contains("does not exist"))
        server.kill()
        stage.failures = []
        let refused = try #require(try outcome("http://127.0.0.1:\(port)/tone.wav"))
        #expect(refused.contains("cannot be read"), "\(refused)")
    }

    @Test func noSoundServer_isReportedAtOnceAndNotAsAFailure() throws {
        let wave = folder.path + "/tone.wav"
        try Media.wave(wave, [(440, 0.5)])
        stage.pulse.kill()
        stage.player.load(uri: Media.uri(wave))
        try stage.player.play()
        #expect(stage.until { !stage.losses.isEmpty })
        #expect(stage.losses.first?.contains("sound server") == true, "\(stage.losses)")
        #expect(stage.player.state == .stopped)
        try stage.pulse.restart()
        try stage.player.play()
        #expect(stage.until { stage.finished == [true] })
        #expect(stage.failures == [])
    }

    @Test func soundServerEnds_isReportedAndTheItemKeepsItsPosition() throws {
        let wave = folder.path + "/tone.wav"
        try Media.wave(wave, [(440, 30)])
        stage.player.load(uri: Media.uri(wave))
        stage.player.seek(to: 10)
        try stage.player.play()
        #expect(stage.hears(440, above: -8))
        #expect(stage.until { stage.player.position > 10.5 })
        let place = stage.player.position
        stage.pulse.kill()
        #expect(stage.until { !stage.losses.isEmpty })
        #expect(stage.losses.count == 1 && stage.losses[0].contains("sound server"), "\(stage.losses)")
        #expect(stage.player.state == .paused)
        #expect(abs(stage.player.position - place) < 1)
        #expect(stage.player.duration == 30)
        stage.player.seek(to: 20)
        #expect(stage.until { stage.seeks.last == 20 })
        try stage.pulse.restart()
        try stage.player.play()
        #expect(stage.until { stage.player.position > 20.2 })
        #expect(stage.player.position < 25)
        #expect(stage.failures == [])
    }

    /// Sparse files: 200 MB that claim to be a tag, before the sound.
    @Test(arguments: ["mp3", "wav", "aiff"]) func tagOf200MB_isSkippedOrRefused_andNeverInMemory(kind: String)
        throws
    {
        let wave = folder.path + "/tone.wav"
        try Media.wave(wave, [(440, 2)])
        let sound = folder.path + "/sound.\(kind)"
        if kind == "mp3" { try Media.encode(wave, "lamemp3enc target=bitrate cbr=true bitrate=128", to: sound) }
        let size = 200 << 20
        let path = folder.path + "/tagged.\(kind)"
        var file = [UInt8]()
        func number(_ order: [Int]) -> [UInt8] { order.map { UInt8(size >> $0 & 255) } }
        switch kind {
        case "mp3": file = Array("ID3".utf8) + [4, 0, 0] + [21, 14, 7, 0].map { UInt8(size >> $0 & 127) }
        case "wav":
            file = Array(try Data(contentsOf: URL(fileURLWithPath: wave)).prefix(36)) + Array("LIST".utf8)
            file += number([0, 8, 16, 24]) + Array("INFO".utf8)
        default:
            let big = [24, 16, 8, 0]
            file = Array("FORM".utf8) + number(big) + Array("AIFFID3 ".utf8) + number(big)
        }
        try Data(file).write(to: URL(fileURLWithPath: path))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seek(toOffset: UInt64(size + file.count))
        try handle.write(contentsOf: Data(contentsOf: URL(fileURLWithPath: kind == "mp3" ? sound : wave)))
        try handle.close()
        let before = Media.peakMemory
        let failure = try outcome(Media.uri(path))
        #expect((failure == nil) == (kind == "mp3"), "\(failure ?? "")")
        if kind == "mp3" {
            #expect(stage.isHeardToItsEnd(440))
            let heard = stage.ear.trace(440, window: 0.01).filter { $0.level > -12 }.count
            #expect(heard > 180 && heard < 220)
        }
        #expect(Media.peakMemory - before < 64 << 20)
    }

    /// The same for formats whose parsers would read all tags into memory, piece by piece.
    @Test(arguments: ["ogg", "flac"]) func tagsOf200MBInPieces_areRefused_andNeverInMemory(kind: String) throws {
        let wave = folder.path + "/tone.wav"
        try Media.wave(wave, [(440, 1)])
        let sound = folder.path + "/sound.\(kind)"
        try Media.encode(wave, kind == "ogg" ? "vorbisenc ! oggmux" : "flacenc", to: sound)
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: sound)))
        let path = folder.path + "/tagged.\(kind)"
        try Data().write(to: URL(fileURLWithPath: path))
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        if kind == "ogg" {
            // The comment packet continues from page to page; their wrong checksums are detected later.
            let first = 27 + Int(whole[26]) + whole[27..<27 + Int(whole[26])].reduce(0) { $0 + Int($1) }
            try file.write(contentsOf: whole.prefix(first))
            let begin = Array("\u{3}vorbis".utf8) + [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 128, 12] + Array("COMMENT=".utf8)
            for number in 1...3_200 {
                var page = Array("OggS".utf8) + [0, number == 1 ? 0 : 1] + [UInt8](repeating: 255, count: 8)
                page += whole[14..<18] + [UInt8(number & 255), UInt8(number >> 8), 0, 0, 0, 0, 0, 0, 255]
                page += [UInt8](repeating: 255, count: 255) + (number == 1 ? begin : [])
                try file.write(contentsOf: page)
                try file.seek(toOffset: UInt64(first + number * (27 + 255 + 65_025)))
            }
            try file.write(contentsOf: whole.dropFirst(first))
        } else {
            try file.write(contentsOf: whole.prefix(4 + 4 + 34))
            for number in 1...13 {
                try file.write(contentsOf: [2, 255, 255, 255] + Array("test".utf8))
                try file.seek(toOffset: UInt64(42 + number * (4 + 0xff_ffff)))
            }
            try file.write(contentsOf: whole.dropFirst(42))
        }
        try file.close()
        let before = Media.peakMemory
        #expect(try #require(try outcome(Media.uri(path))).contains("tags alone"))
        #expect(Media.peakMemory - before < 64 << 20)
    }
}
