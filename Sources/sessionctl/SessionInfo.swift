import DBus
import PluginAPI
import SessionBus

/// A session as listed by the daemon.
struct SessionInfo {
    /// The unchanged properties, for JSON.
    let raw: Value
    let path: String
    private let properties: [String: Value]

    init?(_ value: Value) {
        guard let properties = value.asProperties, let path = properties["path"]?.objectPathValue else { return nil }
        raw = value
        self.path = path
        self.properties = properties
    }

    subscript(_ property: String) -> Value? { properties[property] }

    var number: UInt64 { ObjectPath.sessionID(path)?.number ?? 0 }
    var name: String { string("Name") }
    /// The name of its program: a guessed call has a suffix.
    var programName: String {
        name.hasSuffix(SessionInfo.callSuffix) ? String(name.dropLast(SessionInfo.callSuffix.count)) : name
    }
    private static let callSuffix = " (call)"
    /// Nil for an unknown state.
    var state: SessionState? { SessionState(rawValue: string("State")) }
    /// When it entered its state, in microseconds of the daemon's clock; 0 if unknown.
    var since: UInt64 { properties["StateSince"]?.uint64Value ?? 0 }
    var category: String { string("Category") }
    var mode: String { string("Mode") }
    var options: [String] { properties["Options"]?.stringsValue ?? [] }
    var sessionClass: SessionClass? { SessionClass(rawValue: string("Class")) }
    var processID: UInt32 { properties["ProcessId"]?.uint32Value ?? 0 }
    var owner: String { string("Owner") }
    var waitingFor: [String] { properties["WaitingFor"]?.objectPathsValue ?? [] }
    var interruptionReason: InterruptionReason? { InterruptionReason(rawValue: string("InterruptionReason")) }
    var isDucked: Bool { properties["Ducked"]?.boolValue ?? false }
    var duckGain: Double { properties["DuckGain"]?.doubleValue ?? 0 }
    var isMuted: Bool { properties["Muted"]?.boolValue ?? false }
    /// Whether it plays on although it was interrupted.
    var ignoredInterruption: Bool { properties["IgnoredInterruption"]?.boolValue ?? false }
    /// The evidence of a guessed call; else empty.
    var evidence: String { string("Evidence") }
    var isForeground: Bool { properties["Foreground"]?.boolValue ?? true }
    /// Whether it ducks others while it is active.
    var isDucker: Bool { options.contains("duck-others") }

    /// Whether that text can mean this session.
    func isNamed(_ text: String) -> Bool {
        path == text || String(number) == text || String(processID) == text
            || name.lowercased().includes(text.lowercased())
    }

    private func string(_ property: String) -> String { properties[property]?.stringValue ?? "" }
}

extension [SessionInfo] {
    /// Finds a session by path, number, process, name or part of a name.
    func chosen(by text: String) throws -> SessionInfo {
        let found = try matching(text)
        let same = found.filter { $0.name.lowercased() == text.lowercased() }
        let session = same.count == 1 ? same[0] : try only(found, text)
        return try session ?? absent(text)
    }

    /// Finds all sessions of a process or of a program by its name, or one by path or number; calls come first.
    func all(by text: String) throws -> [SessionInfo] {
        let found = try matching(text)
        let isOneProgram =
            Set(found.map(\.processID)).count == 1 || Set(found.map { $0.programName.lowercased() }).count == 1
        if found.isEmpty { _ = try absent(text) }
        if !isOneProgram { _ = try only(found, text) }
        return found.filter { $0.sessionClass == .call } + found.filter { $0.sessionClass != .call }
    }

    private func matching(_ text: String) throws -> [SessionInfo] {
        if let session = first(where: { $0.path == text }) { return [session] }
        if text.hasPrefix("/") {
            throw Complaint.refused("there is no session at \(text.escaped); see 'sessionctl list'")
        }
        if let number = UInt64(text) {
            if let session = first(where: { $0.number == number }) { return [session] }
            let ofProcess = filter { UInt64($0.processID) == number }
            if !ofProcess.isEmpty { return ofProcess }
        }
        // An empty text, for example from an unset variable, would match every name.
        guard !text.isEmpty else { throw Complaint.refused("which session? see 'sessionctl list'") }
        let wanted = text.lowercased()
        let same = filter { $0.name.lowercased() == wanted || $0.programName.lowercased() == wanted }
        return same.isEmpty ? filter { $0.name.lowercased().includes(wanted) } : same
    }

    private func absent(_ text: String) throws -> SessionInfo {
        throw Complaint.refused("no session is '\(text.escaped)'; see 'sessionctl list'")
    }

    private func only(_ found: [SessionInfo], _ text: String) throws -> SessionInfo? {
        guard found.count > 1 else { return found.first }
        let lines = found.map { "\n  \($0.number)  \($0.name.escaped)  (pid \($0.processID), \($0.path))" }
        throw Complaint.refused("'\(text.escaped)' matches several sessions; use the number:" + lines.joined())
    }
}
