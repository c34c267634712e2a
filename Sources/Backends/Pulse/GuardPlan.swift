/// Where the guard may rank (docs/adr/0010): before every other output, so that it replaces the current one if that
/// goes; behind the current one, so that it does not replace it before; and behind the microphone, because the session
/// manager also ranks the guard's monitor among the inputs.
///
/// Nothing is made the configured default for it. So there may be no such rank; then there is no guard.
struct GuardPlan {
    /// What the guard is created with.
    enum Rank: Hashable {
        /// WirePlumber's `priority.session`.
        case session(Int)
        /// PulseAudio: these properties, which decide its priority.
        case properties([String: String])
    }

    let rule: DefaultRule
    /// The current default output.
    let output: DefaultRule.Device
    /// The other sinks that the server may choose, without ours.
    let others: [DefaultRule.Device]
    /// The sources that the server may choose, without ours.
    let sources: [DefaultRule.Device]
    /// The default source; nil: the server has chosen the guard's monitor, or none.
    let source: DefaultRule.Device?

    /// How the guard should be created; nil: it would displace a device, or not catch anything.
    var rank: Rank? {
        switch rule.server {
        case .pulseAudio: pulseAudioRank
        case .wirePlumber4, .wirePlumber5: sessionRanks.map { .session($0.lowerBound) }
        }
    }

    /// Whether a guard with those properties is what it should be.
    func admits(_ properties: [String: String]) -> Bool {
        switch rule.server {
        case .pulseAudio:
            guard let rank = pulseAudioRank, case .properties(let wanted) = rank else { return false }
            return DefaultRule.priority(wanted) == DefaultRule.priority(properties)
        case .wirePlumber4, .wirePlumber5:
            guard let rank = properties["priority.session"].flatMap({ Int($0) }) else { return false }
            return sessionRanks?.contains(rank) ?? false
        }
    }

    /// The lowest rank leaves the most room for a microphone that appears later.
    private var sessionRanks: Range<Int>? {
        let own = rule.rank(ofSink: output)
        // The server may have a reason not to choose the source that ranks first.
        let best = source.map(rule.rank(ofSource:)) ?? sources.map(rule.rank(ofSource:)).max() ?? .max
        let lowest = others.map { rule.rank(ofSink: $0) + 1 }.max()
        if let ranks = GuardPlan.ranks(from: lowest, below: min(own, best)) { return ranks }
        // Without a microphone the default source is a monitor anyway.
        return sources.allSatisfy(\.isMonitor) ? GuardPlan.ranks(from: lowest, below: own) : nil
    }

    private static func ranks(from lowest: Int?, below end: Int) -> Range<Int>? {
        let lowest = lowest ?? end - 1
        return lowest < end ? lowest..<end : nil
    }

    private var pulseAudioRank: Rank? {
        let priority = DefaultRule.priority(output.properties)
        let best = others.map { DefaultRule.priority($0.properties) }.max() ?? -1
        // Among equals, PulseAudio keeps the default. So the guard ranks like the output.
        if priority > best { return .properties(DefaultRule.rankingProperties(output.properties)) }
        // An output that does not rank first is the default only because it is the configured one.
        let isConfigured = priority < best || rule.configuredSink == output.name
        return isConfigured ? .properties(GuardPlan.first) : nil
    }

    /// The properties with the highest priority.
    static let first = [
        "device.class": "sound", "device.api": "jack", "device.form_factor": "headphone", "device.bus": "bluetooth",
    ]
}
