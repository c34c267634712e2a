import Foundation
import PluginAPI
import TestSupport
import Testing
import VideoBackend

@testable import GStreamerBackend

/// What a viewer chooses of a film: its sound, its subtitles, one picture after the other.
@Suite(.serialized) struct FilmTracksTests {
    /// Bright pixels below the middle, where the pictures before number 128 are black.
    private func letters(_ stage: FilmStage) -> Int {
        stage.screen?.pixels(x: 160, y: 100, width: 100, height: 75).filter { $0 > 150 }.count ?? -1
    }

    @Test func tracks_areKnown_andAnotherSoundIsHeard() throws {
        let stage = try FilmStage("tracks.mkv")
        #expect(throws: SessionError.self) { try stage.player.select(.audio, 0) }
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        let tracks = stage.player.tracks
        #expect(tracks.map(\.kind) == [.video, .audio, .audio, .subtitle, .subtitle])
        #expect(tracks.map(\.isSelected) == [true, true, false, false, false])
        #expect(tracks[1].language == "en" && tracks[2].language == "de" && tracks[2].title == "Commentary")
        #expect(tracks[4].language == "de" && tracks[2].codec.lowercased().contains("aac"))
        try stage.player.play()
        #expect(stage.until { stage.ear.level(of: 440) > -40 })
        try stage.player.select(.audio, 1)
        #expect(stage.until { stage.ear.level(of: 880) > -40 && stage.ear.level(of: 440) < -60 })
        #expect(stage.until { abs(Double(stage.number) / 25 - stage.player.position) < 0.2 })
        // And back, while it is paused.
        stage.player.pause()
        try stage.player.select(.audio, 0)
        try stage.player.play()
        #expect(stage.until { stage.ear.level(of: 440) > -40 && stage.ear.level(of: 880) < -60 })
        stage.player.seek(to: 11.5)
        #expect(stage.until { stage.finished == 1 })
        for (kind, number) in [(TrackKind.audio, 2), (.subtitle, 2), (.audio, nil), (.video, 0)] as [(TrackKind, Int?)]
        {
            #expect(throws: SessionError.self) { try stage.player.select(kind, number) }
        }
        #expect(stage.failures == [])
    }

    @Test func subtitlesOfTheFilm_areDrawnInTheirTime() throws {
        let stage = try FilmStage("tracks.mkv")
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        // In Matroska, the pictures are 21 ms later: the sound begins before them.
        stage.player.seek(to: 3.03)
        #expect(stage.until { stage.number == 75 })
        try stage.player.select(.subtitle, 1)
        #expect(stage.player.tracks.map(\.isSelected) == [true, true, false, false, true])
        try stage.player.play()
        #expect(stage.until { (101...127).contains(stage.number) && letters(stage) > 50 })
        stage.player.pause()
        // Before it, and after it, none is seen.
        stage.player.seek(to: 3.43)
        #expect(stage.until { stage.number == 85 && letters(stage) == 0 })
        stage.player.seek(to: 4.83)
        #expect(stage.until { stage.number == 120 && letters(stage) > 50 })
        try stage.player.select(.subtitle, nil)
        #expect(stage.until { letters(stage) == 0 })
        #expect(stage.failures == [])
    }

