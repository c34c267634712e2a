public import DBus

extension Dice {
    private static let basics = ["y", "b", "n", "q", "i", "u", "x", "t", "d", "s", "o", "g"]

    /// Words of the D-Bus interface, so that the service does not refuse every call because of its first argument.
    private static let words = [
        "", "playback", "solo-ambient", "ambient", "record", "play-and-record", "multi-route", "audio-processing",
        "default", "spoken-audio", "voice-prompt", "voice-chat", "measurement", "movie-playback", "mix-with-others",
        "duck-others", "interrupt-spoken-audio-and-mix-with-others", "allow-bluetooth-hfp", "default-to-speaker",
        "category", "mode", "options", "class", "desktop-entry", "pid", "notify-on-exit", "notify-others", "app",
        "alert", "call", "speaker", "none", "sample-rate", "io-buffer-duration", "interrupt-on-route-disconnect",
        "no-interruptions-from-alerts", "object", "name", "kind", "player", "recorder", "org.sessiond1.Manager",
        "org.sessiond1.Session", "org.sessiond1.Plugins", "State", "SilentMode", "Sequence", "Name", "WaitingFor",
    ]

    private static let oddTexts = [
        "\u{1}\u{1b}[2J\u{7f}", "a\nb\r\nc", "\u{202e}txet", "é\u{301}\u{301}\u{301}", "👩‍👩‍👧‍👦", "../../etc/passwd",
        "%s%n%x",
        "'\"`$(reboot)", "\u{feff}", "\u{10ffff}", "18446744073709551616", "-1", "nan",
    ]

    private static let paths = [
        "/", "/org/sessiond1", "/org/sessiond1/session/1", "/org/sessiond1/session/0",
        "/org/sessiond1/session/18446744073709551615", "/org/sessiond1/session/18446744073709551616",
        "/org/sessiond1/session/01", "/org/sessiond1/session", "/org/freedesktop/DBus", "/a/b/c/d/e/f/g/h",
    ]

    /// A complete type, at most `depth` containers deep.
    public mutating func signature(depth: Int = 3) -> String {
        guard depth > 0 else { return pick(Self.basics) }
        switch below(8) {
        case 0: return "a" + signature(depth: depth - 1)
        case 1: return "a{" + pick(Self.basics) + signature(depth: depth - 1) + "}"
        case 2: return "(" + (0...below(3)).map { _ in signature(depth: depth - 1) }.joined() + ")"
        case 3: return "v"
        case 4: return "a{sv}"
        default: return pick(Self.basics)
        }
    }

    /// A value of this complete type, often an extreme one.
    public mutating func value(of signature: String, depth: Int = 4) -> Value {
        var types = Array(signature.utf8)[...]
        return value(&types, depth)
    }

    /// A value of each of these types.
    public mutating func values(of signature: String, depth: Int = 4) -> [Value] {
        var types = Array(signature.utf8)[...]
        var result: [Value] = []
        while !types.isEmpty { result.append(value(&types, depth)) }
        return result
    }

    private mutating func value(_ types: inout ArraySlice<UInt8>, _ depth: Int) -> Value {
        guard let code = types.popFirst() else { return .byte(0) }
        switch UnicodeScalar(code) {
        case "b": return .bool(nextByte() & 1 == 1)
        case "n": return .int16(pick([.min, -1, 0, 1, .max, Int16(truncatingIfNeeded: next())]))
        case "q": return .uint16(pick([0, 1, .max, UInt16(truncatingIfNeeded: next())]))
        case "i": return .int32(pick([.min, -1, 0, 1, .max, Int32(truncatingIfNeeded: next())]))
        case "u": return .uint32(pick([0, 1, 2, 4_194_304, .max, UInt32(truncatingIfNeeded: next())]))
        case "x": return .int64(pick([.min, -1, 0, 1, .max, Int64(truncatingIfNeeded: next())]))
        case "t": return .uint64(pick([0, 1, .max, next()]))
        case "d": return .double(real())
        case "s": return .string(text())
        case "o": return .objectPath(path())
        case "g": return .signature(pick(["", "a{sv}", "v", "(iiii)", "aaaaaaaaaaaaaaaas"]))
        case "v":
            let inner = self.signature(depth: depth > 0 ? 2 : 0)
            return .variant(value(of: inner, depth: depth - 1))
        case "a":
            guard depth > 2, types.starts(with: Array("{sv}".utf8)), once(in: 2) else { return array(&types, depth) }
            types.removeFirst(4)
            return options()
        case "(":
            var fields: [Value] = []
            while let code = types.first, code != UInt8(ascii: ")") { fields.append(value(&types, depth - 1)) }
            types.removeFirst()
            return .structure(fields)
        default: return .byte(nextByte())
        }
    }

