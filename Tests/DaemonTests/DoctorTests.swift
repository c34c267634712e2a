import Foundation
import TestSupport
import Testing

/// Runs `sessionctl doctor` on real buses and sound servers. It finds each fault, and the remedy that it names mends
/// it.
@Suite(.serialized) struct DoctorTests {
    private struct Finding {
        let topic: String
        let status: String
        let text: String
        let remedy: String?
    }

    private struct Diagnosis {
        let code: Int32
        let isHealthy: Bool
        let findings: [Finding]

        func of(_ topic: String) -> [Finding] { findings.filter { $0.topic == topic } }

        /// The finding about that topic. It is an error if there are several.
        func one(_ topic: String) throws -> Finding {
            let found = of(topic)
            return try #require(found.count == 1 ? found[0] : nil, "\(topic): \(findings)")
        }

        var errors: [Finding] { findings.filter { $0.status == "error" } }
    }

    /// `wrapper` runs it as another user, or in another folder.
    private static func examine(
        _ environment: [String: String], _ more: [String] = [], _ wrapper: [String] = []
    ) throws -> Diagnosis {
        let arguments = ["doctor", "--json"] + more
        let words = wrapper + [try builtProduct(named: "sessionctl")] + arguments
        let child = try Child(words[0], Array(words.dropFirst()), environment: environment)
        let outcome = try SessionctlStage.outcome(of: child, arguments, 60)
        let object = try SessionctlStage.object(outcome.text)
        let findings = try #require(object["Findings"] as? [[String: String]])
        return Diagnosis(
            code: outcome.code, isHealthy: try #require(object["Healthy"] as? Bool),
            findings: findings.map {
                Finding(
                    topic: $0["topic"] ?? "", status: $0["status"] ?? "", text: $0["text"] ?? "", remedy: $0["remedy"])
            })
    }

    /// An environment as on a desktop, with folders of its own and the manifests of this package.
    private static func environment(
        of bus: PrivateBus, _ pulse: (any PrivateServer)? = nil
    ) throws -> [String: String] {
        let folder = bus.folder.path
        let plugins = try bus.folder.folder("data/sessiond/plugins")
        for kind in ["player", "recorder", "effects"] {
            let manifest = repository.appendingPathComponent("data/plugins/\(kind).plugin").path
            let copy = "\(plugins)/\(kind).plugin"
            if !FileManager.default.fileExists(atPath: copy) {
                try FileManager.default.copyItem(atPath: manifest, toPath: copy)
            }
        }
        return try SessionctlStage.environment(on: bus, pulse).merging([
            "XDG_DATA_DIRS": "\(folder)/data", "XDG_CONFIG_HOME": try bus.folder.folder("config"),
            "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": "\(folder)/state",
        ]) { $1 }
    }

    private static let nowhere = [
        "PATH": "/usr/bin:/bin", "HOME": "/nowhere", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus",
        "PULSE_SERVER": "unix:/nowhere/pulse",
    ]

    /// A program that owns a name and does nothing else.
    private static func owner(of name: String, _ environment: [String: String]) throws -> Child {
        let program = """
            import dbus, sys, time
            dbus.SessionBus().request_name(sys.argv[1])
            print('ready')
            while True: time.sleep(1)
            """
        let owner = try Child("/usr/bin/python3", ["-u", "-c", program, name], environment: environment)
        guard owner.line(where: { $0 == "ready" }) != nil else { throw SupportError("no owner: \(owner.errors)") }
        return owner
    }

    // MARK: The cache

