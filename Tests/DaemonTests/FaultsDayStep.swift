import PluginAPI
import SessionManager

@testable import ReferenceModel

/// A step of a history of ``FaultsDayTests``: an ordinary event, or a fault of docs/faults.md.
///
/// Its numbers select one of the existing objects, so that a history is also valid after steps were left out. Its text,
/// such as `daemon-killed` or `activate 3`, can be repeated.
struct FaultsDayStep: CustomStringConvertible {
    enum Word: String, CaseIterable {
        // A session: its place, and other numbers.
        case create, activate, deactivate, notify, category, close
        // The user: the volume of the music in percent, its program, the headphones.
        case volume
        case musicEnds = "music-ends"
        case musicBegins = "music-begins"
        case phonesPlugged = "phones-plugged"
        case phonesUnplugged = "phones-unplugged"
        // Clients: A1 to A7.
        case clientVanishes = "client-vanishes"
        case clientKilled = "client-killed"
        case clientDiesActivating = "client-dies-activating"
        case clientStopped = "client-stopped"
        case clientContinued = "client-continued"
        case sameCallTwice = "same-call-twice"
        case strangersCall = "strangers-call"
        case neverReads = "never-reads"
        case flood
        // Input: B1, B2.
        case wrongCalls = "wrong-calls"
        // The service: B4, C1 to C4.
        case secondDaemon = "second-daemon"
        case daemonKilled = "daemon-killed"
        case daemonDiesActivating = "daemon-dies-activating"
        case daemonDiesDeactivating = "daemon-dies-deactivating"
        case daemonTerminated = "daemon-terminated"
        case stateSpoilt = "state-spoilt"
        case settingsBroken = "settings-broken"
        // The sound server: D2.
        case serverKilled = "server-killed"
        case serverStopped = "server-stopped"

        /// How often it is drawn, relative to the others.
        fileprivate var weight: Int {
            switch self {
            case .activate: 24
            case .create: 14
            case .deactivate, .notify: 8
            case .category, .volume, .daemonDiesActivating, .daemonDiesDeactivating, .daemonKilled: 5
            case .musicBegins: 4
            case .close, .musicEnds, .phonesPlugged, .phonesUnplugged, .clientVanishes, .clientKilled, .clientStopped,
                .clientContinued, .sameCallTwice, .strangersCall, .wrongCalls, .daemonTerminated, .serverStopped:
                3
            case .clientDiesActivating, .neverReads, .flood, .secondDaemon, .stateSpoilt, .settingsBroken,
                .serverKilled:
                2
            }
        }

        var isFault: Bool {
            switch self {
            case .create, .activate, .deactivate, .notify, .category, .close, .volume, .musicEnds, .musicBegins,
                .phonesPlugged:
                false
            case .phonesUnplugged, .clientVanishes, .clientKilled, .clientDiesActivating, .clientStopped,
                .clientContinued, .sameCallTwice, .strangersCall, .neverReads, .flood, .wrongCalls, .secondDaemon,
                .daemonKilled, .daemonDiesActivating, .daemonDiesDeactivating, .daemonTerminated, .stateSpoilt,
                .settingsBroken, .serverKilled, .serverStopped:
                true
            }
        }
    }

    let word: Word
    /// At most 99; each is used modulo the number of existing objects.
    var numbers: [Int] = []

    func number(_ place: Int, below count: Int) -> Int { place < numbers.count ? numbers[place] % count : 0 }

    var description: String { ([word.rawValue] + numbers.map(String.init)).joined(separator: " ") }

    init?(_ text: some StringProtocol) {
        let parts = String(text).split { $0 == " " }.map(String.init)
        guard let word = parts.first.flatMap(Word.init) else { return nil }
        self.word = word
        numbers = parts.dropFirst().compactMap { Int($0) }
    }

    init(using random: inout SplitMix64) {
        var place = Int.random(in: 0..<Word.allCases.reduce(0) { $0 + $1.weight }, using: &random)
        word =
            Word.allCases.first { word in
                place -= word.weight
                return place < 0
            } ?? .activate
        numbers = (0..<2).map { _ in Int.random(in: 0..<100, using: &random) }
    }

    /// Parses steps in the format of ``description``, separated by semicolons.
    static func steps(_ text: String) -> [FaultsDayStep]? {
        let parts = text.split { $0 == ";" }
        let steps = parts.compactMap { FaultsDayStep($0) }
        return steps.count == parts.count ? steps : nil
    }

    /// The parameters of a session.
    struct Sort {
        let category: String
        var mode = "default"
        var options: [String] = []
        var sessionClass = SessionClass.app
    }

    static let sorts = [
        Sort(category: "playback"), Sort(category: "playback", mode: "spoken-audio"),
        Sort(category: "playback", options: ["duck-others"]), Sort(category: "playback", options: ["mix-with-others"]),
        Sort(category: "ambient"), Sort(category: "solo-ambient"), Sort(category: "ambient", options: ["duck-others"]),
        Sort(category: "play-and-record"), Sort(category: "playback", sessionClass: .alert),
        Sort(category: "play-and-record", sessionClass: .call), Sort(category: "play-and-record", sessionClass: .call),
        Sort(category: "playback", mode: "voice-prompt", options: ["duck-others"]),
    ]
}
