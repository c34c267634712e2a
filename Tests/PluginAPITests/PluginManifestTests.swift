import Foundation
import PluginAPI
import Testing

@Suite struct PluginManifestTests {
    private static let complete = [
        "Id": "org.example.tone", "Name": "Tone", "Kind": "player", "Exec": "tone --loud", "Version": "1.0",
        "Schemes": "file;HTTP;", "MimeTypes": "audio/x-wav;audio/*;",
    ]

    private func manifest(changing key: String = "", to value: String? = nil) throws -> PluginManifest {
        var fields = Self.complete
        if !key.isEmpty { fields[key] = value }
        let lines = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }
        return try PluginManifest(bytes: Array(("[sessiond Plugin]\n" + lines.joined()).utf8), file: "tone.plugin")
    }

    @Test func completeManifest_isRead() throws {
        let manifest = try manifest(changing: "Name[de]", to: "Ton")
        #expect(manifest.id == "org.example.tone")
        #expect(manifest.name == "Tone")
        #expect(manifest.names == ["": "Tone", "de": "Ton"])
        #expect(manifest.kind == PluginKind.player.word)
        #expect(manifest.exec == ["tone", "--loud"])
        #expect(manifest.version == "1.0")
        #expect(manifest.schemes == ["file", "http"])
        #expect(manifest.mimeTypes == ["audio/x-wav", "audio/*"])
    }

    @Test func schemesAndTypes_mayBeMissing() throws {
        #expect(try manifest(changing: "Schemes", to: nil).schemes == [])
        #expect(try manifest(changing: "MimeTypes", to: "").mimeTypes == [])
    }

    @Test(arguments: ["Id", "Name", "Kind", "Exec", "Version"])
    func missingField_isRefusedAtItsSection(key: String) {
        let error = #expect(throws: KeyFileError.self) { try manifest(changing: key, to: nil) }
        #expect(error?.message.contains("add \(key)=") == true)
        #expect(error?.position == KeyFile.Position(line: 1, column: 1))
    }

    @Test(arguments: [
        ("Id", ""), ("Id", "Tone"), ("Id", "1tone"), ("Id", "a/b"), ("Id", "../x"), ("Name", ""), ("Kind", "my player"),
        ("Kind", ""), ("Exec", ""), ("Exec", "./tone"), ("Exec", "bin/tone"), ("Exec", "tone \"open"),
        ("Exec", "tone | sh"),
        ("Exec", "tone %u"), ("Exec", "\"\""), ("Exec", "$HOME/tone"), ("Schemes", "http://"), ("Schemes", "file;FILE"),
        ("Schemes", "4x"), ("MimeTypes", "audio"), ("MimeTypes", "audio/"), ("MimeTypes", "a/b/c"), ("Color", "red"),
        ("name", "x"),
    ])
    func illegalField_isRefusedNamingIt(key: String, value: String) {
        let error = #expect(throws: KeyFileError.self) { try manifest(changing: key, to: value) }
        #expect((error?.position.line ?? 0) > 1)
        #expect(error.map { "\($0)" }?.hasPrefix("tone.plugin:") == true)
    }

    @Test(arguments: [
        ("tone", ["tone"]), ("/usr/bin/tone  -x", ["/usr/bin/tone", "-x"]), (#"tone "a b" """#, ["tone", "a b", ""]),
        (#"tone a"b c"d"#, ["tone", "ab cd"]), (#"tone "a\\"b""#, ["tone", "a\"b"]),
    ])
    func exec_isSplitIntoWords(text: String, words: [String]) throws {
        #expect(try manifest(changing: "Exec", to: text).exec == words)
    }

    @Test func otherSection_isRefused() {
        for text in ["", "[Desktop Entry]\nName=x", "[sessiond Plugin]\n[more]"] {
            #expect(throws: KeyFileError.self) { try PluginManifest(bytes: Array(text.utf8), file: "f") }
        }
    }

    @Test func opening_followsSchemesAndTypes() throws {
        let manifest = try manifest()
        #expect(manifest.opens(scheme: "FILE", mimeType: nil))
        #expect(manifest.opens(scheme: "file", mimeType: "audio/flac"))
        #expect(!manifest.opens(scheme: "file", mimeType: "video/mp4"))
        #expect(!manifest.opens(scheme: "ftp", mimeType: nil))
        #expect(try self.manifest(changing: "MimeTypes", to: nil).opens(scheme: "file", mimeType: "video/mp4"))
    }

    @Test func manualPage_namesEveryField() throws {
        let page = try Repository.text("man/sessiond-plugin.5")
        for key in PluginManifest.keys { #expect(page.contains(".It Cm \(key)\n"), "\(key)") }
        #expect(page.contains("[\(PluginManifest.section)]"))
    }
}

/// Files of the source tree, for tests that compare code, data and manual pages.
enum Repository {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: root.appendingPathComponent(path)))
    }

    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }
}