    /// A disk of its own, for which a user needs a namespace.
    @Test func fullDiskOfTheCache_isFoundUntilThereIsSpace() throws {
        let unshare = ["/usr/bin/unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
        guard (try? Child.run(unshare[0], Array(unshare.dropFirst()) + ["/bin/true"])) != nil else { return }
        let bus = try PrivateBus()
        var environment = try Self.environment(of: bus)
        environment["XDG_CACHE_HOME"] = bus.folder.path + "/cache"
        #expect(try Self.examine(environment).of("cache").isEmpty)
        let folder = try bus.folder.folder("cache/sessiond/media")
        func examine(filling size: Int) throws -> Finding {
            let begin =
                "mount -t tmpfs -o size=1m none '\(folder)' && head -c \(size)k /dev/zero >'\(folder)/film' && exec \"$@\""
            return try Self.examine(environment, [], unshare + ["/bin/sh", "-c", begin, "sh"]).one("cache")
        }
        let full = try examine(filling: 1_000)
        #expect(full.status == "warning" && full.text.contains(folder) && full.text.contains("is not kept"))
        #expect(full.remedy?.contains("sessionctl cache clear") == true)
        let free = try examine(filling: 800)
        #expect(free.status == "ok" && free.text.contains("free for \(folder)"))
    }

    // MARK: The bus and the service

    @Test(arguments: ServerKind.allCases) func everythingIsThere_nothingIsWrong(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let environment = try Self.environment(of: stage.daemon.bus, pulse)
        let diagnosis = try Self.examine(environment)
        #expect(diagnosis.errors.isEmpty && diagnosis.isHealthy && diagnosis.code == 0, "\(diagnosis)")
        #expect(try diagnosis.one("bus").status == "ok")
        #expect(try diagnosis.one("service").text.contains("(process \(stage.daemon.daemon.processID)) runs"))
        let server = try diagnosis.one("sound server")
        #expect(server.status == "ok" && server.text.lowercased().contains(kind == .pipeWire ? "pipewire" : "pulse"))
        #expect(try diagnosis.one("output").status == "ok")
        #expect(try diagnosis.one("settings").text == "no file; the defaults")
        #expect(try diagnosis.one("calls").status == "ok")
        let plugins = try diagnosis.one("plugins")
        #expect(plugins.status == "ok" && plugins.text.contains("org.sessiond1.recorder"))
        #expect(diagnosis.of("state").map(\.status) == ["ok", "ok"])
        #expect(try diagnosis.one("streams").text == "all that plays has a session")
        #expect(try diagnosis.one("processor").text.contains("sessiond"))
    }

    @Test(arguments: ServerKind.allCases) func programWithoutASession_isReportedWithTheReason(_ kind: ServerKind) throws
    {
        let pulse = try kind.server()
        let stage = try SessionctlStage(pulse: pulse, settings: "[adoption]\nnever = Quiet\n")
        #expect(stage.daemon.waitForServer())
        let program = try Tone.program(pulse, hertz: 440, name: "Quiet")
        let environment = try Self.environment(of: stage.daemon.bus, pulse)
        #expect(
            try eventually {
                try Self.examine(environment).of("streams").map(\.text)
                    == ["Quiet plays and is not known to sessiond, because Quiet is listed in [adoption] never"]
            })
        withExtendedLifetime(program) {}
    }

    /// A client that asks all the time; a loop in the service looks the same.
    @Test func serviceThatWorksAllTheTime_isAWarning() throws {
        let stage = try SessionctlStage()
        let environment = try Self.environment(of: stage.daemon.bus)
        #expect(try Self.examine(environment).one("processor").status == "ok")
        for _ in 0..<3_100 { _ = try stage.daemon.property("Version") }
        let finding = try Self.examine(environment).one("processor")
        #expect(finding.status == "warning" && finding.text.contains("in the last minute"), "\(finding)")
        #expect(finding.remedy?.contains("sessiond") == true)
    }

    /// Every recording is then that of the music.
    @Test(arguments: ServerKind.allCases) func defaultInputThatIsAMonitor_isAWarning(_ kind: ServerKind) throws {
        let pulse = try kind.server(modules: [
            kind == .pulseAudio
                ? "module-remap-source source_name=desk source_properties=device.form_factor=microphone "
                    + "master=speaker.monitor"
                : "module-null-sink media.class=Audio/Source/Virtual sink_name=desk channel_map=mono"
        ])
        let environment = try Self.environment(of: try PrivateBus(), pulse)
        try pulse.setDefaultSource("desk")
        #expect(try Self.examine(environment).of("default input").isEmpty)
        try pulse.setDefaultSource("speaker.monitor")
        let input = try Self.examine(environment).one("default input")
        #expect(input.status == "warning" && input.remedy == "pactl set-default-source desk", "\(input)")
    }

