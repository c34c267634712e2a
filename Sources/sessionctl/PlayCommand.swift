import ArgumentParser
import DBus
import EventLoop
import Glibc
import SessionBus
import SessionKit

/// `sessionctl play`.
struct PlayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Play files and addresses, one after the other.",
        discussion: """
            On a terminal: space pauses and goes on, left and right go 5 s back and on, up and down change the \
            volume, n is the next, q quits.
            """)

    @Argument(help: "What to play.")
    var items: [String]
    @OptionGroup var session: SessionOptions

    func run() throws {
        let service = try Service(BusOptions.session)
        try Playback(items, session.arguments(name: "sessionctl play"), service).run()
    }
}

extension BusOptions {
    /// Where programs that play are.
    static var session: BusOptions {
        var options = BusOptions()
        options.system = false
        return options
    }
}

/// Plays items through a player of its own.
final class Playback: FrontEnd {
    private static let help = "space pause · ←/→ 5 s · ↑/↓ volume · n next · q quit"
    private static let step = 5.0

    private let items: [String]
    private var index = -1
    private var hasFailed = false
    /// Whether the present item's end is told already.
    private var isSettled = true
    private var isAnnounced = false
    private var isPausedByUs = false
    private var volume = 1.0
    private var lossWatch: Subscription?

    init(_ items: [String], _ arguments: [String], _ service: Service) throws {
        self.items = items
        try super.init(.player, arguments, service)
        lossWatch = service.connection.subscribe(
            path: ObjectPath.root, interface: BusName.manager, member: "ServicesLost", sender: BusName.service
        ) { [unowned self] _ in
            // Nothing starts again by itself, and nobody is there to start it.
            if !isInteractive { end(Complaint.refused("MediaServicesFailed: the audio server went away")) }
        }
    }

    override func start() {
        plugin.get("Volume") { [weak self] in self?.volume = $0?.doubleValue ?? 1 }
        next()
    }

    private var item: String { items[index].escaped }

    private func next() {
        isSettled = true
        guard index + 1 < items.count else { return end(hasFailed ? 1 : 0) }
        index += 1
        line = ProgressLine()
        line.title = name(of: items[index]).escaped
        isAnnounced = false
        let current = index
        plugin.call("Load", [.string(FileURI.uri(items[index]))]) { [weak self] answer in
            guard let self, index == current else { return }
            isSettled = false
            switch answer {
            case .failure(let failure): settle(failing: service.complaint(failure).message)
            case .success: play()
            }
        }
    }

    /// The last part of a path or address.
    private func name(of item: String) -> String {
        item.split(separator: "/").last.map(String.init) ?? item
    }

    private func play() {
        let current = index
        plugin.call("Play") { [weak self] answer in
            guard let self, index == current, !isSettled, case .failure(let failure) = answer else { return }
            // What cannot be played is one thing, and may not be played another.
            plugin.get("State") { [weak self] state in
                guard let self, index == current, !isSettled else { return }
                if state?.stringValue == "failed" { settle(failing: failure.message.escaped) } else { refused(failure) }
            }
        }
    }

    private func refused(_ failure: Failure) {
        guard isInteractive, isAnnounced else { return end(failure) }
        complain(service.complaint(failure).message)
    }

    private func settle(failing message: String? = nil) {
        guard !isSettled else { return }
        isSettled = true
        if let message {
            hasFailed = true
            complain("\(item): \(message)")
        }
        next()
    }

    // MARK: What the player says

    override func finished(_ success: Bool) {
        guard !isSettled else { return }
        if success { settle() } else { settle(failing: "it ended early") }
    }

    override func failed(_ message: String) { settle(failing: message) }

    override func changed(_ properties: [String: Value]) {
        if let duration = properties["Duration"]?.doubleValue { line.duration = duration > 0 ? duration : nil }
        if let volume = properties["Volume"]?.doubleValue { self.volume = volume }
        if let state = properties["State"]?.stringValue { show(state) } else { draw() }
    }

    private func show(_ state: String) {
        line.state = state.escaped
        line.style = state == "playing" ? .good : .warning
        line.remark = ["playing", "stopped"].contains(state) ? "" : " "
        switch state {
        case "playing": announce()
        case "interrupted":
            plugin.interrupters { [weak self] names in
                guard let self, line.state == "interrupted" else { return }
                line.remark = names.isEmpty ? " " : "by " + Wording.list(names)
                draw()
                sayPlainly("interrupted" + (names.isEmpty ? "" : " by " + Wording.list(names)))
            }
        case "paused": if isAnnounced { sayPlainly("paused") }
        default: break
        }
        draw()
    }

    /// Says what plays, by its title where it has one.
    private func announce() {
        guard !isAnnounced else { return sayPlainly("playing on") }
        isAnnounced = true
        let current = index
        plugin.get("Metadata", of: "org.mpris.MediaPlayer2.Player", at: "/org/mpris/MediaPlayer2") {
            [weak self] value in
            guard let self, index == current else { return }
            let fields = value?.asProperties ?? [:]
            if let title = fields["xesam:title"]?.stringValue, !title.isEmpty {
                let artists = (fields["xesam:artist"]?.stringsValue ?? []).joined(separator: ", ")
                line.title = (artists.isEmpty ? title : "\(artists) – \(title)").escaped
            }
            let length = line.duration.map { " (\(Wording.clock($0)))" } ?? ""
            sayPlainly("playing \(line.title)\(length)")
            beginDrawing(Self.help)
        }
    }

    private func sayPlainly(_ text: String) { if !isInteractive { say(text) } }

    // MARK: Keys

    override func pressed(_ key: Keyboard.Key) {
        guard !isSettled else {
            if case .letter("q") = key { end(hasFailed ? 1 : 0) }
            return
        }
        switch key {
        case .space: if line.state == "playing" || line.state == "interrupted" { plugin.call("Pause") } else { play() }
        case .left: seek(-Self.step)
        case .right: seek(Self.step)
        case .up: turn(0.05)
        case .down: turn(-0.05)
        case .letter("n"): skip()
        case .letter("q"): end(hasFailed ? 1 : 0)
        case .letter: break
        }
    }

    private func seek(_ seconds: Double) {
        plugin.get("Position") { [weak self] position in
            guard let self, let position = position?.doubleValue else { return }
            line.position = max(0, position + seconds)
            plugin.call("SeekTo", [.double(line.position)])
            draw()
        }
    }

    private func turn(_ change: Double) {
        volume = min(1, max(0, ((volume + change) * 20).rounded() / 20))
        plugin.set("Volume", .double(volume))
        note("volume \(Int((volume * 100).rounded())) %")
    }

    private func skip() {
        isSettled = true
        plugin.call("Stop") { [weak self] _ in self?.next() }
    }

    override func willSuspend() {
        isPausedByUs = line.state == "playing"
        if isPausedByUs { plugin.call("Pause") }
    }

    override func didContinue() { if isPausedByUs { play() } }
}
