import DBus
import EventLoop
import PluginAPI
import SessionBus

/// The daemon's state on one screen.
struct StatusView {
    let snapshot: Snapshot
    let terminal: Terminal
    private let names: Names
    /// The time that ages are computed from, in microseconds of the daemon's clock.
    private let now: UInt64

    init(_ snapshot: Snapshot, _ terminal: Terminal) {
        now = MonotonicClock.now()
        self.snapshot = snapshot
        self.terminal = terminal
        names = Names(snapshot)
    }

    /// The lines of the view. If they are more than `rows`, inactive sessions are left out.
    func lines(width: Int?, rows: Int?) -> [String] {
        let top = header.lines(on: terminal, width: width)
        let below = [strangers, plugins].compactMap { $0 }.map { $0.lines(on: terminal, width: width) }
        let bottom = Array(below.joined(separator: [""]))
        var shown = SessionTree(snapshot.sessions).rows
        while true {
            let middle = table(shown, width).lines(on: terminal, width: width)
            let all = top + [""] + middle + (bottom.isEmpty ? [] : [""] + bottom)
            guard let rows, all.count > rows, shown.last?.session.state == .inactive else { return all }
            // Leaves out at least two sessions, because one line tells how many are left out.
            let spare = max(2, all.count - rows + 1)
            let idle = shown.reversed().prefix { $0.session.state == .inactive && $0.branch.isEmpty }.count
            guard idle >= 2 else { return all }
            shown.removeLast(min(spare, idle))
        }
    }

    // MARK: State of all sessions

    private var header: Table {
        var table = Table()
        let isConnected = snapshot["ServerConnected"]?.boolValue ?? false
        let server = ServerLabel(snapshot["ServerName"]?.stringValue ?? "").text.escaped
        table.add([
            title("Sound"),
            isConnected
                ? Table.Cell(server.isEmpty ? "connected" : server)
                : Table.Cell("no sound server; sessiond decides, but cannot change streams", .bad),
        ])
        let route = snapshot["CurrentRoute"]?.route ?? .none
        if isConnected {
            table.add([title("Output"), Table.Cell(Wording.ports(route.outputs) + lastChange(route, \.outputs))])
            table.add([title("Input"), Table.Cell(Wording.ports(route.inputs) + lastChange(route, \.inputs))])
        }
        // Below, only what differs from the usual.
        for (index, camera) in cameras.enumerated() { table.add([title(index == 0 ? "Camera" : ""), camera]) }
        let path = snapshot["NowPlaying"]?.objectPathValue ?? ObjectPath.none
        if path != ObjectPath.none { table.add([title("Now playing"), Table.Cell(names[path], .strong)]) }
        if snapshot["SilentMode"]?.boolValue ?? false {
            table.add([title("Silent switch"), Table.Cell("on", .warning)])
        }
        if snapshot["ScreenLocked"]?.boolValue ?? false {
            table.add([title("Screen"), Table.Cell("locked", .warning)])
        }
        let problem = snapshot["SettingsError"]?.stringValue ?? ""
        if !problem.isEmpty {
            table.add([title("Settings"), Table.Cell("not read again: \(problem.escaped)", .bad)])
        }
        for (index, neighbour) in (snapshot["Neighbours"]?.arrayValue ?? []).enumerated() {
            let fields = neighbour.asProperties ?? [:]
            func text(_ key: String) -> String { fields[key]?.stringValue?.escaped ?? "" }
            table.add([
                title(index == 0 ? "Neighbours" : ""), Table.Cell("\(text("name")): \(text("does"))", .warning),
            ])
        }
        return table
    }