    @Test func nothingIsThere_isReportedWithoutWaiting() throws {
        let diagnosis = try Self.examine(Self.nowhere)
        #expect(diagnosis.code == 1 && !diagnosis.isHealthy)
        #expect(try diagnosis.one("bus").status == "error")
        #expect(try diagnosis.one("bus").remedy?.contains("dbus-run-session") == true)
        #expect(try diagnosis.one("sound server").status == "error")
        // Without a bus these cannot be examined.
        for topic in ["service", "unit", "neighbours"] { #expect(try diagnosis.one(topic).status == "unknown") }
    }

    @Test func serviceDoesNotRun_remedyIsACommandUnlessTheBusStartsIt() throws {
        let bus = try PrivateBus()
        let diagnosis = try Self.examine(try Self.environment(of: bus))
        let service = try diagnosis.one("service")
        #expect(service.status == "error" && service.remedy?.contains("sessiond") == true, "\(service)")
        #expect(diagnosis.code == 1)

        let services = try PrivateFolder()
        let mark = services.path + "/started"
        _ = try services.file("org.sessiond1.service", "[D-BUS Service]\nName=org.sessiond1\nExec=/bin/touch \(mark)\n")
        let activatable = try PrivateBus(services: [services.path])
        let activated = try Self.examine(try Self.environment(of: activatable)).one("service")
        #expect(activated.status == "ok" && activated.text.contains("the bus starts it"), "\(activated)")
        #expect(!FileManager.default.fileExists(atPath: mark), "doctor must not start the service")
    }

    @Test func nameOwnedByAnotherProgram_isReportedWithItsProcess() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        // It never answers a call.
        let stranger = try Self.owner(of: "org.sessiond1", environment)
        let service = try Self.examine(environment).one("service")
        #expect(service.status == "error", "\(service)")
        let remedy = try #require(service.remedy)
        #expect(remedy.hasSuffix(" \(stranger.processID)"), "\(remedy)")
        _ = try Child.run("sh", ["-c", remedy])
        #expect(stranger.wait() != nil, "the remedy ends the program")
    }

    @Test func stoppedService_isReportedAsNotAnswering() throws {
        let stage = try SessionctlStage()
        stage.daemon.daemon.suspend()
        defer { stage.daemon.daemon.resume() }
        let service = try Self.examine(try Self.environment(of: stage.daemon.bus)).one("service")
        #expect(service.status == "error" && service.text.contains("does not answer"), "\(service)")
    }

