public import PluginAPI

/// The wanted ports of the route, by the sessions that decide (rules §7).
///
/// A pure function of the active sessions and the connected devices: nothing is stored, so the same sessions with
/// the same ports always lead to the same choice.
public struct RouteChoice: Sendable, Hashable, Codable {
    /// A uid; nil if no port is suitable: then any choice of the server is fine.
    public var output: String?
    /// Likewise.
    public var input: String?
    /// Whether a session needs the input. Otherwise ``input`` is the newest port, which no session has asked for.
    public var isInputNeeded = false
    /// The input of a Bluetooth headset that must be in its hands-free profile for a recording; nil: none.
    public var handsFree: String?
    /// Whether a session overrides the output.
    public var isOverridden = false
    /// The requested rate and buffer of the output.
    public var wish = OutputWish()

    public init(
        output: String? = nil, input: String? = nil, isInputNeeded: Bool = false, handsFree: String? = nil
    ) {
        self.output = output
        self.input = input
        self.isInputNeeded = isInputNeeded
        self.handsFree = handsFree
    }
}

extension Arbiter {
    /// The choice for all active sessions; empty without a server.
    ///
    /// The output is decided by the latest active session that does not mix and has an output; else by the latest with
    /// an output. The input likewise; if no session records, those decide that the mute of the microphone interrupts:
    /// another input in the route would end that mute. With no session: as for playback, without recording.
    public var routeChoice: RouteChoice {
        guard let audio else { return RouteChoice() }
        var output: Int?
        var input: Int?
        for x in sessions.indices where sessions[x].standing.isActive {
            let category = sessions[x].standing.configuration.category
            if category.hasOutput, decides(x, over: output) { output = x }
            if category.hasInput, decides(x, over: input) { input = x }
        }
        if input == nil {
            for x in sessions.indices where sessions[x].interruption?.microphoneMuted == true {
                if decides(x, over: input) { input = x }
            }
        }
        var choice = RouteChoice()
        let recorder = input.map { sessions[$0] }
        let preferred = recorder.map { $0.preferredInput } ?? ""
        choice.isInputNeeded = recorder != nil
        let fitting = audio.inputs(fitting: recorder?.configuration)
        choice.input = (fitting.first { $0.uid == preferred } ?? fitting.last)?.uid
        choice.handsFree = fitting.first { $0.uid == choice.input && $0.type == .bluetoothHFP }?.uid
        let player = output.map { sessions[$0] }
        choice.wish = OutputWish(
            sampleRate: player?.preferences.sampleRate, bufferDuration: player?.preferences.ioBufferDuration)
        let overriding = player?.override == .speaker ? audio.outputs.last { $0.type == .speaker } : nil
        choice.isOverridden = overriding != nil
        choice.output =
            (overriding ?? audio.output(for: player?.configuration, handsFree: choice.handsFree))?.uid
        return choice
    }

    /// The choice for such a server with no active session.
    public static func idleRouteChoice(on audio: Audio) -> RouteChoice {
        var nobody = Arbiter()
        nobody.audio = audio
        return nobody.routeChoice
    }

    /// Whether that session decides the route before the other one.
    private func decides(_ x: Int, over other: Int?) -> Bool {
        guard let other else { return true }
        let (one, two) = (sessions[x].standing, sessions[other].standing)
        return one.isMixable == two.isMixable ? one.activation > two.activation : two.isMixable
    }

    /// Whether the session is active and needs an input or an output, but has no usable one.
    func lacksRoute(_ session: Session) -> Bool {
        guard session.standing.isActive, let audio else { return false }
        return !audio.lacks(session.configuration).isEmpty
    }
}

extension Audio {
    /// The ports that such a session needs and that are not available: `input`, `output`.
    func lacks(_ configuration: Configuration) -> [String] {
        var lacks: [String] = []
        if configuration.category.hasInput, inputs(fitting: configuration).isEmpty { lacks.append("input") }
        if configuration.category.hasOutput, outputs(fitting: configuration).isEmpty { lacks.append("output") }
        return lacks
    }

    /// The inputs that such a session may use, oldest first; nil: it does not record.
    func inputs(fitting configuration: Configuration?) -> [Port] {
        inputs.filter { Eligibility.mayRecord(from: $0.type, configuration) }
    }

    /// The outputs that such a session may use, oldest first; nil: it does not play.
    func outputs(fitting configuration: Configuration?) -> [Port] {
        outputs.filter { Eligibility.mayPlay(on: $0.type, configuration) }
    }

    /// The newest suitable output. Receiver and speaker share one place in that order; the category decides which of
    /// them is used.
    fileprivate func output(for configuration: Configuration?, handsFree: String?) -> Port? {
        let headset = inputs.first { $0.uid == handsFree }?.device
        // A headset that is about to become hands-free stays the output, whichever profile it has just now.
        let fitting = outputs.filter {
            Eligibility.mayPlay(on: $0.type, configuration)
                || headset != nil && $0.type == .bluetoothA2DP && $0.device == headset
        }
        let receiver = fitting.last { $0.type == .receiver }
        let talks = configuration.map { $0.category == .playAndRecord && !$0.options.contains(.defaultToSpeaker) }
        if talks == true {
            let newest = fitting.last { $0.type != .receiver || !fitting.contains { $0.type == .speaker } }
            return newest?.type == .speaker ? receiver ?? newest : newest
        }
        return fitting.last { $0.type != .receiver } ?? receiver
    }
}

/// Which port types need an option, and which option.
enum Eligibility {
    private struct Row {
        let type: PortType
        let option: Options
        /// The categories that need the option; the others may always, or never, use the port.
        let needing: Set<Category>
        let others: Bool
    }

    private static let outputs = [
        Row(type: .bluetoothA2DP, option: .allowBluetoothA2DP, needing: [.playAndRecord], others: true),
        Row(type: .bluetoothHFP, option: .allowBluetoothHFP, needing: [.playAndRecord], others: true),
        Row(type: .airPlay, option: .allowAirPlay, needing: [.playAndRecord], others: true),
    ]

    private static let inputs = [
        Row(type: .bluetoothHFP, option: .allowBluetoothHFP, needing: [.record, .playAndRecord], others: false)
    ]

    /// `configuration` nil: no session.
    static func mayPlay(on type: PortType, _ configuration: Configuration?) -> Bool {
        permits(outputs, type, configuration)
    }

    static func mayRecord(from type: PortType, _ configuration: Configuration?) -> Bool {
        permits(inputs, type, configuration)
    }

    private static func permits(_ table: [Row], _ type: PortType, _ configuration: Configuration?) -> Bool {
        guard let row = table.first(where: { $0.type == type }) else { return true }
        guard let configuration, row.needing.contains(configuration.category) else { return row.others }
        return configuration.options.contains(row.option)
    }
}