@Suite struct PluginChoiceTests {
    private func manifest(_ id: String, _ more: String) throws -> PluginManifest {
        let text = "[sessiond Plugin]\nId=\(id)\nName=x\nKind=player\nExec=x\nVersion=1\nSchemes=file;http;\n\(more)\n"
        return try PluginManifest(bytes: Array(text.utf8), file: "x.plugin")
    }

    @Test(arguments: [
        ("file:///a/b.flac", "exact"), ("file:///a/b.FLAC?x#y", "exact"), ("file:///a.mp3", "family"),
        ("file:///a/b.txt", "any"), ("file:///a/flac", "any"), ("file:///x.mp4", "any"), ("a.flac", "exact"),
        ("gopher://x.flac", ""),
    ])
    func uri_isOpenedByTheBestMatch(uri: String, id: String) throws {
        let manifests = try [
            manifest("family", "MimeTypes=audio/*;"), manifest("any", ""), manifest("exact", "MimeTypes=audio/flac;"),
            manifest("later", "MimeTypes=audio/flac;"), manifest("newer", "MimeTypes=audio/flac;\nInterface=2"),
        ]
        #expect(PluginManifest.choose(from: manifests, kind: "player", uri: uri)?.id ?? "" == id)
        #expect(PluginManifest.choose(from: manifests, kind: "recorder", uri: uri) == nil)
    }

    @Test(arguments: ["wav", "wave", "flac", "ogg", "oga", "opus", "mp3", "aac", "m4a", "mp4"])
    func sessiondRecorder_isChosenForItsFormats(ending: String) throws {
        let recorder = try PluginManifest(bytes: try Repository.bytes("data/plugins/recorder.plugin"), file: "x.plugin")
        #expect(RecordingFormat(path: "take." + ending) != nil)
        let uri = "file:///take." + ending
        #expect(PluginManifest.choose(from: [recorder], kind: "recorder", uri: uri)?.id == recorder.id)
    }

    @Test func registeredPlugin_comesAfterInstalledOnes() throws {
        let guest = PluginManifest(
            registered: "guest", name: nil, kind: "player", version: nil, schemes: ["FILE", "zap"],
            mimeTypes: ["audio/flac"])
        let manifests = try [guest, manifest("any", "")]
        #expect(PluginManifest.choose(from: manifests, kind: "player", uri: "file:///a.flac")?.id == "any")
        #expect(PluginManifest.choose(from: manifests, kind: "player", uri: "zap://a.flac")?.id == "guest")
        #expect(PluginManifest.choose(from: manifests, kind: "player", uri: "zap://a.mp3") == nil)
        let newer = try manifest("newer", "Interface=2")
        #expect(PluginManifest.choose(from: [newer, guest], kind: "player", uri: "file:///a.flac")?.id == "guest")
    }

    @Test func onlyPluginOfAnotherVersion_isChosenForTheErrorMessage() throws {
        let newer = try manifest("newer", "Interface=2\nIdleTimeout=0")
        #expect(PluginManifest.choose(from: [newer], kind: "player", uri: "file:///x")?.interface == 2)
        #expect(newer.idleTimeout == 0)
        #expect(throws: KeyFileError.self) { try manifest("x", "Interface=two") }
        #expect(throws: KeyFileError.self) { try manifest("x", "IdleTimeout=-1") }
    }
}