    /// Each of these places is after a key frame that is later than the beginning of the subtitle.
    @Test(arguments: ["long-words.mkv", "long-words-station.mkv"])
    func subtitlesOfTheFilm_thatBeganBeforeASeek_areShown(name: String) throws {
        let stage = try FilmStage(name)
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        try stage.player.select(.subtitle, 0)
        for (time, isShown) in [(5.0, true), (8.5, true), (6.5, false), (4.2, true), (6.7, false), (9.0, true)] {
            stage.player.seek(to: time + 0.021)
            #expect(
                stage.until { abs(stage.number - Int(time * 25)) <= 1 && (letters(stage) > 50) == isShown }, "\(time)")
        }
        // Chosen when it is there already, and while it plays.
        try stage.player.select(.subtitle, nil)
        stage.player.load(uri: stage.player.uri ?? "")
        stage.player.seek(to: 4.5)
        #expect(stage.until { stage.film.isReady && stage.number > 100 })
        try stage.player.select(.subtitle, 0)
        #expect(stage.until { letters(stage) > 50 })
        try stage.player.play()
        stage.player.seek(to: 8.2)
        #expect(stage.until { (205...230).contains(stage.number) && letters(stage) > 50 })
        #expect(stage.failures == [])
    }

    @Test func subtitlesOfAFilmOfTheWeb_thatBeganBeforeASeek_areShown() throws {
        let origin = try OriginServer()
        try FileManager.default.copyItem(
            atPath: try TestMedia.named("long-words.mkv").path(), toPath: origin.folder.path + "/film.mkv")
        let stage = try FilmStage("long-words.mkv")
        stage.player.load(uri: origin.url("film.mkv"))
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        try stage.player.select(.subtitle, 0)
        for (time, isShown) in [(5.0, true), (8.5, true), (6.5, false), (9.0, true)] {
            stage.player.seek(to: time + 0.021)
            #expect(
                stage.until { abs(stage.number - Int(time * 25)) <= 1 && (letters(stage) > 50) == isShown }, "\(time)")
        }
        // Chosen when it is there already, and while it plays.
        stage.player.load(uri: origin.url("film.mkv"))
        stage.player.seek(to: 4.5)
        #expect(stage.until { stage.film.isReady && stage.number > 100 })
        try stage.player.play()
        try stage.player.select(.subtitle, 0)
        #expect(stage.until { (113...140).contains(stage.number) && letters(stage) > 50 }, "\(stage.number)")
        #expect(stage.failures == [])
    }

    @Test(arguments: ["chapters.mkv", "chapters.mp4", "short-gop.mp4"]) func chapters_areKnown(name: String) throws {
        let stage = try FilmStage(name)
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        let expected = name.hasPrefix("chapters") ? [(0.0, "Opening"), (4, "Middle"), (8, "End & credits")] : []
        #expect(stage.player.chapters == expected.map { MediaChapter(start: $0, title: $1) })
        // Also after a seek, and those of the film before it are not those of the next one.
        stage.player.seek(to: 5)
        #expect(stage.until { stage.number > 100 })
        #expect(stage.player.chapters.count == expected.count)
        stage.player.load(uri: "file://" + (try TestMedia.named("long-gop.mp4").path()))
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        #expect(stage.player.chapters.isEmpty)
    }

    @Test(arguments: ["srt", "vtt", "ass"]) func subtitlesBesideTheFilm_areShown_unlessNotWanted(kind: String) throws {
        let folder = try PrivateFolder()
        let film = folder.path + "/film.mp4"
        try FileManager.default.copyItem(atPath: try TestMedia.named("short-gop.mp4").path(), toPath: film)
        try Self.texts[kind]?.write(toFile: folder.path + "/film.\(kind)", atomically: true, encoding: .utf8)
        try Self.texts["srt"]?.write(toFile: folder.path + "/film.de.srt", atomically: true, encoding: .utf8)
        try "no subtitles".write(toFile: folder.path + "/film.fr.srt", atomically: true, encoding: .utf8)
        let stage = try FilmStage(film)
        stage.player.seek(to: 4.501)
        #expect(stage.until { stage.film.isReady && stage.number == 112 && letters(stage) > 50 })
        #expect(stage.player.tracks.suffix(2).map(\.title) == ["film.\(kind)", "film.de.srt"])
        #expect(stage.player.tracks.map(\.isSelected) == [true, true, true, false])
        try stage.player.select(.subtitle, nil)
        #expect(stage.until { letters(stage) == 0 })
        // One that is given.
        let other = folder.path + "/other.\(kind)"
        try Self.texts[kind]?.write(toFile: other, atomically: true, encoding: .utf8)
        try stage.player.addSubtitles(uri: "file://" + other)
        #expect(stage.until { letters(stage) > 50 })
        for bad in ["file://\(folder.path)/film.fr.srt", "file:///no/such.srt", "http://localhost/a.srt"] {
            #expect(throws: SessionError.self) { try stage.player.addSubtitles(uri: bad) }
        }
    }

    private static let texts = [
        "srt": "1\r\n00:00:04,000 --> 00:00:06,000\r\n<i>SUBTITLE</i> & more\r\n",
        "vtt": "WEBVTT\n\n00:04.000 --> 00:06.000 line:0\n<c.x>SUBTITLE</c> &amp; more\n",
        "ass": """
        [Script Info]
        [Events]
        Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
        Dialogue: 0,0:00:04.00,0:00:06.00,Default,,0,0,0,,{\\i1}SUBTITLE{\\i0}, and more
        """,
    ]

    @Test func step_showsEachPictureInBothDirections() throws {
        let stage = try FilmStage("long-gop.mp4")
        #expect(throws: SessionError.self) { try stage.player.step(1) }
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        for number in 1...3 {
            try stage.player.step(1)
            #expect(stage.until { stage.number == number }, "\(stage.number)")
        }
        #expect(stage.player.state == .paused)
        for number in [2, 1, 0] {
            try stage.player.step(-1)
            #expect(stage.until { stage.number == number }, "\(stage.number)")
        }
        // Several at once, from the place of a seek, and more than there are.
        stage.player.seek(to: 4.03)
        for _ in 0..<3 { try stage.player.step(1) }
        #expect(stage.until { stage.number == 103 })
        try stage.player.step(-10)
        #expect(stage.until { stage.number == 93 })
        try stage.player.step(-1_000)
        #expect(stage.until { stage.number == 0 })
        // It goes on from there, in step.
        try stage.player.play()
        #expect(stage.until { stage.number > 10 && stage.ear.level(of: 440) > -40 })
        #expect(stage.until { abs(Double(stage.number) / 25 - stage.player.position) < 0.2 })
        // While it plays, a step pauses.
        try stage.player.step(1)
        #expect(stage.player.state == .paused)
        #expect(stage.failures == [])
    }

    /// The first picture of this film begins after its sound.
    @Test(arguments: [false, true]) func stepFromTheFirstPicture_isShown_alsoAfterAnotherSound(isChosen: Bool) throws {
        let stage = try FilmStage("tracks.mkv")
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        if isChosen { try stage.player.select(.audio, 1) }
        #expect(stage.until { (try? stage.player.step(3)) != nil })
        #expect(stage.until { stage.number == 3 }, "\(stage.number)")
        try stage.player.step(-2)
        #expect(stage.until { stage.number == 1 }, "\(stage.number)")
    }

    @Test func stepsFromTheEnd_goBack() throws {
        let stage = try FilmStage("short-gop.mp4")
        stage.player.seek(to: 11.7)
        try stage.player.play()
        #expect(stage.until { stage.finished == 1 && stage.number >= 296 })
        try stage.player.step(1)
        try stage.player.step(-20)
        #expect(stage.until { (276...280).contains(stage.number) }, "\(stage.number)")
        #expect(stage.player.state == .paused && stage.finished == 1)
    }

    @Test func timesOfSteps_areInTheMiddleOfPictures() {
        for number in 0..<100 as Range<UInt> {
            for clipped in [0, 13, 39] as [UInt] {
                let shown = PictureTimes(start: number * 40 + clipped, end: number * 40 + 40, usual: 40)
                for steps in -120...120 {
                    let target = max(0, Int(number) + steps)
                    let time = Int(shown.time(after: steps))
                    #expect(time / 40 == target, "\(number) \(steps)")
                }
            }
        }
    }

    @Test func noteOfAKey_isDrawnForAWhile() throws {
        let stage = try FilmStage("short-gop.mp4")
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        func isDrawn() -> Bool { stage.screen?.pixels(width: 160, height: 60).contains { $0 > 150 } == true }
        #expect(!isDrawn())
        stage.film.note("0:00 / <0:12>")
        #expect(stage.until { isDrawn() })
        #expect(stage.until { !isDrawn() })
        #expect(stage.number == 0)
    }
}
