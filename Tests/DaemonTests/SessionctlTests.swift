import DBus
import Foundation
import TestSupport
import Testing

@Suite(.serialized) struct SessionctlTests {
    // MARK: Reading

    @Test func callInterruptsMusic_statusShowsWhichSessionWaitsForWhich() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        let phone = try client.session("Phone", category: "play-and-record", class: "call")
        client.activate(music)
        client.activate(phone)
        let lines = try stage.run(["status"]).output
        #expect(lines.contains { $0.hasPrefix("active") && $0.contains("Phone") && $0.contains("Call") })
        #expect(lines.contains { $0.hasPrefix("interrupted") && $0.contains("interrupted by Phone, waits for it") })
        #expect(lines.contains { $0.contains("no sound server") })
        // The names are aligned with the heading; who waits is below whom it waits for.
        let heading = try #require(lines.firstIndex { $0.hasPrefix("STATE") })
        let column = try #require(lines[heading].range(of: "SESSION")).lowerBound.utf16Offset(in: lines[heading])
        for (row, name) in [(1, "Phone"), (2, "└ Music")] {
            #expect(String(lines[heading + row].dropFirst(column)).hasPrefix(name + " "))
        }
        #expect(!lines.joined().contains("\u{1B}"))

        let json = try stage.json(["status"])
        #expect(json["ServerConnected"] as? Bool == false)
        let sessions = try #require(json["Sessions"] as? [[String: Any]])
        #expect(sessions.map { $0["Name"] as? String } == ["Music", "Phone"])
        #expect(sessions[0]["State"] as? String == "interrupted")
        #expect(sessions[0]["WaitingFor"] as? [String] == [phone])

        let explained = try stage.run(["explain", "mus"]).text
        #expect(explained.contains("interrupted by Phone (call); will be asked to resume when it ends"))
        #expect(try stage.json(["explain", "Music"])["causes"] as? [Any] != nil)

        #expect(try stage.run(["list"]).output.count == 3)
        #expect((try stage.json(["list"])["Sessions"] as? [Any])?.count == 2)
        let shown = try stage.run(["show", music]).output
        #expect(shown.contains { $0.hasPrefix("WaitingFor") && $0.hasSuffix("Phone") })
        #expect(try stage.json(["show", "1"])["Name"] as? String == "Music")