    /// A dictionary that the service may accept: known keys with values of the right types.
    public mutating func options() -> Value {
        let words = Self.words.filter { !$0.isEmpty }
        let known: [(String, (inout Dice) -> Value)] = [
            ("category", { .string($0.pick(["playback", "ambient", "play-and-record", "solo-ambient", "record"])) }),
            ("mode", { .string($0.pick(["default", "default", "spoken-audio", "voice-chat"])) }),
            ("options", { .strings($0.pick([[], ["mix-with-others"], ["duck-others"], [$0.pick(words)]])) }),
            ("class", { .string($0.pick(["app", "app", "app", "alert", "call"])) }),
            ("desktop-entry", { .string($0.pick(words)) }),
            ("notify-on-exit", { .bool($0.once(in: 2)) }),
            ("notify-others", { .bool($0.once(in: 2)) }),
            ("sample-rate", { .double($0.real()) }),
            ("io-buffer-duration", { .double($0.real()) }),
            ("interrupt-on-route-disconnect", { .bool($0.once(in: 2)) }),
            ("object", { .objectPath($0.path()) }),
        ]
        return .properties(
            (0..<below(3)).map { _ in
                let (key, value) = pick(known)
                return (key, value(&self))
            })
    }

    private mutating func array(_ types: inout ArraySlice<UInt8>, _ depth: Int) -> Value {
        let all = types
        skip(&types)
        let element = all[all.startIndex..<types.startIndex]
        let count = depth > 0 ? pick([0, 1, 1, 2, 3, below(16)]) : 0
        guard element.first == UInt8(ascii: "{") else {
            let name = String(decoding: element, as: UTF8.self)
            return .array(of: name, (0..<count).map { _ in value(of: name, depth: depth - 1) })
        }
        var inside = element.dropFirst().dropLast()
        let key = String(decoding: inside.prefix(1), as: UTF8.self)
        inside = inside.dropFirst()
        let type = String(decoding: inside, as: UTF8.self)
        let entries = (0..<count).map { _ in
            DictionaryEntry(key: value(of: key, depth: 0), value: value(of: type, depth: depth - 1))
        }
        return .dictionary(key: key, value: type, entries)
    }

    /// Skips one complete type.
    private func skip(_ types: inout ArraySlice<UInt8>) {
        var open = 0
        while let code = types.popFirst() {
            switch UnicodeScalar(code) {
            case "a": continue
            case "(", "{": open += 1
            case ")", "}": open -= 1
            default: break
            }
            if open == 0 { return }
        }
    }

    private mutating func real() -> Double {
        pick([
            0, -0.0, 1, -1, .nan, .infinity, -.infinity, .greatestFiniteMagnitude, -.greatestFiniteMagnitude,
            .leastNonzeroMagnitude, .signalingNaN, 44_100, 9.3e18, Double(bitPattern: next()),
        ])
    }

    private mutating func text() -> String {
        switch below(8) {
        case 0: return pick(Self.oddTexts)
        case 1: return String(repeating: pick(["x", "é", "\u{1}", "👾"]), count: pick([1, 255, 256, 4096]))
        case 2:
            // NUL would end the text.
            return String(String.UnicodeScalarView((0..<below(12)).map { _ in UnicodeScalar(max(1, nextByte())) }))
        default: return pick(Self.words)
        }
    }

    private mutating func path() -> String {
        once(in: 3) ? "/org/sessiond1/session/\(below(200))" : pick(Self.paths)
    }
}
