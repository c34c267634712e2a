import DBus
import PluginAPI
import SessionBus
import Timeline

/// Texts for users. Escapes everything that comes from clients and servers.
enum Wording {
    /// The message of an error without the platform's number at its end, such as ` (!pri)` or ` (-50)`, and with commands
    /// and options in the place of the words for programs.
    static func forPeople(_ message: String) -> String { withCommands(withoutNumber(message)) }

    private static func withoutNumber(_ message: String) -> String {
        for code in SessionError.Code.allCases where !code.platformCode.isEmpty {
            let suffix = " (\(code.platformCode))"
            if message.hasSuffix(suffix) { return String(message.dropLast(suffix.count)) }
        }
        return message
    }

    /// The style of a plugin's state.
    static func pluginStyle(_ state: String) -> Style {
        switch state {
        case "running": .good
        case "crashed", "unsupported": .bad
        case "starting", "stopping": .warning
        default: .plain
        }
    }

    /// A duration for users: `0.2 s`, `12 s`, `3 min`, `2 h`, `5 d`.
    static func duration(_ microseconds: UInt64) -> String { Timeline.duration(microseconds) }

    /// The time from `time` to `now`.
    static func age(_ time: UInt64, _ now: UInt64) -> String { duration(now > time ? now - time : 0) }

