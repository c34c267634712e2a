import Foundation
import PluginAPI
import Routing
import SessionManager

/// What a daemon saw of a real sound server and what it did, as lines of tab-separated fields:
///
///     port     NUMBER TYPE NAME UID CHANNELS RATE AVAILABLE
///     view     CONNECTED ROUTE PORTS ENUMERATING ENUMERATED HELD PAUSE-DELAY MUTED
///     fact     MICROSECONDS NAME …
///     foresee  CHOICE or nil
///     do       NAME …
///
/// Ports are numbers, separated by commas: outputs, a slash, inputs. A view is valid until the next one. A fact is
/// indented below its cause, because an event that is submitted leads to facts before the next action.
struct Transcript {
    typealias Port = PluginAPI.Port

    struct Line {
        let depth: Int
        let fields: [String]
        var name: String { fields[0] }
    }

    let name: String
    private var lines: [Line]
    private var place = 0
    private var ports: [String: Port] = [:]
    private var view = Routing.View()
    private var routing = Routing()
    /// The differences between the actions and the transcript, with their lines.
    private(set) var differences: [String] = []
    private(set) var factCount = 0

    init(contentsOf path: String) throws {
        name = URL(fileURLWithPath: path).lastPathComponent
        lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
            Line(
                depth: line.prefix { $0 == " " }.count,
                fields: line.drop { $0 == " " }.split(separator: "\t", omittingEmptySubsequences: false).map(
                    String.init))
        }
    }

    /// Replays all facts, and compares the actions.
    mutating func replay() {
        while place < lines.count {
            let line = lines[place]
            switch line.name {
            case "port", "view", "fact": deliverNext()
            default:
                differ("nothing caused this")
                place += 1
            }
        }
    }

    private mutating func differ(_ what: String) {
        differences.append(
            "\(name):\(place + 1): \(what): \(place < lines.count ? lines[place].fields.joined(separator: " ") : "the end")"
        )
    }

    /// Delivers the next fact, with the ports and views before it, and everything that follows from it.
    private mutating func deliverNext() {
        let line = lines[place]
        place += 1
        switch line.name {
        case "port":
            let f = line.fields
            ports[f[1]] = Port(
                type: PortType(rawValue: f[2])!, name: f[3], uid: f[4], channels: UInt32(f[5])!,
                sampleRate: UInt32(f[6])!, isAvailable: f[7] == "true")
        case "view": view = parseView(line.fields)
        default:
            factCount += 1
            deliver(fact(line.fields), at: Instant(microseconds: UInt64(line.fields[1])!), depth: line.depth + 1)
        }
    }

    private mutating func deliver(_ fact: Routing.Fact, at now: Instant, depth: Int) {
        // The transcript has the choice of the sessions where the daemon asked for it. Ports may be declared before it.
        var ahead = place
        while ahead < lines.count, lines[ahead].depth >= depth, lines[ahead].name != "foresee",
            lines[ahead].name != "fact"
        {
            ahead += 1
        }
        var foreseen: RouteChoice?
        var isForeseen = false
        if ahead < lines.count, lines[ahead].depth == depth, lines[ahead].name == "foresee" {
            foreseen = lines[ahead].fields[1] == "nil" ? nil : choice(lines[ahead].fields[1])
            isForeseen = true
        }
        var asked = false
        let effects = routing.handle(fact, view, at: now) { _ in
            asked = true
            return foreseen
        }
        if asked {
            if isForeseen { lines.remove(at: ahead) } else { differ("asked for a choice that is not here") }
        }
        for effect in effects {
            if case .then(let next) = effect {
                deliver(next, at: now, depth: depth)
                continue
            }
            while place < lines.count, lines[place].depth >= depth, lines[place].name == "port" { deliverNext() }
            let expected = place < lines.count && lines[place].depth == depth ? lines[place].fields : []
            let text = ["do"] + rendered(effect)
            guard Array(expected.prefix(text.count)) == text else {
                differ("did \(text.joined(separator: " ")) instead of")
                continue
            }
            place += 1
            guard case .submit = effect else { continue }
            while place < lines.count, lines[place].depth >= depth, lines[place].name != "do",
                lines[place].name != "foresee"
            {
                deliverNext()
            }
        }
    }

    private func fact(_ f: [String]) -> Routing.Fact {
        switch f[2] {
        case "lost": .servicesLost
        case "reset": .servicesReset
        case "route": .routeChanged(RouteChangeReason(rawValue: UInt32(f[3])!)!, previous: route(f[4]))
        case "ports": .portsChanged
        case "mute": .inputMuteChanged
        case "wanted": .wanted(choice(f[4]), reason: UInt32(f[3]).flatMap(RouteChangeReason.init))
        case "guards": .guarded(f[3] == "true", isSilent: f[4] == "true")
        case "request": .requested
        case "woke": .woke
        case "patience", "guardTime": .timePassed
        default: fatalError("an unknown fact: \(f[2])")
        }
    }

    private func rendered(_ effect: Routing.Effect) -> [String] {
        switch effect {
        case .submit(.servicesLost): ["submit", "lost"]
        case .submit(.servicesReset(let audio)): ["submit", "reset", text(audio)]
        case .submit(.routeChanged(let reason, let audio)): ["submit", "route", "\(reason.rawValue)", text(audio)]
        case .submit(.portsChanged(let audio)): ["submit", "ports", text(audio)]
        case .submit(.microphoneMuted(let muted)): ["submit", "microphone", "\(muted)"]
        case .submit(let event): ["submit", event.name]
        case .ask(.output(let uid, _), let reason): ["output", uid, "\(reason.rawValue)"]
        case .ask(.input(let uid, _), let reason): ["input", uid, "\(reason.rawValue)"]
        case .ask(.formerOutput, let reason): ["formerOutput", "\(reason.rawValue)"]
        case .ask(.formerInput, let reason): ["formerInput", "\(reason.rawValue)"]
        case .ask(.handsFree(let uid), let reason): ["handsFree", uid ?? "-", "\(reason.rawValue)"]
        case .wish(let wish): ["wish", text(wish)]
        case .guardOutput(let guards): ["guard", "\(guards)"]
        case .releaseOutput: ["release"]
        case .warn(let text): ["warn", text]
        case .then: []
        }
    }

    private func text(_ wish: OutputWish) -> String {
        func text(_ number: Double?) -> String { if let number { "\(number)" } else { "-" } }
        return text(wish.sampleRate) + ";" + text(wish.bufferDuration)
    }

    private func text(_ list: [Port]) -> String {
        list.map { port in ports.first { $0.value == port }?.key ?? "?" }.joined(separator: ",")
    }

    private func text(_ audio: Audio) -> String {
        [audio.route.outputs, audio.route.inputs, audio.outputs, audio.inputs].map { text($0) }.joined(separator: "/")
    }

    private func parsePorts(_ text: some StringProtocol) -> [Port] {
        text.split(separator: ",").map { ports[String($0)]! }
    }

    private func route(_ text: String) -> Route {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return Route(inputs: parsePorts(parts[1]), outputs: parsePorts(parts[0]))
    }

    private func parseView(_ f: [String]) -> Routing.View {
        var view = Routing.View()
        view.isConnected = f[1] == "true"
        let offered = route(f[3])
        view.audio = Audio(route: route(f[2]), inputs: offered.inputs, outputs: offered.outputs)
        view.isEnumerating = f[4] == "true"
        view.enumerated = Set(f[5].split(separator: ",").map(String.init))
        view.isOutputHeld = f[6] == "true"
        view.pauseDelay = Double(f[7])!
        view.isInputMuted = f[8] == "true"
        return view
    }

    private func choice(_ text: String) -> RouteChoice {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
        func optional(_ part: String) -> String? { part == "-" ? nil : part }
        var choice = RouteChoice(output: optional(parts[0]), input: optional(parts[1]), handsFree: optional(parts[2]))
        choice.isOverridden = parts[3] == "true"
        choice.wish = OutputWish(sampleRate: Double(parts[4]), bufferDuration: Double(parts[5]))
        return choice
    }
}
