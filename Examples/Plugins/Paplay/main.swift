import EventLoop
import Glibc
import PluginKit

/// A player plugin of one page: `paplay` plays the sound, and PluginKit does everything else.
final class Paplay: PlayerEngine {
    private(set) var uri: String?
    private(set) var state = PlayerState.stopped { didSet { if state != oldValue { onStateChanged?(state) } } }
    private var process: pid_t?
    private lazy var children = loop.watch(signal: SIGCHLD) { [unowned self] in reap() }
    private let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    func load(uri: String) {
        stop()
        self.uri = uri
    }

    func play() throws(SessionError) {
        guard let uri else { throw SessionError(.cannotStartPlaying, "nothing is loaded") }
        if let process {
            kill(process, SIGCONT)
        } else {
            _ = children
            let path = String(uri.dropFirst("file://".count))
            // paplay ends with the plugin, even if that is killed.
            let words = ["setpriv", "--pdeathsig", "KILL", "paplay", "--latency-msec=20", path]
            var arguments = words.map { strdup($0) } + [nil]
            defer { arguments.forEach { free($0) } }
            var started: pid_t = 0
            guard posix_spawnp(&started, words[0], nil, nil, &arguments, environ) == 0 else {
                throw SessionError(.cannotStartPlaying, "there is no setpriv: install util-linux")
            }
            process = started
        }
        state = .playing
    }

    func pause() {
        guard state == .playing, let process else { return }
        kill(process, SIGSTOP)
        state = .paused
    }

    func stop() {
        if let process { kill(process, SIGKILL) }
        state = .stopped
    }

    func unload() {
        stop()
        uri = nil
    }

    private func reap() {
        var status: Int32 = 0
        guard let process, waitpid(process, &status, WNOHANG) == process else { return }
        self.process = nil
        guard state == .playing else { return }
        state = .stopped
        if status == 0 { onFinished?(true) } else { onFailed?("no paplay, or it cannot play '\(uri ?? "")'") }
    }

    // Required properties that have no effect here, because paplay has no such features.
    var (position, duration, channels) = (0.0, Double?.none, 0)
    var (volume, isMuted, pan, rate, loops) = (1.0, false, 0.0, 1.0, 0)
    var (meteringEnabled, device, duckGain) = (false, String?.none, 0.0)
    func seek(to seconds: Double) {}
    func duck(to gainDB: Double, over seconds: Double) {}
    func meters() -> [ChannelLevel] { [] }

    var onStateChanged: ((PlayerState) -> Void)?
    var onFinished: ((Bool) -> Void)?
    var onFailed: ((String) -> Void)?
    var onServicesLost: ((String) -> Void)?
    var onItemChanged: (() -> Void)?
    var onSeeked: ((Double) -> Void)?
    var onTags: ((MediaTags) -> Void)?
}

let host = try PluginHost()
let player = PlayerPlugin(
    Paplay(host.loop), .init(name: "Paplay", category: .playback), on: host.connection, host.loop)
try host.claim("org.mpris.MediaPlayer2.paplay.instance\(PluginHost.processID)")
host.register("org.example.paplay", kind: .player, name: "Paplay")
exit(host.run(player))
