import PluginAPI
import Testing

@Suite struct SettingsTests {
    private func settings(_ texts: String...) throws -> Settings {
        try Settings(files: texts.enumerated().map { ("\($0.offset).conf", Array($0.element.utf8)) })
    }

    @Test func noFile_givesTheContractsDefaults() throws {
        let settings = try settings()
        #expect(settings == Settings())
        #expect(settings.interruption.grace == 5 && settings.interruption.maxAge == 0)
        #expect(settings.ducking.gain == -12 && settings.ducking.attack == 0.08)
        #expect(settings.ducking.release == 0.4 && settings.ducking.hold == 0.25)
        #expect(settings.enforcement.mode == .full && settings.enforcement.deadline == 0.25)
        #expect(settings.adoption.streams == .calls && settings.mpris.pause)
        #expect(settings.privileges.call == .anyone && settings.privileges.alert == .anyone)
        #expect(settings.limits.sessions == 1024 && settings.limits.sessionsPerClient == 32)
        #expect(settings.limits.history == 512 && settings.limits.stringLength == 255)
        #expect(settings.roles["phone"]?.sessionClass == .call)
    }

    @Test func everyKey_isReadBackFromItsOwnText() throws {
        for key in SettingKey.table {
            for line in key.values(in: Settings()) {
                let text = "[\(key.section)]\n\(line.key) = \(line.value)\n"
                #expect(try settings(text) == Settings(), "\(text)")
            }
        }
    }

    @Test func everyKey_reachesItsOwnSetting() throws {
        var seen: Set<Settings> = [Settings()]
        for key in SettingKey.table {
            let other =
                switch key.kind {
                case .real(let range, _): "\((range.lowerBound + range.upperBound) / 3)"
                case .integer(let range): "\(range.upperBound)"
                case .onOff: key.values(in: Settings()).first?.value == "on" ? "off" : "on"
                case .words(let words): words[0]
                case .holders: "org.example.Phone; /usr/bin/phone"
                case .kinds(let words): words.joined(separator: ", ")
                case .names: "mpv; org.example.Player"
                case .role: "playback; alert; spoken-audio; duck-others"
                case .output: "pipewire:film"
                }
            let name = key.key == "*" ? "phone" : key.key
            let changed = try settings("[\(key.section)]\n\(name) = \(other)\n")
            #expect(seen.insert(changed).inserted, "\(key.section).\(key.key)")
            let value = try #require(key.values(in: changed).first { $0.key == name }).value
            #expect(try settings("[\(key.section)]\n\(name) = \(value)\n") == changed)
        }
    }

