import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus
import Timeline

/// What the service knows about the past: the history, and how the sessions are now.
struct TimelineFacts {
    private let decisions: [PastDecision]
    private let sessions: [SessionInfo]

    private static let page: UInt32 = 256

    /// Reads as much as is known of that many microseconds; answers once, from the loop.
    static func read(
        _ service: Service, since span: UInt64, _ reply: @escaping (Result<TimelineFacts, Failure>) -> Void
    ) {
        let now = MonotonicClock.now()
        let start = now > span ? now - span : 0
        var pages: [[PastDecision]] = []
        func readPage(before sequence: UInt64?) {
            let arguments: [Value] = (sequence.map { [.uint64($0)] } ?? []) + [.uint32(page)]
            service.call(sequence == nil ? "History" : "HistoryBefore", arguments) { answer in
                switch answer {
                case .failure(let failure): reply(.failure(failure))
                case .success(let values):
                    let page = (values.first?.arrayValue ?? []).compactMap(PastDecision.init)
                    pages.append(page)
                    if let first = page.first, first.time > start { return readPage(before: first.sequence) }
                    readSessions()
                }
            }
        }
        func readSessions() {
            service.call("ListSessions", []) { answer in
                reply(
                    answer.map { values in
                        TimelineFacts(
                            decisions: pages.reversed().flatMap(\.self),
                            sessions: (values.first?.arrayValue ?? []).compactMap(SessionInfo.init))
                    })
            }
        }
        readPage(before: nil)
    }

    /// The last `span` microseconds before `now`.
    func timeline(of span: UInt64, at now: UInt64) -> Timeline {
        var recorder = TimelineRecorder(since: decisions.first?.time ?? 0)
        var names = Names()
        for decision in decisions where !decision.name.isEmpty { names.learn(decision.session, decision.name) }
        for session in sessions { names.learn(session.path, session.name) }
        for decision in decisions { note(decision, names, &recorder) }
        for session in sessions {
            recorder.describe(session.path, name: Self.programName(names[session.path]), kind: Wording.kind(session))
            recorder.settle(session.path, condition(of: session, names), since: session.since)
        }
        return recorder.timeline(from: now > span ? now - span : 0, to: now, offset: Self.offset(now))
    }

    private func note(_ decision: PastDecision, _ names: Names, _ recorder: inout TimelineRecorder) {
        if decision.error != nil {
            let who = decision.session == ObjectPath.none ? "" : names[decision.session] + " "
            if decision.event == "activate" { recorder.mark(who + Wording.event(decision), at: decision.time) }
            return
        }
        if let kind = Self.kind(decision) { recorder.describe(decision.session, kind: kind) }
        switch decision.event {
        case "set-silent-mode", "set-screen-locked", "services-lost", "services-reset", "microphone-muted", "sleep",
            "wake":
            recorder.mark(Wording.event(decision), at: decision.time)
        case "client-hangs":
            recorder.mark("\(names[decision.session]) \(Wording.event(decision))", at: decision.time)
        case _: break
        }
        for effect in decision.effects {
            let path = effect["session"]?.objectPathValue ?? ObjectPath.none
            if path == ObjectPath.none {
                if let text = Self.route(effect, decision) { recorder.mark(text, at: decision.time) }
            } else if let fact = Self.fact(effect) {
                recorder.describe(path, name: Self.programName(names[path]))
                recorder.note(fact, of: path, at: decision.time)
            }
        }
    }

    private static func fact(_ effect: [String: Value]) -> TimelineRecorder.Fact? {
        switch effect["effect"]?.stringValue ?? "" {
        case "created": return .created
        case "closed": return .closed
        case "activated": return .activated
        case "deactivated": return .deactivated
        case "interruption-began":
            let reason = effect["reason"]?.stringValue.flatMap(InterruptionReason.init(rawValue:))
            let name = effect["by-name"]?.stringValue.flatMap { $0.isEmpty ? nil : $0.escaped }
            return .interrupted(Wording.interruption(reason, by: name))
        case "interruption-ended", "claim-dropped": return .released
        case "ducking-changed":
            guard effect["ducked"]?.boolValue ?? false else { return .unducked }
            return .ducked(ducking(effect["gain-db"]?.doubleValue ?? 0))
        case "muted-changed": return effect["muted"]?.boolValue ?? false ? .muted : .unmuted
        case _: return nil
        }
    }

    /// A change of what is heard from; nil for new settings of the same devices.
    private static func route(_ effect: [String: Value], _ decision: PastDecision) -> String? {
        guard effect["effect"]?.stringValue == "route-changed", let previous = effect["previous"]?.route,
            let current = effect["current"]?.route,
            previous.outputs.map(\.uid) != current.outputs.map(\.uid)
                || previous.inputs.map(\.uid) != current.inputs.map(\.uid)
        else { return nil }
        return Wording.routeChange(effect["reason"]?.uint32Value ?? 0, from: previous, to: current)
    }

    private func condition(of session: SessionInfo, _ names: Names) -> TimelineRecorder.Condition {
        switch session.state {
        case .active:
            TimelineRecorder.Condition(
                .active, ducking: session.isDucked ? Self.ducking(session.duckGain) : nil, isMuted: session.isMuted)
        case .interrupted:
            TimelineRecorder.Condition(
                .waiting,
                wait: Wording.interruption(
                    session.interruptionReason,
                    by: session.waitingFor.isEmpty ? nil : Wording.list(session.waitingFor.map { names[$0] })))
        case .inactive, nil: TimelineRecorder.Condition(.idle)
        }
    }

    private static func ducking(_ gain: Double) -> String { "ducked " + Wording.decibels(gain) }

    private static let callSuffix = " (call)"

    private static func programName(_ name: String) -> String {
        name.hasSuffix(callSuffix) ? String(name.dropLast(callSuffix.count)) : name
    }

    /// The kind of a session that may be gone, from the words of the step that created or changed it.
    private static func kind(_ decision: PastDecision) -> String? {
        guard decision.event == "create" || decision.event == "set-category" else { return nil }
        let description = decision.step.split(separator: " evidence=", maxSplits: 1).first ?? ""
        let words = description.split(separator: " ")
        guard let index = words.lastIndex(where: { Category(rawValue: String($0)) != nil }) else { return nil }
        func value(_ key: String) -> String? {
            words[index...].first { $0.hasPrefix(key + "=") }.map { String($0.dropFirst(key.count + 1)) }
        }
        // `set-category` does not tell the class; the kind of a call or an alert does not depend on the category.
        guard decision.event == "create" || value("class") != nil else { return nil }
        return SessionInfo(
            .properties([
                ("path", .objectPath(decision.session)), ("Category", .string(String(words[index]))),
                ("Mode", .string(value("mode") ?? "default")),
                ("Options", .strings((value("options") ?? "").split(separator: ",").map(String.init))),
                ("Class", .string(value("class") ?? "app")),
            ])
        ).map(Wording.kind)
    }

    /// What must be added to a time for the local time of day, in microseconds.
    private static func offset(_ now: UInt64) -> Int64 {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        var local = tm()
        localtime_r(&wall.tv_sec, &local)
        return (Int64(wall.tv_sec) + Int64(local.tm_gmtoff)) * 1_000_000 + Int64(wall.tv_nsec / 1000)
            - Int64(clamping: now)
    }
}
