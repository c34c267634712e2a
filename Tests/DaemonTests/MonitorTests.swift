import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

/// The output of `sessionctl monitor` for all events.
@Suite(.serialized) struct MonitorTests {
    /// Three monitors of the same daemon: with the sentences for people, with every event, and with JSON.
    private struct Monitors {
        let short: Child
        let human: Child
        let machine: Child

        /// Turns the silent switch until both have printed it, because the test cannot see when a monitor has
        /// subscribed.
        init(_ stage: SessionctlStage) throws {
            short = try stage.start(["monitor"])
            human = try stage.start(["monitor", "--verbose"])
            machine = try stage.start(["monitor", "--json"])
            let monitors = (human, machine, short)
            guard
                try eventually({
                    try stage.daemon.manager("SetSilentMode", [.bool(true)])
                    try stage.daemon.manager("SetSilentMode", [.bool(false)])
                    return monitors.0.text.contains("switch off") && monitors.1.text.contains("SilentMode\":false")
                        && monitors.2.text.contains("switch off")
                })
            else { throw SupportError("no monitor: \(human.errors) \(machine.errors)") }
        }

        /// The new output of both, after each has printed such a line.
        func lines(until last: (human: String, machine: String)) -> (human: [String], machine: [String]) {
            _ = human.line { $0.contains(last.human) }
            _ = machine.line { $0.contains(last.machine) }
            return (
                Array(human.output.drop { $0.contains("silent switch") }),
                Array(machine.output.drop { $0.contains("SilentMode") })
            )
        }
    }

    /// Each name that D-Bus has for something of a session or of the service.
    private static let names = ["Manager", "Session", "Plugins"].flatMap { interface -> [String] in
        let file = repository.appendingPathComponent("data/dbus/org.sessiond1.\(interface).xml")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.matches(of: /<(?:property|signal|method) name="([A-Za-z]+)"/).map { String($0.output.1) }
    }

    /// The lines contain no names that only programs understand.
    private static func expectPlain(_ lines: [String], _ location: SourceLocation = #_sourceLocation) {
        for line in lines {
            // After the time and the name.
            let words = line.dropFirst(30).split { !$0.isLetter && !$0.isNumber && $0 != "-" }
            for name in names where name.dropFirst().contains(where: \.isUppercase) {
                #expect(!words.contains(name[...]), "\(line)", sourceLocation: location)
            }
            #expect(!line.contains("{") && !line.contains("/org/"), "\(line)", sourceLocation: location)
        }
    }

