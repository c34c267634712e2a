import ArgumentParser
import DBus
import EventLoop
import Glibc
import SessionBus

/// `sessionctl explain`.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain why a session is in its state, back to the first cause; or why a program has no session.")

    @Argument(
        help: "A session by its number or path, or all sessions of a program by (part of) its name or its process id.",
        completion: .sessionsAndPrograms)
    var session: String
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let sessions = try service.sessions()
        let strangers = try sessions.contains { $0.isNamed(session) } ? [] : service.streams().strangers(named: session)
        if !strangers.isEmpty { return tell(strangers) }
        for chosen in try sessions.all(by: session) { try explain(chosen, service) }
    }

    private func explain(_ chosen: SessionInfo, _ service: Service) throws {
        let causes = try service.ask("Explain", [.objectPath(chosen.path)]).first?.arrayValue ?? []
        if output.json {
            return Output.line(
                JSON.object(
                    .explain,
                    [
                        ("path", .objectPath(chosen.path)), ("Name", .string(chosen.name)),
                        ("causes", .array(of: "a{sv}", causes)),
                    ]))
        }
        Output.line(Terminal.standard.styled(chosen.name.escaped, .strong))
        let clock = WallClock()
        var table = Table(indent: 2)
        for fields in causes.compactMap(\.asProperties) {
            table.add([
                Table.Cell(fields["rule"]?.stringValue?.escaped ?? "", .dim), Table.Cell(text(fields, chosen, clock)),
            ])
        }
        Output.write(table)
    }

    /// Why a program that plays or records has no session.
    private func tell(_ strangers: [StreamInfo]) {
        let name = strangers[0].program
        if output.json {
            return Output.line(
                JSON.object(
                    .explain,
                    [
                        ("path", .objectPath(ObjectPath.none)), ("Name", .string(name)),
                        ("causes", .array(of: "a{sv}", [])), ("Streams", .array(of: "a{sv}", strangers.map(\.raw))),
                    ]))
        }
        Output.line(Terminal.standard.styled(name.escaped, .strong))
        for stream in strangers { Output.line("  " + stream.remark.escaped) }
    }

    /// A cause as a sentence, with its times.
    private func text(_ fields: [String: Value], _ chosen: SessionInfo, _ clock: WallClock) -> String {
        let since = clock.text(fields["since-usec"]?.uint64Value ?? 0)
        let text = fields["text"]?.stringValue?.escaped ?? ""
        let until = fields["until-usec"]?.uint64Value.map { ", until \(clock.text($0))" } ?? ""
        let isSubject = fields["session"]?.objectPathValue == chosen.path
        switch fields["cause"]?.stringValue ?? "" {
        case "active": return "active since \(since): \(text)"
        case "interrupted" where isSubject, "inactive", "claim": return "silent since \(since): \(text)\(until)"
        case "ducked": return "since \(since) \(text)"
        case "muted", "lacks-route", "stream-silenced", "player-paused": return "since \(since) \(text)"
        case "refused":
            // The names of the method and of the error are for programs.
            let request = text.hasPrefix("its last Activate ") ? "activation" : "request"
            let message = Wording.forPeople(fields["message"]?.stringValue ?? "").escaped
            return "at \(since) its last \(request) was refused: \(message)"
        case "adopted": return text
        default: return "\(text) (since \(since)\(until))"
        }
    }
}

/// Converts times of the monotonic clock to the time of day.
struct WallClock {
    private let monotonic = MonotonicClock.now()
    private let wall = time(nil)

    /// `12:03:04`, with the date if it is another day.
    func text(_ microseconds: UInt64) -> String {
        let age = (Int64(clamping: monotonic) - Int64(clamping: microseconds)) / 1_000_000
        let now = parts(wall)
        let then = parts(wall - Int(age))
        let clock = [then.tm_hour, then.tm_min, then.tm_sec].map { Wording.two(Int($0)) }.joined(separator: ":")
        guard then.tm_yday != now.tm_yday || then.tm_year != now.tm_year else { return clock }
        return
            "\(Int(then.tm_year) + 1900)-\(Wording.two(Int(then.tm_mon) + 1))-\(Wording.two(Int(then.tm_mday))) \(clock)"
    }

    private func parts(_ time: time_t) -> tm {
        var time = time
        var parts = tm()
        localtime_r(&time, &parts)
        return parts
    }
}