    @Test func valueOutsideItsRange_isRefusedAtItsPosition() {
        for key in SettingKey.table {
            let values: [String] =
                switch key.kind {
                case .real(let range, _): ["\(range.upperBound + 1)", "\(range.lowerBound - 1)", "nan", "loud", ""]
                case .integer(let range): ["\(range.upperBound + 1)", "\(range.lowerBound - 1)", "1.5", "", "x"]
                case .onOff: ["", "maybe"]
                case .words: ["", "loud"]
                case .holders: ["any; x", "bin/phone", ";"]
                case .kinds(let words): ["", "loud", "\(words[0]), loud", "all, \(words[0])", "\(words[0]),"]
                case .names: [";"]
                case .role:
                    [
                        "call", "loud", "playback; playback", "playback; voice-chat", "ambient; call; app",
                        "record; duck-others",
                    ]
                case .output: ["", "loud", "x11:0", "pipewire:"]
                }
            for value in values {
                let name = key.key == "*" ? "phone" : key.key
                let error = #expect(throws: KeyFileError.self, "\(key.section).\(name) = \(value)") {
                    try settings("[\(key.section)]\n\(name) = \(value)")
                }
                let position = KeyFile.Position(line: 2, column: name.unicodeScalars.count + 4)
                #expect(error?.position == position, "\(name) = \(value)")
            }
        }
    }

    @Test func unknownSectionOrKey_isRefusedAtItsPosition() {
        var error = #expect(throws: KeyFileError.self) { try settings("\n[duckling]\n") }
        #expect(error?.position == KeyFile.Position(line: 2, column: 1))
        #expect(error?.message.contains("ducking") == true)
        error = #expect(throws: KeyFileError.self) { try settings("[ducking]\n  gian = 1\n") }
        #expect(error?.position == KeyFile.Position(line: 2, column: 3))
        #expect(error?.message.contains("gain") == true)
    }

    @Test func illegalRole_isRefusedWithoutAnErrorNumber() {
        let error = #expect(throws: KeyFileError.self) { try settings("[roles]\nphone = playback; voice-chat\n") }
        #expect(error?.message.contains("'voice-chat' is not allowed with category 'playback'") == true)
        #expect(error?.message.contains("(") == false, "\(error?.message ?? "")")
    }

    @Test func dropIns_overrideKeyByKeyInOrder() throws {
        let settings = try settings(
            "[ducking]\ngain = -6\nhold = 1\n[roles]\nMusic = record\n", "[ducking]\ngain = -20\n",
            "[roles]\nmusic = ambient\ngame =\n")
        #expect(settings.ducking.gain == -20 && settings.ducking.hold == 1)
        #expect(settings.roles["music"]?.configuration.category == .ambient)
        #expect(settings.roles["game"] == nil && settings.roles["event"] != nil)
    }

    @Test func badFile_leavesTheOldValues() throws {
        var settings = try settings("[ducking]\ngain = -6\n")
        let before = settings
        #expect(throws: KeyFileError.self) {
            try settings.merge(bytes: Array("[ducking]\ngain = -7\nhold = -1\n".utf8), file: "f")
        }
        #expect(settings == before)
    }

    @Test func holders_areAnyNoneOrNames() throws {
        #expect(try settings("[privileges]\ncall =\n").privileges.call == .only([]))
        #expect(
            try settings("[privileges]\ncall = org.gnome.Calls; /usr/bin/linphone;\n").privileges.call
                == .only(["org.gnome.Calls", "/usr/bin/linphone"]))
    }

    @Test func shippedFile_agreesWithTheTable() throws {
        #expect(try Repository.text("data/sessiond.conf") == DefaultFile.text)
    }

    @Test func shippedFileUncommented_givesTheDefaults() throws {
        let lines = try Repository.text("data/sessiond.conf").split(separator: "\n", omittingEmptySubsequences: false)
        let live = lines.map { $0.hasPrefix("#") && !$0.hasPrefix("# ") ? $0.dropFirst() : $0 }
        #expect(try settings(live.joined(separator: "\n")) == Settings())
        #expect(live.filter { !$0.hasPrefix("#") && $0.contains(" =") }.count == DefaultFile.keys.count)
    }

    @Test func manualPage_namesEveryKeyWithItsDefault() throws {
        let page = try Repository.text("man/sessiond.conf.5")
        for section in SettingKey.sections { #expect(page.contains(".Ss [\(section)]\n"), "\(section)") }
        for (key, line) in DefaultFile.keys {
            let item = DefaultFile.text(line).replacing("-", with: "\\-")
            #expect(page.contains(".It Cm \(item)\n"), "[\(key.section)] \(item)")
            if case .real(let range, let unit) = key.kind {
                let range = "\(range.lowerBound) to \(range.upperBound) \(unit)".replacing("-", with: "\\-")
                #expect(page.contains(range), "\(line.key): \(range)")
            }
            if case .integer(let range) = key.kind {
                #expect(page.contains("\(range.lowerBound) to \(range.upperBound)"), "\(line.key): \(range)")
            }
        }
    }
}

/// The text that data/sessiond.conf must have: every key with its default after `#`, and its meaning after `# `.
enum DefaultFile {
    static var keys: [(key: SettingKey, line: (key: String, value: String))] {
        SettingKey.table.flatMap { key in key.values(in: Settings()).map { (key, $0) } }
    }

    static var text: String {
        var lines = [
            "# Settings of sessiond, each with its default. To change one, remove the # at the start of its line,",
            "# here or in a drop-in sessiond.conf.d/*.conf. Then reload: systemctl --user reload sessiond, or",
            "# send SIGHUP. See sessiond.conf(5).",
        ]
        for section in SettingKey.sections {
            lines += ["", "[\(section)]"]
            for key in SettingKey.table where key.section == section {
                lines += ["", wrapped(key.meaning + " " + range(of: key.kind))]
                lines += key.values(in: Settings()).map { "#" + text($0) }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    static func text(_ line: (key: String, value: String)) -> String {
        line.value.isEmpty ? line.key + " =" : line.key + " = " + line.value
    }

    private static func range(of kind: SettingKey.Kind) -> String {
        switch kind {
        case .real(let range, let unit): "(\(range.lowerBound) to \(range.upperBound) \(unit))"
        case .integer(let range): "(\(range.lowerBound) to \(range.upperBound))"
        case .onOff: "(on, off)"
        case .words(let words): "(\(words.joined(separator: ", ")))"
        case .kinds(let words): "(off, all, or some of: \(words.joined(separator: ", ")))"
        case .holders, .names, .role, .output: ""
        }
    }

    private static func wrapped(_ text: String) -> String {
        var lines = ["#"]
        for word in text.split(separator: " ") {
            if lines[lines.count - 1].count + word.count > 99 { lines.append("#") }
            lines[lines.count - 1] += " " + word
        }
        return lines.joined(separator: "\n")
    }
}
