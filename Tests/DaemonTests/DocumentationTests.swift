import DBus
import Foundation
import TestSupport
import Testing

/// The commands in README and docs work as they are written. `ExampleTests` runs the scenarios, `Scripts/check docs`
/// type-checks the Swift code, and `PluginTests` compares the plugins of docs/plugins.md with tested files.
@Suite(.serialized) struct DocumentationTests {
    /// The known tags of code blocks.
    private static let known: Set<String> = [
        // Run, checked or compared.
        "sh", "ini", "scenario", "swift", "python",
        // Not run: terminal output, other text, pictures made of text, iOS code, a part of a package's manifest.
        "console", "text", "", "swift ios", "swift manifest",
    ]

    @Test func block_isRunOrMarkedAsNotRun() {
        #expect(PageBlock.all.count > 40)
        for block in PageBlock.all { #expect(Self.known.contains(block.tag), "\(block): '\(block.tag)'") }
    }

    /// Runs the lines one after the other, as a user types them. After a line that ends with &, waits until its program
    /// has a session.
    @Test(arguments: PageBlock.all.filter { $0.tag == "sh" }) func shellBlock_runs(_ block: PageBlock) throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let folder = try PrivateFolder()
        for (name, seconds) in [("music", 30.0), ("story", 30.0), ("answer", 0.5), ("alarm", 0.5), ("chime", 0.2)] {
            try WaveFile.write(
                WaveFile.sines([(440, seconds)], rate: 8_000), rate: 8_000, to: "\(folder.path)/\(name).wav")
        }
        for file in ["example-tone", "tone.plugin"] {
            try FileManager.default.copyItem(
                atPath: "\(repository.path)/Examples/Plugins/tone/\(file)", toPath: "\(folder.path)/\(file)")
        }
        // What a page calls a server of files.
        let server = try block.text.contains(DocumentationTests.filesOfAnExample) ? UploadServer() : nil
        try UploadPlugin.install(below: pulse.folder.path)
        if block.text.contains("sessionctl library") || block.text.contains("album:") {
            try fillLibrary(of: pulse.folder.path, stage)
        }
        let shell = try Child("bash", ["-eu"], environment: try stage.programs(), folder: folder.path)
        func count() throws -> Int { try stage.daemon.manager("ListSessions")[0].arrayValue?.count ?? 0 }
        var text = block.text
        if let server {
            text = text.replacingOccurrences(of: Self.filesOfAnExample + "/upload/", with: server.url("tus"))
                .replacingOccurrences(of: Self.filesOfAnExample + "/", with: server.url(""))
        }
        for (number, line) in Self.commands(text).enumerated() {
            let before = try count()
            shell.send(line + "\necho line \(number) was run")
            #expect(
                shell.line(timeout: 60) { $0 == "line \(number) was run" } != nil,
                "\(line): \(shell.text) \(shell.errors)")
            if line.hasSuffix("&") {
                #expect(try eventually(timeout: 60) { try count() > before }, "\(line): \(shell.errors)")
            }
        }
        shell.closeInput()
        #expect(shell.wait() == .code(0), "\(shell.errors)")
        #expect(shell.errors == [], "\(stage.daemon.daemon.errors) \(pulse.log)")
        withExtendedLifetime(pulse) {}
    }

    /// What the page of the library calls the user's music, which has been scanned.
    private func fillLibrary(of home: String, _ stage: SessionctlStage) throws {
        try FileManager.default.copyItem(
            atPath: repository.path + "/data/plugins/library.plugin",
            toPath: home + "/.local/share/sessiond/plugins/library.plugin")
        for folder in ["Music", "Lectures"] { mkdir(home + "/" + folder, 0o700) }
        for name in ["a", "b", "interview"] {
            let bytes = TaggedMP3.bytes(["TIT2": name, "TPE1": "Somebody", "TALB": "Album"])
            try Data(bytes).write(to: URL(fileURLWithPath: "\(home)/Music/\(name).mp3"))
        }
        let scan = try Child(
            try builtProduct(named: "sessionctl"), ["library", "scan"], environment: try stage.programs())
        #expect(scan.wait(timeout: 60) == .code(0), "\(scan.errors)")
    }

    private static let filesOfAnExample = "https://files.example.org"

    /// The lines of a block. Continued lines are joined.
    private static func commands(_ text: String) -> [String] {
        text.replacingOccurrences(of: "\\\n", with: " ").split(separator: "\n").map(String.init)
    }

    /// All `ini` blocks except manifests are settings of the daemon. `PluginTests` compares the manifests.
    @Test func settings_areAcceptedByTheDaemon() throws {
        let blocks = PageBlock.all.filter { $0.tag == "ini" && !$0.text.hasPrefix("[sessiond Plugin]") }
        #expect(blocks.count >= 2)
        for block in blocks {
            let stage = try DaemonStage(settings: block.text)
            // Complaints about settings come before this line. There is no sound server.
            #expect(stage.daemon.line { $0.contains(" serves org.sessiond1 ") } != nil)
            let known = [" serves org.sessiond1 ", "no connection to the sound server"]
            #expect(stage.daemon.errors.filter { line in !known.contains(where: line.contains) } == [], "\(block)")
        }
    }

    /// The options of commands that the documents show exist.
    @Test func commandThatIsShown_hasThoseOptions() throws {
        let shown = PageBlock.all.filter { ["console", "sh"].contains($0.tag) }.flatMap { block in
            Self.commands(block.text).filter { block.tag == "sh" || $0.hasPrefix("$ ") }.map { (block, $0) }
        }
        var help: [String: String] = [:]
        var count = 0
        for (block, line) in shown {
            let words = line.split(separator: " ").map(String.init)
            guard let start = words.firstIndex(of: "sessionctl"), start + 1 < words.count else { continue }
            // The arguments after -- belong to another program.
            let own = words[(start + 1)...].prefix { $0 != "--" }
            let command = own.first ?? ""
            let parts =
                switch command {
                case "library": ["list", "search", "scan", "add", "set", "playlist", "pick", "share"]
                case "camera": ["list", "photo", "record", "preview", "frames"]
                default: [String]()
                }
            let text =
                try help[command]
                ?? ([[command]] + parts.map { [command, $0] }).map { words in
                    try Child.run(try builtProduct(named: "sessionctl"), ["help"] + words)
                }.joined()
            help[command] = text
            for option in own where option.hasPrefix("--") {
                #expect(text.contains(option), "\(block): sessionctl \(command) has no \(option)")
            }
            count += 1
        }
        #expect(count >= 12)
    }
}