        let history = try stage.run(["history"]).output
        #expect(history.contains { $0.contains("Phone") && $0.contains("activated: Music interrupted") })
        let past = try #require(try stage.json(["history", "--max", "2"])["History"] as? [[String: Any]])
        #expect(past.count == 2)
        #expect(past.last?["event"] as? String == "activate")
    }

    /// The first three columns of the sessions in `sessionctl status`.
    private static func rows(_ stage: SessionctlStage) throws -> [String] {
        let outcome = try stage.run([])
        return outcome.output.drop { !$0.hasPrefix("STATE") }.dropFirst().map { line in
            line.components(separatedBy: "  ").filter { !$0.isEmpty }.prefix(3)
                .map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: " | ")
        }
    }

    /// Each session is below the one that it waits for, or that ducks it; what is as usual is left out.
    @Test func severalWaitAndAreDucked_statusIsATree() throws {
        let stage = try SessionctlStage(settings: "[interruption]\ngrace = 60\n")
        let client = try stage.daemon.client()
        func begin(
            _ name: String, category: String = "playback", mode: String = "default", options: [String] = [],
            class kind: String = "app"
        ) throws {
            let path = try client.session(name, category: category, mode: mode, options: options, class: kind)
            #expect(client.activate(path) == nil, "\(name)")
        }
        try begin("Story", mode: "spoken-audio")
        try begin("Game", category: "ambient")
        try begin("Film", mode: "movie-playback")
        try begin("Voice", mode: "voice-prompt", options: ["duck-others"])
        #expect(
            try Self.rows(stage) == [
                "active | Voice | Prompt", "active | ├ Film | Film", "interrupted | │ └ Story | Podcast",
                "active | └ Game | App sounds",
            ])
        try begin("Phone", category: "play-and-record", class: "call")
        #expect(
            try Self.rows(stage) == [
                "active | Phone | Call", "interrupted | ├ Voice | Prompt", "interrupted | ├ Film | Film",
                "interrupted | │ └ Story | Podcast", "interrupted | └ Game | App sounds",
            ])
        let text = try stage.run([]).text
        for usual in ["Silent switch", "Screen", "Plugins"] { #expect(!text.contains(usual), "\(text)") }
        try stage.daemon.manager("SetScreenLocked", [.bool(true)])
        #expect(try stage.run([]).text.contains("Screen       locked"))
    }

    /// The default subcommand of `sessionctl` is not given a mistyped subcommand as its argument.
    @Test(
        arguments: [
            ("statsu", "sessionctl status"), ("mon", "sessionctl monitor"), ("expalin", "sessionctl explain"),
            ("paly", "sessionctl play"), ("library playlist renmae", "sessionctl playlist rename"),
            ("xyzzy", "sessionctl --help"),
        ])
    func mistypedSubcommand_isNotRun_andTheNearestIsNamed(words: String, expected: String) throws {
        let stage = try SessionctlStage()
        let outcome = try stage.run(words.split(separator: " ").map(String.init))
        #expect(outcome.code == 64 && outcome.output.isEmpty)
        #expect(outcome.complaint.contains("'\(expected)'"), "\(outcome.complaint)")
    }

    /// Status reports the missing input of active and inactive sessions.
    @Test(arguments: ServerKind.allCases) func removedMicrophone_isReportedByStatus(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let client = try stage.daemon.client()
        let memo = try client.session("Memo", category: "record")
        func line() throws -> String? { try stage.run(["status"]).output.first { $0.contains("Memo") } }
        let microphone = try pulse.loadModule(
            kind == .pulseAudio
                ? "module-remap-source source_name=desk source_properties=device.form_factor=microphone "
                    + "master=speaker.monitor"
                : "module-null-sink media.class=Audio/Source/Virtual sink_name=desk channel_map=mono")
        #expect(try eventually { try line()?.contains("no usable") == false })
        client.activate(memo)
        try pulse.unloadModule(microphone)
        #expect(try eventually { try line()?.hasSuffix("no usable input") == true })
        client.deactivate(memo)
        #expect(try line()?.hasSuffix("no usable input") == true)
    }

    @Test func daemonIsKilled_statusStillShowsSinceWhen() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        client.activate(try client.session("Music"))
        stage.daemon.daemon.kill()
        try stage.daemon.restart()
        let line = try stage.run(["status"]).output.first { $0.hasPrefix("active") }
        let words = line?.split(separator: " ").map(String.init) ?? []
        let unit = try #require(words.firstIndex(of: "s"), "\(line ?? "")")
        #expect(Double(words[unit - 1]) != nil)
    }

    @Test(arguments: [
        ("explain M", "Music"), ("show The", #"The\ Phone"#), ("show T", #"The\ Phone"#),
        ("record --option allow-blue", "allow-bluetooth-a2dp"), ("library so", "songs"), ("library sea", "search"),
        ("library songs --al", "--album-artist"), ("library list albu", "albums"),
    ])
    func shellCompletion_offersSessionsAndOptions(words: String, expected: String) throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        client.activate(try client.session("Music"))
        _ = try client.session("The Phone")
        let script = """
            . <(sessionctl --generate-completion-script bash)
            COMP_LINE='sessionctl \(words)' COMP_WORDS=($COMP_LINE) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            COMP_POINT=${#COMP_LINE}
            _sessionctl sessionctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let offered = try Child.run("bash", ["--norc", "-c", script], environment: try stage.programs())
        #expect(offered.split(separator: "\n").map(String.init).contains(expected), "\(offered)")
    }

    /// If bash took all words for names of files, a session with the name of a folder would get a slash.
    @Test func bash_completesOnlyNamesOfFilesAsSuch() throws {
        let stage = try SessionctlStage()
        let script =
            ". <(sessionctl --generate-completion-script bash); complete -p sessionctl; "
            + "compopt() { echo \"$*\"; }; cur=; __sessionctl_add_completions -W x; __sessionctl_add_completions -f"
        let said = try Child.run("bash", ["--norc", "-c", script], environment: try stage.programs())
        #expect(said == "complete -F _sessionctl sessionctl\n-o filenames")
    }

    /// These words may stand without the subcommand `list`, and have its options.
    @Test func libraryQueries_areOfferedByEveryShell() throws {
        let stage = try SessionctlStage()
        for shell in ["bash", "zsh", "fish"] {
            let script = try stage.run(["--generate-completion-script", shell]).text
            let part =
                switch shell {
                case "bash": "status|songs|albums|artists"
                case "zsh": "'albums:List albums.'"
                default: "\"sessionctl library\" -eq 1' -fa 'albums'"
                }
            #expect(script.components(separatedBy: part).count == 2, "\(shell)")
        }
        let zsh = try stage.run(["--generate-completion-script", "zsh"]).text
        #expect(zsh.contains("status|songs|") && zsh.contains("words=(list \"${words[@]}\")"))
    }

    /// fish 4 of Debian 13 completes only on a terminal.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: fish 3 of Debian 12"))
    func fish_completesSessionsWithoutAComplaint() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        client.activate(try client.session("The Phone"))
        let script = "sessionctl --generate-completion-script fish | source; complete -C 'sessionctl show '"
        let child = try Child("fish", ["--no-config", "-c", script], environment: try stage.programs())
        #expect(child.wait(timeout: 60) == .code(0))
        #expect(child.output == ["The Phone"] && child.errors == [], "\(child.output) \(child.errors)")
        let library = try Child(
            "fish",
            [
                "--no-config", "-c",
                "sessionctl --generate-completion-script fish | source; complete -C 'sessionctl library so'; "
                    + "complete -C 'sessionctl library songs --album-'",
            ], environment: try stage.programs())
        #expect(library.wait(timeout: 60) == .code(0))
        #expect(
            library.output == ["songs\tList songs.", "--album-artist\tOf albums by this artist."], "\(library.output)")
    }

    @Test func emptyRequests_haveClearAnswers() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        _ = try client.session("Music")
        let empty = try stage.run(["show", ""])
        #expect(empty.code == 1 && empty.complaint.contains("which session?"), "\(empty)")
        #expect(try stage.run(["history", "--max", "0"]).output == [])
        let full = try Child("sh", ["-c", "sessionctl status >/dev/full"], environment: stage.programs())
        #expect(full.wait(timeout: 20) == .code(1))
        #expect(full.errors.joined().contains("No space left"), "\(full.errors)")
    }

    @Test func fileMayNotGrow_isAnErrorAndNotASignal() throws {
        let stage = try SessionctlStage()
        let file = stage.daemon.bus.folder.path + "/status"
        let limited = try Child(
            "sh", ["-c", "exec prlimit --fsize=16 sessionctl status >'\(file)'"], environment: stage.programs())
        #expect(limited.wait(timeout: 20) == .code(1))
        #expect(limited.errors.joined().contains("File too large"), "\(limited.errors)")
        // A command that is run gets the signals as they are at its start, SIGPIPE (13) and SIGXFSZ (25) too.
        let ignored = try stage.run(["run", "--", "sed", "-n", "s/^SigIgn:\\s*//p", "/proc/self/status"])
        let signals = try #require(UInt64(ignored.text, radix: 16))
        #expect(signals & (1 << 12 | 1 << 24) == 0, "\(ignored.text)")
    }

    @Test func daemonIsStartedByStatus_statusKnowsTheSoundServer() throws {
        let pulse = try ServerKind.standard.server()
        let services = try PrivateFolder()
        let program = try builtProduct(named: "sessiond")
        _ = try services.file("org.sessiond1.service", "[D-BUS Service]\nName=org.sessiond1\nExec=\(program)\n")
        let bus = try PrivateBus(services: [services.path], environment: pulse.environment)
        let status = try Child.run(
            try builtProduct(named: "sessionctl"), ["status"],
            environment: try SessionctlStage.environment(on: bus, pulse))
        let name = ServerKind.standard == .pulseAudio ? "pulseaudio" : "pipewire"
        #expect(status.lowercased().contains(name), "\(status)")
    }

    @Test func promptDucksMusic_statusShowsTheGainAndThePrompt() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        let prompt = try client.session("Nav", options: ["duck-others"])
        client.activate(music)
        client.activate(prompt)
        let text = try stage.run(["status"]).text
        #expect(text.contains("ducked 12 dB by Nav"))
        #expect(text.contains("Now playing  Music"))
    }

    @Test func controlCharactersInNames_areEscaped() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        _ = try client.session("Evil\u{1B}[31m\u{202E}\n")
        for command in [["status"], ["list"], ["show", "Evil"], ["explain", "1"], ["history"], ["list", "--json"]] {
            let outcome = try stage.run(command)
            #expect(outcome.code == 0)
            for scalar in outcome.text.unicodeScalars where scalar != "\n" {
                #expect(![.control, .format].contains(scalar.properties.generalCategory))
            }
        }
        #expect(try stage.run(["list"]).text.contains("Evil\\u{1B}[31m\\u{202E}\\n"))
        let listed = try #require(try stage.json(["list"])["Sessions"] as? [[String: Any]])
        #expect(listed[0]["Name"] as? String == "Evil\u{1B}[31m\u{202E}\n")
    }

    /// Names of files in a folder of somebody else become arguments, as in `sessionctl inspect *`.
    @Test(
        arguments: [
            ["inspect", "a", "b\u{1B}[2J\nerror: forged\u{202E}"], ["inspect", "--\u{1B}[31mred"], ["\u{9B}2J"],
            ["list", "\u{1B}]0;title\u{7}"], ["play", "--volume=\u{1B}c"], ["show", "\u{1B}[31m"],
            ["explain", "e" + String(repeating: "\u{301}", count: 80)],
        ])
    func controlCharactersInArguments_areEscaped(arguments: [String]) throws {
        let stage = try SessionctlStage()
        let outcome = try stage.run(arguments)
        #expect(outcome.code != 0)
        #expect(!outcome.complaint.isEmpty)
        for scalar in (outcome.complaint + outcome.text).unicodeScalars where scalar != "\n" {
            #expect(![.control, .format].contains(scalar.properties.generalCategory), "\(outcome.complaint)")
        }
        #expect(!outcome.complaint.split(separator: "\n").contains { $0.hasPrefix("error: forged") })
        #expect(outcome.complaint.unicodeScalars.filter { $0.value == 0x301 }.count <= 8)
    }

    @Test func manyMarksInJSON_areEscapedAndKept() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let name = "e" + String(repeating: "\u{301}", count: 80)
        _ = try client.session(name)
        let text = try stage.run(["list", "--json"]).text
        #expect(text.unicodeScalars.filter { $0.value == 0x301 }.count <= 4)
        let listed = try #require(try stage.json(["list"])["Sessions"] as? [[String: Any]])
        #expect((listed[0]["Name"] as? String)?.unicodeScalars.count == name.unicodeScalars.count)
    }

    @Test func coloursAreForced_exceptWithNoColor() throws {
        let stage = try SessionctlStage()
        #expect(try stage.run(["status"], more: ["CLICOLOR_FORCE": "1"]).text.contains("\u{1B}["))
        #expect(!(try stage.run(["status"], more: ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"]).text.contains("\u{1B}")))
    }

    @Test func ambiguousName_listsTheCandidates() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        _ = try client.session("Radio one")
        _ = try client.session("Radio two")
        // Both are of one program.
        let both = try stage.run(["explain", "radio"])
        #expect(both.code == 0 && both.text.contains("Radio one") && both.text.contains("Radio two"))
        let outcome = try stage.run(["show", "radio"])
        #expect(outcome.code == 1)
        #expect(outcome.complaint.contains("Radio one") && outcome.complaint.contains("Radio two"))
        #expect(try stage.run(["show", "RADIO TWO"]).code == 0)
        #expect(try stage.run(["show", "nobody"]).code == 1)
    }

    @Test func eventsHappen_monitorPrintsThem() throws {
        let stage = try SessionctlStage()
        let human = try stage.start(["monitor"])
        let machine = try stage.start(["monitor", "--json"])
        // Nothing shows when the monitors have subscribed, so repeat the change until both print it.
        #expect(
            try eventually {
                try stage.daemon.manager("SetSilentMode", [.bool(true)])
                try stage.daemon.manager("SetSilentMode", [.bool(false)])
                return human.text.contains("silent switch") && machine.text.contains("SilentMode")
            })
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        try client.beginCall("Phone")
        #expect(human.line { $0.hasSuffix("Music is interrupted by Phone") } != nil)
        #expect(human.line { $0.hasSuffix("Phone's call began") } != nil)
        let line = try #require(machine.line { $0.contains("\"InterruptionBegan\"") })
        let event = try SessionctlStage.object(line)
        #expect(event["path"] as? String == music)
        #expect((event["arguments"] as? [String: Any])?["reason"] as? String == "default")
        stage.daemon.daemon.kill()
        #expect(human.line { $0.contains("sessiond") && $0.contains("stopped") } != nil)
        human.signal(SIGINT)
        #expect(human.wait() == .code(130))
    }

    @Test func sessionIsCreated_watchedStatusFollows() throws {
        let stage = try SessionctlStage()
        let watch = try stage.start(["status", "--watch", "--json"])
        #expect(watch.line { $0.contains("\"Sessions\":[]") } != nil)
        let client = try stage.daemon.client()
        _ = try client.session("Music")
        #expect(watch.line { $0.contains("\"Music\"") } != nil)
        watch.signal(SIGINT)
        #expect(watch.wait() == .code(130))
    }

    /// What changed nothing for anybody is counted neither as a line nor for `--max`; `--verbose` and `--json` have it.
    @Test func historyOfSessionsThatOnlyCome_isShort() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        #expect(try stage.run(["history"]).output == ["Nothing has happened yet."])
        let music = try client.session("Music")
        let nothing = "Nothing has changed for anybody; --verbose shows all decisions."
        #expect(try stage.run(["history"]).output == [nothing])
        client.activate(music)
        for number in 0..<35 {
            let idle = try client.session("Idle \(number)", hears: false)
            #expect(client.call(idle, "Close") == nil)
        }
        #expect(try stage.run(["history", "--max", "1"]).output.map { $0.hasSuffix("activated") } == [true])
        let verbose = try stage.run(["history", "--verbose", "--all"])
        #expect(verbose.output.count == (try stage.json(["history", "--all"])["History"] as? [Any])?.count)
        #expect(verbose.output.count > 30, "\(verbose)")
    }

    // MARK: Setting

    @Test func silentSwitch_isChanged() throws {
        let stage = try SessionctlStage()
        #expect(try stage.run(["silent", "on"]).code == 0)
        #expect(try stage.daemon.property("SilentMode").boolValue == true)
        #expect(try stage.run(["status"]).text.contains("Silent switch  on"))
        #expect(try stage.run(["silent", "off"]).code == 0)
        #expect(try stage.daemon.property("SilentMode").boolValue == false)
        let history = try stage.run(["history"]).output
        #expect(history.count == 2 && history[0].hasSuffix("silent switch on"), "\(history)")
        #expect(history.last?.hasSuffix("silent switch off") == true, "\(history)")
    }

    @Test func routesOfAServer_areListed() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let lines = try stage.run(["route"]).output
        #expect(lines.contains { $0.hasPrefix("* out") && $0.hasSuffix("speaker") })
        let json = try stage.json(["route", "list"])
        #expect((json["AvailableOutputs"] as? [[String: Any]])?.first?["uid"] as? String == "speaker")
        let outputs = (json["CurrentRoute"] as? [String: Any])?["outputs"] as? [[String: Any]]
        #expect(outputs?.count == 1)
        #expect(try stage.run(["status"]).output.contains { $0.hasPrefix("Output") && !$0.contains("none") })
    }

    @Test func routeOfAnotherClientsSession_isRefusedWithItsError() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        _ = try client.session("Call", category: "play-and-record")
        for (command, instead) in [
            (["route", "override", "call", "speaker"], "sink"), (["route", "input", "call", ""], "source"),
        ] {
            let outcome = try stage.run(command)
            #expect(outcome.code == 1)
            #expect(outcome.complaint.hasPrefix("sessionctl: only the owner of 'Call' "))
            #expect(outcome.complaint.contains("'pactl set-default-\(instead)'"))
        }
    }

    @Test func serverRestarts_statusForgetsThePreviousRoute() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        func output() throws -> String { try stage.run(["status"]).output.first { $0.hasPrefix("Output") } ?? "" }
        try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(try eventually { try output().contains("← ") })
        try pulse.restart()
        #expect(try eventually { try output().hasPrefix("Output") && !output().contains("phones") })
    }

    @Test func plugins_areListedOrReportedAsUnsupported() throws {
        let stage = try SessionctlStage()
        let outcome = try stage.run(["plugins"])
        #expect(outcome.code == 0 ? !outcome.text.isEmpty : outcome.complaint.contains("does not support plugins"))
    }

    // MARK: Ends

    @Test func noDaemon_everyCommandExits69() throws {
        let bus = try PrivateBus()
        let environment = try SessionctlStage.environment(on: bus)
        for command in [
            ["status"], ["status", "--watch"], ["list"], ["show", "1"], ["explain", "1"], ["history"], ["monitor"],
            ["silent", "on"], ["route"], ["plugins"], ["run", "--", "echo", "BAD"], ["play", "/dev/null"],
        ] {
            let child = try Child(try builtProduct(named: "sessionctl"), command, environment: environment)
            let outcome = try SessionctlStage.outcome(of: child, command)
            #expect(outcome.code == 69 || command[0] == "play" && outcome.code == 1, "\(command): \(outcome)")
            #expect(!outcome.text.contains("BAD"))
            if outcome.code == 69 { #expect(outcome.complaint.contains("start it with"), "\(command): \(outcome)") }
        }
    }

    @Test func noBus_exits69() throws {
        let child = try Child(
            try builtProduct(named: "sessionctl"), ["status"],
            environment: ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus"])
        #expect(child.wait() == .code(69))
    }

    @Test func daemonIsStopped_commandsDoNotHang() throws {
        let stage = try SessionctlStage()
        stage.daemon.daemon.suspend()
        defer { stage.daemon.daemon.resume() }
        for command in [["status"], ["run", "--", "echo", "BAD"]] {
            let outcome = try stage.run(command, timeout: 60)
            #expect(outcome.code == 69)
            #expect(outcome.output.isEmpty)
        }
    }

    @Test func wrongUsage_exits64() throws {
        let stage = try SessionctlStage()
        for command in [
            ["bogus"], ["silent"], ["silent", "maybe"], ["show"], ["run"], ["run", "--category", "loud", "--", "true"],
            ["run", "--option", "nothing", "--", "true"], ["play"], ["route", "override", "1", "lamp"],
            ["history", "--max", "-1"], ["record", "x.wav", "--duration", "0"],
        ] {
            #expect(try stage.run(command).code == 64, "\(command)")
        }
    }

    @Test func readerOfAPipeEnds_monitorEndsWithoutAnError() throws {
        let stage = try SessionctlStage()
        let program = try builtProduct(named: "sessionctl")
        let shell = try Child(
            "/bin/sh", ["-c", "{ \(program) monitor; echo \"ended $?\" >&2; } | true"], environment: stage.environment)
        #expect(shell.wait(timeout: 20) == .code(0))
        #expect(shell.errors == ["ended 0"])
    }
}
