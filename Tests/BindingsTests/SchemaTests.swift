import Foundation
import TestSupport
import Testing

/// The JSON output of `sessionctl` agrees with the schema in `data/schema`.
@Suite(.serialized) struct SchemaTests {
    private static let file = repository.path + "/data/schema/sessionctl.schema.json"
    private static let outputs = [
        "status", "list", "show", "explain", "history", "monitor", "route", "plugins", "doctor", "simulate",
    ]

    private let definitions: [String: [String: Any]]

    init() throws {
        let schema = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: Self.file)))
        definitions = try #require((schema as? [String: Any])?["$defs"] as? [String: [String: Any]])
    }

    /// Validates every line with the schema, and also with a stricter one that forbids unknown members.
    private static let validator = """
        import copy, json, sys
        import jsonschema
        schema = json.load(open(sys.argv[1], encoding='utf-8'))
        jsonschema.Draft202012Validator.check_schema(schema)
        def close(node):
            if isinstance(node, list):
                for part in node: close(part)
            if isinstance(node, dict):
                for key, part in node.items():
                    if key != 'if': close(part)
                if node.get('type') == 'object' and 'additionalProperties' not in node:
                    node['unevaluatedProperties'] = False
        closed = copy.deepcopy(schema)
        close(closed)
        validators = [jsonschema.Draft202012Validator(one) for one in (schema, closed)]
        wrong = 0
        for line in open(sys.argv[2], encoding='utf-8'):
            value = json.loads(line)
            for validator in validators:
                # A member whose value is wrong counts as one without a name, too.
                errors = list(validator.iter_errors(value))
                if errors:
                    wrong += 1
                    deepest = max(errors, key=lambda error: len(error.absolute_path))
                    print(f'{deepest.json_path}: {deepest.message[:300]} in {line[:200]}')
                    break
        sys.exit(wrong > 0)
        """

    private func expectValid(_ lines: [String]) throws {
        let folder = try PrivateFolder()
        let file = try folder.file("lines", lines.joined(separator: "\n") + "\n")
        let child = try Child("/usr/bin/python3", ["-c", Self.validator, Self.file, file])
        #expect(child.wait(timeout: 120) == .code(0), "\((child.output + child.errors).prefix(10))")
    }

    private static func name(of line: String) -> String? {
        let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return (object?["Schema"] as? String).map { String($0.prefix { $0 != "/" }) }
    }

    @Test func everyOutput_matchesItsSchema() throws {
        let pulse = try ServerKind.standard.server()
        let folder = try PrivateFolder()
        let plugins = try folder.folder("sessiond/plugins")
        for kind in ["player", "recorder", "effects"] {
            try FileManager.default.copyItem(
                atPath: repository.path + "/data/plugins/\(kind).plugin", toPath: "\(plugins)/\(kind).plugin")
        }
        let desk = try Desk(pulse: pulse, more: ["XDG_DATA_DIRS": folder.path])
        #expect(eventually { (try? desk.sessionctl("status", "--json"))?.contains("\"ServerConnected\":true") == true })
        let monitor = try desk.start("exec sessionctl monitor --json")
        let watch = try desk.start("exec sessionctl status --watch --json")
        // The test cannot see when the monitor has subscribed.
        #expect(
            try eventually {
                try desk.sessionctl("silent", "on")
                try desk.sessionctl("silent", "off")
                return monitor.text.contains("SilentMode") && watch.text.contains("\n")
            })

        // Causes all kinds of effects and requests: adopts, interrupts, ducks and routes programs.
        let music = try Tone.program(pulse, hertz: 440, name: "Music")
        let radio = try desk.start("exec sessionctl run --name Radio -- sleep 600")
        #expect(eventually { (try? desk.sessionctl("list"))?.contains("Radio") == true })
        let call = try desk.call()
        let refused = try desk.start("exec sessionctl run --name Late --category record -- true")
        #expect(refused.wait() == .code(1))
        var lines: [String] = []
        func read(_ words: [String]) throws {
            let child = try desk.start("exec sessionctl \(words.joined(separator: " ")) --json")
            #expect(child.wait(timeout: 30) != nil, "\(words)")
            #expect(child.output.count == 1, "\(words) \(child.errors)")
            lines += child.output
        }
        for session in ["Radio", "Phone"] {
            try read(["explain", session])
            try read(["show", session])
        }
        call.closeInput()
        #expect(call.wait() == .code(0))
        let prompt = try desk.start(
            "exec sessionctl run --name Prompt --mode voice-prompt --option duck-others -- sh -c 'echo speaking; cat'")
        #expect(prompt.line { $0 == "speaking" } != nil)
        try read(["status"])
        prompt.closeInput()
        #expect(prompt.wait() == .code(0))
        let phones = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(monitor.line { $0.contains("RouteChanged") && $0.contains("phones") } != nil)
        try pulse.unloadModule(phones)
        #expect(monitor.line { $0.contains("\"reason\":2") } != nil)
        for words in [["list"], ["history", "--all"], ["route"], ["plugins"], ["doctor"]] { try read(words) }
        let scenarios = repository.path + "/Examples/Scenarios"
        for file in try FileManager.default.contentsOfDirectory(atPath: scenarios) {
            try read(["simulate", "\(scenarios)/\(file)"])
        }
        let failing = try folder.file(
            "failing.scenario", "session a \"A\" playback\nactivate a\nexpect a interrupted\n")
        try read(["simulate", failing])
        #expect(lines.last?.contains("\"failures\":[{") == true)
        radio.signal(SIGTERM)
        #expect(radio.wait() == .code(143))
        pulse.kill()
        #expect(monitor.line { $0.contains("ServicesLost") } != nil)
        try pulse.restart()
        #expect(monitor.line { $0.contains("ServicesReset") } != nil)
        desk.daemon.kill()
        #expect(watch.line { $0 == "null" } != nil)
        #expect(monitor.line { $0.contains("NameOwnerChanged") } != nil)
        lines += watch.output + monitor.output

        #expect(Set(lines.compactMap(Self.name)) == Set(Self.outputs))
        #expect(lines.allSatisfy { $0 == "null" || Self.name(of: $0) != nil })
        try expectValid(lines)
        withExtendedLifetime(music) {}
    }

    /// The commands for films and uploads.
    @Test func outputsAboutFiles_matchTheirSchema() throws {
        let folder = try PrivateFolder()
        let plugins = try folder.folder("sessiond/plugins")
        for kind in ["assets", "transfer", "library"] {
            try FileManager.default.copyItem(
                atPath: repository.path + "/data/plugins/\(kind).plugin", toPath: "\(plugins)/\(kind).plugin")
        }
        let desk = try Desk(more: [
            "XDG_DATA_DIRS": folder.path, "XDG_CACHE_HOME": folder.path, "XDG_DATA_HOME": folder.path + "/data",
            "HOME": folder.path,
        ])
        let film = folder.path + "/film.mp4"
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=160x120:r=10:d=2", "-pix_fmt", "yuv420p", film])
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=d=1", "-metadata", "title=Film", "-metadata",
                "genre=Rock",
                folder.path + "/film.flac",
            ])
        var lines: [String] = []
        func read(_ command: String, exit: Int32 = 0) throws {
            let child = try desk.start("cd \(folder.path) && exec sessionctl \(command) --json")
            #expect(child.wait(timeout: 60) == .code(exit), "\(command): \(child.errors)")
            #expect(!child.output.isEmpty, "\(command)")
            lines += child.output
        }
        try read("inspect film.mp4")
        try read("thumbnail film.mp4")
        try read("thumbnail film.mp4 --at 0.5,1 -o shot-%d.jpg")
        try read("export film.mp4 small.mp4 --estimate")
        try read("export film.mp4 small.mp4 --preset low")
        try read("upload film.mp4 http://127.0.0.1:1/missing --detach")
        try read("library add .")
        try read("library --failed")
        try read("library songs")
        try read("library genres")
        try read("library search film")
        try read("library scan")
        try read("jobs")
        let outputs = Set(lines.compactMap(Self.name))
        #expect(
            outputs == [
                "inspect", "thumbnail", "image", "estimate", "export", "upload", "library", "items", "collections",
                "findings",
                "scan", "jobs",
            ])
        try expectValid(lines)
    }

    /// The outputs in the golden files also agree with the schema.
    @Test func goldenOutputs_matchTheirSchema() throws {
        var lines: [String] = []
        for file in ["sessionctl.txt", "monitor.txt"] {
            let text = try String(contentsOfFile: repository.path + "/Tests/Golden/" + file, encoding: .utf8)
            lines += text.split(separator: "\n").map(String.init).filter { $0.hasPrefix("{") }
        }
        #expect(lines.count > 30)
        // Numbers that differ from run to run are words in the files.
        try expectValid(lines.map { $0.replacing(/":(TIME|NUMBER|PID)\b/, with: "\":1") })
    }

    /// The program in docs/stability.md, with the path of the schema in the repository.
    @Test func documentedProgram_validatesTheStatus() throws {
        let desk = try Desk()
        let program = try #require(PageBlock.all.first { $0.page == "docs/stability.md" && $0.tag == "python" })
        let installed = "/usr/share/sessiond/schema/sessionctl.schema.json"
        #expect(program.text.contains(installed))
        let text = program.text.replacing(installed, with: Self.file)
        try Child.run("/usr/bin/python3", ["-c", text], environment: desk.environment)
    }

    // MARK: The interfaces

    private func members(_ definition: String) throws -> [String: Any] {
        try #require(definitions[definition]?["properties"] as? [String: Any])
    }

    private func text(of interface: String) throws -> String {
        try String(contentsOfFile: repository.path + "/data/dbus/org.sessiond1.\(interface).xml", encoding: .utf8)
    }

    @Test(arguments: [
        ("Session", "session-properties", ["path"]),
        ("Manager", "status", ["Schema", "Sessions", "Streams", "Plugins", "Cameras"]),
    ]) func properties_matchTheInterface(interface: String, definition: String, more: [String]) throws {
        let properties = try text(of: interface).matches(of: /<property name="([A-Za-z]+)"/).map { String($0.output.1) }
        #expect(Set(try members(definition).keys) == Set(properties + more))
    }

    /// The arguments of each signal are named as in the interface.
    @Test(arguments: ["Session", "Manager", "Plugins"]) func signals_matchTheInterface(interface: String) throws {
        let cases = try #require(definitions["monitor"]?["allOf"] as? [[String: [String: Any]]])
        var known: [String: Set<String>] = [:]
        for one in cases {
            let signal = ((one["if"]?["properties"] as? [String: Any])?["signal"] as? [String: Any])?["const"]
            let arguments = (one["then"]?["properties"] as? [String: Any])?["arguments"] as? [String: Any]
            let names = (arguments?["properties"] as? [String: Any])?.keys.map { $0 } ?? []
            known[try #require(signal as? String)] = Set(names)
        }
        let signals = try text(of: interface).matches(
            of: /<signal name="([A-Za-z]+)"(?:\/>|>((?s:.*?))<\/signal>)/)
        #expect(!signals.isEmpty)
        for signal in signals {
            let arguments = (signal.output.2 ?? "").matches(of: /<arg name="([a-z_]+)"/).map { String($0.output.1) }
            #expect(known[String(signal.output.1)] == Set(arguments), "\(signal.output.1)")
        }
    }
}