    /// Who uses a camera, such as `Front, by Doorbell, since 12 s, recording`.
    private var cameras: [Table.Cell] {
        snapshot.cameras.compactMap(\.asProperties).filter { $0["Running"]?.boolValue == true }.map { session in
            let inputs = (session["Inputs"]?.arrayValue ?? []).compactMap(\.asProperties)
            let camera = inputs.first { $0["media"]?.stringValue == "video" }?["name"]?.stringValue?.escaped ?? ""
            let name = session["Name"]?.stringValue?.escaped ?? ""
            let isPaused = session["Paused"]?.boolValue == true
            let film = session["Recording"]?.boolValue == true ? (isPaused ? ", film paused" : ", recording") : ""
            return Table.Cell(
                "\(camera), by \(name), since \(age(session["RunningSince"]?.uint64Value ?? 0))\(film)", .warning)
        }
    }

    private func title(_ text: String) -> Table.Cell { Table.Cell(text, .dim) }

    /// The previous route, and the reason and age of the change: ` ← Headphones (old device unavailable, 12 s ago)`.
    /// Empty if the current route is not the result of that change, for example after a new server was found.
    private func lastChange(_ route: Route, _ ports: (Route) -> [Port]) -> String {
        for decision in snapshot.decisions.reversed() {
            for effect in decision.effects.reversed()
            where effect["effect"]?.stringValue == "route-changed"
                && effect["session"]?.objectPathValue == ObjectPath.none
            {
                guard let before = effect["previous"]?.route, let after = effect["current"]?.route,
                    ports(before).map(\.uid) != ports(after).map(\.uid)
                else { continue }
                guard ports(after).map(\.uid) == ports(route).map(\.uid) else { return "" }
                let reason = Wording.reason(effect["reason"]?.uint32Value ?? 0)
                return " ← \(Wording.ports(ports(before))) (\(reason), \(age(decision.time)) ago)"
            }
        }
        return ""
    }

    private func age(_ time: UInt64) -> String { Wording.age(time, now) }

    /// What plays or records without a session.
    private var strangers: Table? {
        let streams = (snapshot.streams ?? []).filter(\.isStranger)
        guard !streams.isEmpty else { return nil }
        var table = Table()
        for (index, stream) in streams.enumerated() {
            table.add([
                title(index == 0 ? "No session" : ""), Table.Cell(stream.program.escaped),
                Table.Cell(stream.remark.escaped, stream.isSurprise ? .warning : .dim),
            ])
        }
        return table
    }

    /// The plugins that run, or that cannot; `sessionctl plugins` lists the others.
    private var plugins: Table? {
        let plugins = (snapshot.plugins ?? []).filter {
            $0.asProperties?["state"]?.stringValue.map { $0 != "stopped" } ?? false
        }
        guard !plugins.isEmpty else { return nil }
        var table = Table()
        for (index, plugin) in plugins.enumerated() {
            let fields = plugin.asProperties ?? [:]
            func text(_ key: String) -> String { fields[key]?.stringValue?.escaped ?? "" }
            table.add([
                title(index == 0 ? "Plugins" : ""), Table.Cell(text("name").isEmpty ? text("id") : text("name")),
                Table.Cell(text("kind")), Table.Cell(text("state"), Wording.pluginStyle(text("state"))),
                Table.Cell(text("message"), .dim),
            ])
        }
        return table
    }

    // MARK: Sessions