    /// A position in media: `1:05`, `1:02:03`; `–:––` if it is unknown.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 0, seconds < 1e9 else { return "–:––" }
        let whole = Int(seconds)
        let rest = two(whole % 60)
        return whole < 3600 ? "\(whole / 60):\(rest)" : "\(whole / 3600):\(two(whole / 60 % 60)):\(rest)"
    }

    static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }

    /// An amount of bytes: `512 bytes`, `1.5 kB`, `20 MB`; a kB is 1000 bytes.
    static func bytes(_ count: UInt64) -> String {
        guard count >= 1_000 else { return "\(count) bytes" }
        var (amount, unit) = (Double(count) / 1_000, 0)
        let units = ["kB", "MB", "GB", "TB", "PB", "EB"]
        while amount >= 999.95, unit < units.count - 1 { (amount, unit) = (amount / 1_000, unit + 1) }
        return "\(amount < 100 ? tenths(amount) : String(Int(amount.rounded()))) \(units[unit])"
    }

    /// A number with one digit after the point, or without it if that is 0; "?" for NaN and infinity.
    static func tenths(_ number: Double) -> String {
        guard number.isFinite, abs(number) < 1e12 else { return "?" }
        let rounded = (number * 10).rounded() / 10
        return rounded == rounded.rounded() ? String(Int(rounded)) : String(rounded)
    }

    /// A number of a plugin, as the nearest integer in the range; the lower bound for NaN.
    static func whole(_ number: Double, _ range: ClosedRange<Int>) -> Int {
        guard !number.isNaN else { return range.lowerBound }
        return Int(min(max(number, Double(range.lowerBound)), Double(range.upperBound)))
    }

    /// `A`, `A and B`, `A, B and C`.
    static func list(_ names: [String]) -> String {
        guard names.count > 1, let last = names.last else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    /// The name of a port, with its type if the name does not contain it.
    static func port(_ port: Port) -> String {
        let name = port.name.escaped
        let type = portType(port.type)
        return name.lowercased().includes(type.lowercased()) ? name : "\(name) (\(type))"
    }

    static func ports(_ ports: [Port]) -> String {
        ports.isEmpty ? "none" : ports.map(port).joined(separator: " + ")
    }

    static func portType(_ type: PortType) -> String {
        switch type {
        case .lineIn: "line in"
        case .microphoneBuiltIn: "built-in microphone"
        case .microphoneWired: "wired microphone"
        case .lineOut: "line out"
        case .headphones: "headphones"
        case .bluetoothA2DP: "Bluetooth"
        case .receiver: "receiver"
        case .speaker: "speaker"
        case .hdmi: "HDMI"
        case .airPlay: "AirPlay"
        case .displayPort: "DisplayPort"
        case .bluetoothHFP: "Bluetooth headset"
        case .usbAudio: "USB"
        case .carAudio: "car"
        case .virtual: "virtual"
        case .pci: "PCI"
        }
    }

    /// A change of the route, as a sentence.
    static func routeChange(_ number: UInt32, from previous: Route, to current: Route) -> String {
        let keepsOutputs = previous.outputs.map(\.uid) == current.outputs.map(\.uid)
        let keepsInputs = previous.inputs.map(\.uid) == current.inputs.map(\.uid)
        let usesInputs = keepsOutputs && (!keepsInputs || current.outputs.isEmpty)
        let before = usesInputs ? previous.inputs : previous.outputs
        let after = usesInputs ? current.inputs : current.outputs
        let left = ports(before.filter { port in !after.contains { $0.uid == port.uid } })
        let now = after.isEmpty ? "nothing" : ports(after)
        let isSame = before.map(\.uid) == after.map(\.uid)
        switch RouteChangeReason(rawValue: number) {
        case .newDeviceAvailable:
            return isSame ? "a new device is available; still \(now)" : "\(now) connected ← \(ports(before))"
        case .oldDeviceUnavailable: return isSame ? "a device was removed; still \(now)" : "\(left) unplugged → \(now)"
        case .categoryChange: return "\(isSame ? "" : ports(before) + " ")→ \(now), changed by the category"
        case .override: return "\(isSame ? "" : ports(before) + " ")→ \(now), overridden"
        case .wakeFromSleep: return "→ \(now), after sleep"
        case .noSuitableRouteForCategory: return nothingSuits
        case .routeConfigurationChange: return "\(now) has new settings"
        case .unknown, nil: return isSame ? "→ \(now)" : "\(ports(before)) → \(now)"
        }
    }

    /// Whether the reason concerns single sessions. They get their own signals, so the signal of the manager adds
    /// nothing.
    static func isOfSessions(_ reason: UInt32) -> Bool {
        RouteChangeReason(rawValue: reason) == .noSuitableRouteForCategory
    }

    /// The reason of a route change, in words.
    static func reason(_ number: UInt32) -> String {
        RouteChangeReason(rawValue: number)?.name.split(separator: "-").joined(separator: " ") ?? "reason \(number)"
    }

    static let ignored = "played on although it was interrupted; silenced at the sound server"

    private static let nothingSuits = "no input or output suits the category"

    /// The input or output that the session's category needs and that is not available; nil if there is none.
    static func lack(of session: SessionInfo) -> String? {
        guard let category = Category(rawValue: session.category) else { return nil }
        let hasNoInput = category.hasInput && session["AvailableInputs"]?.arrayValue?.isEmpty == true
        let hasNoOutput = category.hasOutput && session["CurrentRoute"]?.route?.outputs.isEmpty == true
        guard hasNoInput || hasNoOutput else { return nil }
        return "no usable " + list((hasNoInput ? ["input"] : []) + (hasNoOutput ? ["output"] : []))
    }

    /// The reason why it is silent, without the sessions that it waits for.
    static func interruption(_ reason: InterruptionReason?, by name: String?) -> String {
        switch reason {
        case .default, nil: name.map { "interrupted by \($0)" } ?? "interrupted"
        case .appWasSuspended: "suspended: the machine sleeps, or its program does not answer"
        case .builtInMicMuted: "paused: the microphone is muted"
        case .routeDisconnected: "paused: its output was disconnected"
        }
    }

    /// A size for users: `700 MB`, `12.3 GB`.
    static func size(_ bytes: Double) -> String {
        bytes < 1e9 ? tenths((bytes / 1e6).rounded()) + " MB" : tenths(bytes / 1e9) + " GB"
    }

    static func decibels(_ gain: Double) -> String { tenths(abs(gain)) + " dB" }
}