    @Test func everyEvent_isPrintedForUsersAndForPrograms() throws {
        let settings = "[ducking]\ngain = -12\n[interruption]\ngrace = 60\n"
        let stage = try SessionctlStage(settings: settings)
        let client = try stage.daemon.client()
        let monitors = try Monitors(stage)

        let game = try client.session("Game", category: "ambient")
        client.activate(game)
        let music = try client.session("Music")
        client.activate(music)
        let phone = try client.beginCall("Phone")
        client.deactivate(phone, notify: true)
        client.activate(music)
        let prompt = try client.session("Navigation", mode: "voice-prompt", options: ["duck-others"])
        client.activate(prompt)
        client.deactivate(prompt)
        client.call(
            prompt, "SetCategory",
            [.string("play-and-record"), .string("voice-chat"), .strings(["allow-bluetooth-hfp"])])
        try stage.daemon.manager("SetForeground", [.objectPath(music), .bool(false)])
        try stage.daemon.manager("SetForeground", [.objectPath(music), .bool(true)])
        try stage.daemon.manager("SetScreenLocked", [.bool(true)])
        try stage.daemon.manager("SetScreenLocked", [.bool(false)])
        // The process that plays for the client ends, but the session stays.
        let command = try Child("sleep", ["infinity"])
        let acting = try client.session("Command", more: [("pid", .uint32(UInt32(command.processID)))])
        command.kill()
        #expect(try eventually { try stage.daemon.property("ProcessId", of: acting) == .uint32(0) })
        _ = try stage.daemon.bus.folder.file("sessiond.conf", settings.replacing("-12", with: "-6"))
        stage.daemon.daemon.signal(SIGHUP)
        let gain: () throws -> Double? = { try stage.daemon.property("Ducking").asProperties?["gain"]?.doubleValue }
        #expect(try eventually { try gain() == -6 })
        // A plugin registers and leaves.
        let plugin = try stage.daemon.foreigner()
        #expect(plugin.ask("register own.radio") == "ok")
        plugin.process.kill()
        #expect(monitors.machine.line { $0.contains("own.radio") && !$0.contains("running") } != nil)
        for path in [acting, prompt, phone, music, game] { #expect(client.call(path, "Close") == nil) }
        stage.daemon.daemon.signal(SIGTERM)
        #expect(stage.daemon.daemon.wait() == .code(0))
        let (human, machine) = monitors.lines(until: ("sessiond  stopped", "\"new_owner\":\"\""))

        Self.expectPlain(human)
        #expect(monitors.short.line { $0.contains("sessiond stopped") } != nil)
        let short = Array(monitors.short.output.drop { $0.contains("silent switch") })
        Self.expectPlain(short)
        func masked(_ lines: [String]) -> String {
            GoldenFile.masked(lines.joined(separator: "\n"), of: stage.daemon)
        }
        try GoldenFile(name: "monitor.txt").expect([
            "$ sessionctl monitor\n" + masked(short), "$ sessionctl monitor --verbose\n" + masked(human),
            "$ sessionctl monitor --json\n" + masked(machine),
        ])
        for child in [monitors.short, monitors.human, monitors.machine] {
            child.signal(SIGINT)
            #expect(child.wait() == .code(130))
        }
    }

    /// The end of a call arrives as eight signals; a person hears two things.
    @Test func callEnds_monitorPrintsTwoLines() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let music = try client.session("mpv")
        client.activate(music)
        client.activate(try client.session("Game", category: "ambient"))
        let phone = try client.beginCall("Chromium")
        let monitors = try Monitors(stage)
        client.deactivate(phone, notify: true)
        client.activate(music)
        #expect(client.call(phone, "Close") == nil)
        #expect(monitors.human.line { $0.contains("Chromium") && $0.hasSuffix("closed") } != nil)
        try stage.daemon.manager("SetScreenLocked", [.bool(true)])
        #expect(monitors.short.line { $0.hasSuffix("screen locked") } != nil)
        let told = monitors.short.output.filter { !$0.contains("silent switch") }
            .map { GoldenFile.masked($0, of: stage.daemon) }
        // They come from the silent switch, with which the test found out that the monitors listen.
        func isOfSwitch(_ line: String) -> Bool { line.hasSuffix("muted") }
        #expect(
            told.filter { !isOfSwitch($0) } == [
                "CLOCK  Chromium's call ended after AGE", "CLOCK  mpv resumes", "CLOCK  screen locked",
            ])
        #expect(monitors.human.output.filter { !$0.contains("silent switch") }.count >= 8)
    }

    /// Sound servers differ in their changes and the order of them. But all changes are printed in words.
    @Test(arguments: ServerKind.allCases) func soundServerChanges_areInWords(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let client = try stage.daemon.client()
        let monitors = try Monitors(stage)
        client.activate(try client.session("Music"))
        let phones = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(monitors.human.line { $0.contains("connected ←") } != nil)
        try pulse.pactl(["set-sink-volume", "phones", "50%"])
        #expect(monitors.machine.line { $0.contains("OutputVolume") } != nil)
        try pulse.unloadModule(phones)
        #expect(monitors.human.line { $0.contains("unplugged →") } != nil)
        pulse.kill()
        #expect(monitors.human.line { $0.contains("the sound server is disconnected") } != nil)
        try pulse.restart()
        let (human, machine) = monitors.lines(until: ("connected to", "ServicesReset"))
        Self.expectPlain(human)
        Self.expectPlain(monitors.short.output)
        #expect(monitors.short.line { $0.contains("connected to") } != nil, "\(monitors.short.text)")
        for text in ["connected ←", "unplugged →", "the sound server is disconnected"] {
            #expect(monitors.short.output.filter { $0.contains(text) }.count == 1, "\(monitors.short.text)")
        }
        // The JSON output has all of it.
        for name in ["AvailableOutputs", "CurrentRoute", "ServerName", "RouteChanged", "ServicesLost"] {
            #expect(machine.contains { $0.contains("\"\(name)\"") }, "\(name)")
        }
        for line in machine { #expect(try SessionctlStage.object(line)["Schema"] as? String == "monitor/1") }
    }
}
