import Foundation
import PluginAPI
import TestSupport
import Testing

/// `sessionctl library`: the daemon starts the plugin.
@Suite(.serialized) struct SessionctlLibraryTests {
    @Test func library_isFilledSearchedAndEmptied() throws {
        let stage = try SessionctlMusicStage()
        let empty = try stage.run()
        #expect(empty.code == 0, "\(empty)")
        #expect(empty.output.first == "folders  none; add one with 'sessionctl library add FOLDER'")
        #expect(try stage.run("add", stage.music).output == ["3 files read"])
        let status = try stage.run().output
        #expect(status[0] == "folder   \(stage.music)" && status[1] == "items    3")
        #expect(status.last == "changes  1 folder watched")
        let songs = try stage.run("songs").output.map { $0.split(separator: " ").dropFirst().joined(separator: " ") }
        #expect(
            songs == [
                "TITLE ARTIST TIME ALBUM", "Hunter Björk 0:00 Homogenic", "Jóga Björk 0:00 Homogenic",
                "Thunderstruck AC/DC 0:00 The Razors Edge",
            ])
        #expect(
            try stage.run("albums", "--artist", "bjork").output.last?.hasPrefix("Homogenic  Björk   1997  2") == true)
        #expect(try stage.run("songs", "--title", "UNDER").output.count == 2)
        #expect(
            try stage.run("artists", "--items", "--sort", "-title", "--max", "1").output.last?.contains("Thunderstruck")
                == true)
        #expect(try stage.run("songs", "--genre", "none").output == ["Nothing found."])
        #expect(try stage.run("search", "ac", "dc").output[1].split(separator: " ") == ["100", "%", "artist", "AC/DC"])
        #expect(try stage.run("search", "joga", "--kind", "song").output.count == 2)
        let removed = try stage.run("remove", stage.music)
        #expect(removed.code == 0 && removed.output == ["\(stage.music) is no longer in the library; its files stay"])
        #expect(try stage.run("songs").output == ["Nothing found."])
    }

    @Test func itemsAndPlaylists_areChanged() throws {
        let stage = try SessionctlMusicStage()
        #expect(try stage.run("add", stage.music).code == 0)
        #expect(try stage.run("set", "--rating", "5", "--bookmark", "61", stage.music + "/1.mp3").code == 0)
        #expect(try stage.run("songs", "--rating", "5").output.last?.contains("0:00 at 1:01") == true)
        let made = try stage.run("playlist", "create", "Road trip", stage.music + "/3.mp3", stage.music + "/1.mp3")
        #expect(made.code == 0 && UInt64(made.output.first ?? "") != nil, "\(made)")
        #expect(
            try stage.run("songs", "--playlist", "road trip").output.dropFirst().first?.contains("Thunderstruck")
                == true)
        #expect(try stage.run("playlist", "set", "Road trip", stage.music + "/2.mp3").code == 0)
        #expect(try stage.run("playlist", "rename", "Road trip", "Home").code == 0)
        #expect(try stage.run("songs", "--playlist", "Home").output.count == 2)
        #expect(try stage.run("playlist", "delete", "home").code == 0)
        #expect(try stage.run("playlists").output == ["Nothing found."])
    }

    /// Root may read every folder, so another user asks.
    @Test func folderThatTheUserMayNotRead_isRefused() throws {
        let home = try PrivateFolder()
        chmod(home.path, 0o755)
        let folder = try home.folder("Private")
        chmod(folder, 0o700)
        let words = [
            "--reuid=nobody", "--clear-groups", try builtProduct(named: "sessionctl"), "library", "add", folder,
        ]
        let child = try Child("setpriv", words, environment: ["PATH": "/usr/bin:/bin", "HOME": "/nowhere"])
        let outcome = try SessionctlStage.outcome(of: child, words)
        #expect(outcome.code == 1 && outcome.complaint.hasSuffix("Permission denied"), "\(outcome)")
    }

    @Test func mistakes_areExplained() throws {
        let stage = try SessionctlMusicStage()
        #expect(
            try stage.run("add", stage.home.path + "/missing").errors.first?.hasSuffix("No such file or directory")
                == true)
        #expect(
            try stage.run("remove", "/nothing").errors.first?.contains("'/nothing' is not a folder of the library")
                == true
        )
        #expect(try stage.run("scan", "/usr").errors.first?.contains("add it") == true)
        #expect(try stage.run("songs", "--playlist", "x").errors.first?.contains("there is no playlist 'x'") == true)
        #expect(try stage.run("set", "1").code == 64)
        #expect(try stage.run("set", "--rating", "5", "/x.mp3").errors.first?.contains("no such item") == true)
        #expect(try stage.run("songs", "--sort", "colour").errors.first?.contains("'sort' has no 'colour'") == true)
        #expect(try stage.run("tapes").code == 64)
    }

    @Test func scan_isFollowedAndListedAsAJob() throws {
        let stage = try SessionctlMusicStage()
        #expect(try stage.run("add", stage.music, "--detach").code == 0)
        let scan = try stage.run("scan", "--full", "--json")
        #expect(scan.code == 0 && scan.output.last?.contains("\"State\":\"finished\"") == true, "\(scan)")
        let detached = try stage.run("scan", "--detach")
        #expect(detached.output.first?.hasPrefix("scanning as job library/") == true, "\(detached)")
        #expect(try stage.run("songs").output.count == 4)
        try stage.song("4.mp3", ["TIT2": "New"])
        #expect(try stage.run("scan").code == 0)
        #expect(try stage.run("songs").output.count == 5)
    }
}
