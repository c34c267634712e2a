import PluginAPI

/// The route that was requested, until the server shows it.
struct RouteRequests {
    /// Why a port was requested, and until when that can be the reason of a change.
    struct Request: Equatable {
        let reason: RouteChangeReason
        let until: UInt64
    }

    /// A requested profile of a card; the number finds its answer.
    private struct ProfileRequest {
        enum Phase {
            /// What the server shows is older than the request.
            case asked
            case answered
            /// The card has the profile, but perhaps not its devices yet.
            case shown
        }

        let profile: String
        let number: Int
        let until: UInt64
        var phase = Phase.asked
    }

    /// The requested ports by uid, until they are the route or too old to be the reason of a change.
    private(set) var ports: [String: Request] = [:]
    /// The output requested last: the route is changing to it while it is in ``ports``.
    private(set) var output: String?
    /// A port that becomes the route as soon as it exists, because its card is changing its profile.
    private(set) var comingInput: String?
    private(set) var comingOutput: String?
    /// The profiles that were requested last, until they and their devices are shown, by card.
    private var profiles: [String: ProfileRequest] = [:]
    /// How many ports were requested so far.
    private(set) var number = 0
    /// How many profiles were requested so far.
    private var profileRequests = 0
    /// The default of the last request, until it is shown.
    var awaitedDefault: DefaultRequest?

    mutating func expect(_ uid: String, _ reason: RouteChangeReason, until time: UInt64) {
        ports[uid] = Request(reason: reason, until: time)
    }

    mutating func forgetOld(at now: UInt64) {
        ports = ports.filter { now < $0.value.until }
        profiles = profiles.filter { now < $0.value.until }
    }

    /// - Returns: the number of this request, for its answer.
    mutating func setProfile(_ profile: String, of card: String, until time: UInt64) -> Int {
        profileRequests += 1
        profiles[card] = ProfileRequest(profile: profile, number: profileRequests, until: time)
        return profileRequests
    }

    /// The server has answered the request with that number. Only the last request of a card matters.
    mutating func profileAnswered(_ number: Int, of card: String, succeeded: Bool) {
        guard profiles[card]?.number == number else { return }
        if succeeded { profiles[card]?.phase = .answered } else { profiles[card] = nil }
    }

    /// The server shows that profile.
    mutating func profileWasRead(_ profile: String, of card: String) {
        if profiles[card]?.phase == .answered, profiles[card]?.profile == profile { profiles[card]?.phase = .shown }
    }

    /// The devices of the card's profile are there.
    mutating func devicesWereRead(of card: String) {
        if profiles[card]?.phase == .shown { profiles[card] = nil }
    }

    /// The profile that the card has, or will have if the server obeys.
    func profile(of card: PulseCard, at now: UInt64) -> String {
        profiles[card.name].flatMap { now < $0.until ? $0.profile : nil } ?? card.activeProfile
    }

    /// Whether the server does not show a requested profile of the card, or its devices, yet.
    func isChanging(_ card: PulseCard, at now: UInt64) -> Bool { profiles[card.name].map { now < $0.until } ?? false }

    /// These ports are the route now.
    mutating func arrived(_ uids: some Sequence<String>) {
        for uid in uids { ports[uid] = nil }
    }

    func reason(of uid: String) -> RouteChangeReason { ports[uid]?.reason ?? .categoryChange }

    /// The requested output, while the route may be changing to it.
    func outputOnItsWay(at now: UInt64) -> String? {
        output.flatMap { uid in ports[uid].flatMap { now < $0.until ? uid : nil } }
    }

    mutating func selectInput() {
        comingInput = nil
        number += 1
    }

    mutating func selectOutput(_ uid: String) {
        (output, comingOutput, awaitedDefault) = (uid, nil, nil)
        number += 1
    }

    mutating func awaitInput(_ uid: String) { comingInput = uid }

    mutating func selectComingOutput(_ uid: String) {
        (output, comingOutput, awaitedDefault) = (uid, uid, nil)
        number += 1
    }

    /// The same headset continues to play with another profile.
    mutating func keepOutput(_ uid: String) { comingOutput = uid }

    /// The awaited port, if it exists now; it is awaited no longer.
    mutating func takeComingInput(_ exists: (String) -> Bool) -> String? {
        guard let uid = comingInput, exists(uid) else { return nil }
        comingInput = nil
        return uid
    }

    mutating func takeComingOutput(_ exists: (String) -> Bool) -> String? {
        guard let uid = comingOutput, exists(uid) else { return nil }
        comingOutput = nil
        return uid
    }

    /// The server has shown its default.
    mutating func defaultWasRead(_ name: String) {
        if awaitedDefault?.isAwaited(with: name) == false { awaitedDefault = nil }
    }
}