    private func table(_ rows: [SessionTree.Row], _ width: Int?) -> Table {
        var table = Table()
        guard !snapshot.sessions.isEmpty else {
            table.add([Table.Cell("No sessions.", .dim)])
            return table
        }
        // A very narrow terminal has no room for the ages.
        let hasAges = width.map { $0 >= Self.leastForAges } ?? true
        table.addHeader(["STATE", "SESSION", "KIND"] + (hasAges ? ["SINCE"] : []) + ["WHY"])
        // The state, the kind and the age are never cut; a name only to what distinguishes it from others.
        table.whole = hasAges ? [0, 2, 3] : [0, 2]
        table.kept = [1: 20]
        table.below = 4
        for row in rows {
            let session = row.session
            let isIdle = session.state == .inactive
            table.add(
                [
                    Table.Cell(session["State"]?.stringValue?.escaped ?? "", stateStyle(session)),
                    Table.Cell(row.branch + session.name.escaped, isIdle ? .dim : .strong),
                    Table.Cell(Wording.kind(session), isIdle ? .dim : .plain),
                ]
                    + (hasAges
                        ? [Table.Cell(session.since == 0 ? "" : age(session.since), isIdle ? .dim : .plain)] : [])
                    + [Table.Cell(remarks(on: session).joined(separator: "; "), isIdle ? .dim : .plain)])
        }
        let hidden = snapshot.sessions.count - rows.count
        if hidden > 0 { table.add([Table.Cell("and \(hidden) more that are inactive: sessionctl list", .dim)]) }
        return table
    }

    private static let leastForAges = 60

    private func stateStyle(_ session: SessionInfo) -> Style {
        switch session.state {
        case .active: session.isMuted ? .warning : .good
        case .interrupted: .warning
        case .inactive: .dim
        case nil: .plain
        }
    }

    private func remarks(on session: SessionInfo) -> [String] {
        var remarks: [String] = []
        if session.state == .interrupted { remarks.append(interruption(of: session)) }
        if !session.evidence.isEmpty { remarks.append(session.evidence.escaped) }
        if session.ignoredInterruption { remarks.append(Wording.ignored) }
        if session.path == snapshot["NowPlaying"]?.objectPathValue { remarks.append("now playing") }
        if session.isDucked {
            let duckers = snapshot.sessions.filter { $0.isDucker && $0.state == .active && $0.path != session.path }
            let by = duckers.isEmpty ? "" : " by \(Wording.list(duckers.map(\.name.escaped)))"
            let start = snapshot.explanation(of: session.path, "ducked")?["since-usec"]?.uint64Value
            remarks.append("ducked \(Wording.decibels(session.duckGain))\(by)" + (start.map { ", \(age($0))" } ?? ""))
        }
        if session.isMuted {
            let isSilent = snapshot["SilentMode"]?.boolValue ?? false
            remarks.append("muted by the \(isSilent ? "silent switch" : "screen lock")")
        }
        if snapshot["ServerConnected"]?.boolValue == true, let lack = Wording.lack(of: session) { remarks.append(lack) }
        if session.state == .inactive, let remark = expectation(of: session) { remarks.append(remark) }
        if !session.isForeground { remarks.append("in the background") }
        return remarks
    }

    private func interruption(of session: SessionInfo) -> String {
        let by = snapshot.explanation(of: session.path, "interrupted")?["by-name"]?.stringValue?.escaped
        var text = Wording.interruption(session.interruptionReason, by: by.flatMap { $0.isEmpty ? nil : $0 })
        let waits = session.waitingFor.map { path -> String in
            let other = snapshot.sessions.first { $0.path == path }
            switch other?.state {
            case .active, nil: return names[path]
            case .interrupted: return names[path] + " (interrupted too)"
            case .inactive: return names[path] + " (may come back)"
            }
        }
        if waits == [by] {
            text += ", waits for it"
        } else if !waits.isEmpty {
            text += ", waits for " + Wording.list(waits)
        }
        return text
    }

    /// Which sessions still wait for an inactive session, or why it was refused.
    private func expectation(of session: SessionInfo) -> String? {
        let waiting = snapshot.sessions.filter { $0.waitingFor.contains(session.path) }.map(\.name.escaped)
        if !waiting.isEmpty {
            return "may come back: \(Wording.list(waiting)) still \(waiting.count == 1 ? "waits" : "wait") for it"
        }
        guard let refusal = snapshot.explanation(of: session.path, "refused") else { return nil }
        let message = refusal["message"]?.stringValue?.escaped ?? ""
        return "refused \(age(refusal["since-usec"]?.uint64Value ?? 0)) ago: \(message)"
    }
}