    @Test func busThatNeverAnswers_isReported() throws {
        let folder = try PrivateFolder()
        let deaf = try DeafBus.start(in: folder)
        defer { deaf.kill() }
        #expect(deaf.line { $0 == "ready" } != nil)
        let environment = Self.nowhere.merging([
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(folder.path)/bus",
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder.path)/bus",
        ]) { $1 }
        for more in [[], ["--system"]] {
            let bus = try Self.examine(environment, more).one("bus")
            #expect(bus.status == "error" && bus.text.contains("does not answer"), "\(more) \(bus)")
        }
    }

    // MARK: The sound server and neighbours

    @Test(arguments: ServerKind.allCases) func stoppedSoundServer_isReportedAsNotAnswering(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus, pulse)
        #expect(try Self.examine(environment).one("sound server").status == "ok")
        pulse.suspend()
        defer { pulse.resume() }
        let server = try Self.examine(environment).one("sound server")
        #expect(server.status == "error" && server.text.contains("does not answer"), "\(server)")
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the module is its own"))
    func moduleThatMutesByRole_isReportedWithTheCommandThatUnloadsIt() throws {
        let pulse = try ServerKind.pulseAudio.server(modules: ["module-role-cork"])
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus, pulse)
        let neighbour = try Self.examine(environment).one("neighbours")
        #expect(neighbour.status == "warning" && neighbour.text.contains("module-role-cork"), "\(neighbour)")
        _ = try Child.run("sh", ["-c", try #require(neighbour.remedy)], environment: environment)
        #expect(try Self.examine(environment).one("neighbours").status == "ok")
    }

    @Test func kdeConnect_isReportedWithoutAService() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        let phone = try Self.owner(of: "org.kde.kdeconnect", environment)
        defer { phone.kill() }
        #expect(try Self.examine(environment).one("neighbours").text.contains("kdeconnect"))
    }

    @Test func missingMicrophone_isAWarning() throws {
        let pulse = try ServerKind.standard.server()
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus, pulse)
        #expect(try Self.examine(environment).one("recordings").status == "warning")
        _ = try pulse.loadModule(
            ServerKind.standard == .pulseAudio
                ? "module-remap-source source_name=desk source_properties=device.form_factor=microphone "
                    + "master=speaker.monitor"
                : "module-null-sink media.class=Audio/Source/Virtual sink_name=desk channel_map=mono")
        #expect(try eventually { try Self.examine(environment).one("recordings").status == "ok" })
    }

    // MARK: Files

    @Test func mistakeInEachSettingsFile_isReported() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        _ = try bus.folder.folder("config/sessiond/sessiond.conf.d")
        let main = try bus.folder.file("config/sessiond/sessiond.conf", "[ducking]\ngain = loud\n")
        let more = try bus.folder.file("config/sessiond/sessiond.conf.d/more.conf", "\n[ducking]\nvolume = 1\n")
        var settings = try Self.examine(environment).of("settings")
        #expect(settings.map(\.status) == ["error", "error"], "\(settings)")
        #expect(settings[0].text.hasPrefix("\(main):2:") && settings[1].text.hasPrefix("\(more):3:"), "\(settings)")
        #expect(settings[0].remedy?.hasSuffix(main) == true && settings[1].remedy?.hasSuffix(more) == true)
        // The daemon reports the same mistake, in the first file.
        let daemon = try Child(try builtProduct(named: "sessiond"), [], environment: environment)
        #expect(daemon.wait() == .code(78))
        #expect(daemon.errors.joined().contains("\(main):2:"), "\(daemon.errors)")
        // What follows from it comes later, and nothing about the service is right.
        let diagnosis = try Self.examine(environment)
        #expect(try diagnosis.one("service").status == "error")
        let topics = diagnosis.findings.map(\.topic)
        #expect(try #require(topics.firstIndex(of: "settings")) < #require(topics.firstIndex(of: "service")))
        _ = try bus.folder.file("config/sessiond/sessiond.conf", "[ducking]\ngain = -6\n")
        try FileManager.default.removeItem(atPath: more)
        settings = try Self.examine(environment).of("settings")
        #expect(settings.map(\.text) == [main])
    }

    @Test func busCannotStartTheDaemonForItsSettings_statusNamesThePlace() throws {
        let services = try PrivateFolder()
        _ = try services.file(
            "org.sessiond1.service",
            "[D-BUS Service]\nName=org.sessiond1\nExec=\(try builtProduct(named: "sessiond"))\n")
        let configuration = try PrivateFolder()
        let bus = try PrivateBus(
            services: [services.path], environment: ["XDG_CONFIG_HOME": configuration.path])
        _ = try configuration.folder("sessiond")
        let main = try configuration.file("sessiond/sessiond.conf", "[ducking]\ngain = loud\n")
        let environment = try Self.environment(of: bus).merging(["XDG_CONFIG_HOME": configuration.path]) { $1 }
        for arguments in [["status"], ["explain", "mpv"], ["history"]] {
            let child = try Child(try builtProduct(named: "sessionctl"), arguments, environment: environment)
            let outcome = try SessionctlStage.outcome(of: child, arguments)
            #expect(outcome.code == 69, "\(arguments): \(outcome)")
            #expect(outcome.complaint.contains("\(main):2:8: "), "\(arguments): \(outcome)")
        }
        _ = try configuration.file("sessiond/sessiond.conf", "[ducking]\ngain = -6\n")
        let child = try Child(try builtProduct(named: "sessionctl"), ["status"], environment: environment)
        #expect(try SessionctlStage.outcome(of: child, ["status"]).code == 0)
    }

    @Test func callSettings_areDescribed() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        _ = try bus.folder.folder("config/sessiond")
        func calls(_ settings: String) throws -> Finding {
            _ = try bus.folder.file("config/sessiond/sessiond.conf", settings)
            return try Self.examine(environment).one("calls")
        }
        #expect(try calls("[adoption]\ncall-programs = intercom\n").text.contains("intercom"))
        #expect(try calls("[adoption]\ncalls = any\n").text.contains("any program that records and plays"))
        #expect(try calls("[adoption]\ncalls = off\n").status == "warning")
        #expect(try calls("[adoption]\nstreams = off\n").remedy == "set streams = calls in [adoption]")
    }

    @Test func manifestOfAnUnknownKind_isReported() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        _ = try bus.folder.file(
            "data/sessiond/plugins/other.plugin",
            "[sessiond Plugin]\nId=other\nName=Other\nKind=plyer\nVersion=1\nExec=/bin/true\nSchemes=file;\n")
        let findings = try Self.examine(environment).of("plugins").filter { $0.text.contains("unknown kind 'plyer'") }
        #expect(findings.map(\.status) == ["warning"])
    }

    @Test func manifestWithAMistake_orWithoutItsProgram_isReported() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        let folder = "data/sessiond/plugins"
        let wrong = try bus.folder.file("\(folder)/wrong.plugin", "[sessiond Plugin]\nId=wrong\nFlavour=sweet\n")
        _ = try bus.folder.file(
            "\(folder)/gone.plugin",
            "[sessiond Plugin]\nId=gone\nName=Gone\nKind=player\nVersion=1\nExec=sessiond-gone\n")
        let plugins = try Self.examine(environment).of("plugins")
        #expect(plugins.map(\.status) == ["error", "error", "ok"], "\(plugins)")
        #expect(plugins[0].text.hasPrefix(wrong) && plugins[1].text.contains("sessiond-gone is not installed"))
    }

    @Test func folderWritableByOthers_isReportedWithItsRemedy() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        chmod(try bus.folder.folder("sessiond"), 0o777)
        let state = try #require(try Self.examine(environment).of("state").first)
        #expect(state.status == "error", "\(state)")
        _ = try Child.run("sh", ["-c", try #require(state.remedy)])
        #expect(try Self.examine(environment).of("state").map(\.status) == ["ok", "ok"])
        let without = try Self.examine(environment.filter { $0.key != "XDG_RUNTIME_DIR" }).of("state")
        #expect(without.first?.status == "warning")
    }

    @Test func writableFolder_isShownWithItsFreeSpace_andAnyOtherIsAWarning() throws {
        let bus = try PrivateBus()
        let environment = try Self.environment(of: bus)
        let folder = try bus.folder.folder("recordings")
        func finding(in folder: String, of user: [String] = []) throws -> Finding {
            try Self.examine(environment, [], user + ["env", "-C", folder]).one("recording folder")
        }
        let own = try finding(in: folder)
        #expect(own.status == "ok" && own.text.hasPrefix(folder + " can be written, and has "), "\(own)")
        // Root may write everywhere.
        let nobody = ["setpriv", "--reuid=nobody", "--clear-groups"]
        let foreign = try finding(in: "/", of: getuid() == 0 ? nobody : [])
        #expect(foreign.status == "warning" && foreign.text.contains("cannot be written"), "\(foreign)")
        // No file system has less room.
        let full = try finding(in: "/proc")
        #expect(full.status == "warning", "\(full)")
    }

    @Test(.enabled(if: getuid() == 0, "only root can run programs as several users"))
    func systemService_isExaminedByAnyUser() throws {
        let stage = try SystemStage()
        let program = try builtProduct(named: "sessionctl")
        let child = try Child(
            "setpriv", ["--reuid=nobody", "--clear-groups", program, "doctor", "--system"],
            environment: stage.environment)
        let outcome = try SessionctlStage.outcome(of: child, ["doctor"], 60)
        #expect(outcome.output.contains { $0.hasPrefix("ok") && $0.contains("sessiond") && $0.contains("runs") })
        #expect(outcome.output.contains { $0.hasPrefix("unknown") && $0.contains("only root sees") }, "\(outcome)")
    }
}
