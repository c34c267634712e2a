/// How a session treats others and its route (AVAudioSession.CategoryOptions).
///
/// The raw value is internal; on the wire options are written as ``names``. ``Configuration`` knows which are allowed
/// together.
public struct Options: OptionSet, Sendable, Hashable, Codable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Neither interrupts nor is interrupted by other app sessions.
    public static let mixWithOthers = Options(rawValue: 1 << 0)
    /// Ducks the others while this session is active; implies ``mixWithOthers``.
    public static let duckOthers = Options(rawValue: 1 << 1)
    /// Interrupts only sessions of mode `spokenAudio`; implies ``mixWithOthers``.
    public static let interruptSpokenAudioAndMixWithOthers = Options(rawValue: 1 << 2)
    /// A hands-free headset may become the input.
    public static let allowBluetoothHFP = Options(rawValue: 1 << 3)
    /// A headset's music profile may become the output; categories with output only do not need this option.
    public static let allowBluetoothA2DP = Options(rawValue: 1 << 4)
    /// A network output (RAOP) may become the output; categories with output only do not need this option.
    public static let allowAirPlay = Options(rawValue: 1 << 5)
    /// Uses the loudspeaker instead of the receiver if nothing else is connected.
    public static let defaultToSpeaker = Options(rawValue: 1 << 6)
    /// A muted microphone records silence instead of interrupting the session.
    public static let overrideMutedMicrophoneInterruption = Options(rawValue: 1 << 7)

    /// One option: its name on the wire, the categories with which it is allowed, and the options that it implies.
    public struct Entry: Sendable {
        public let option: Options
        public let name: String
        let legalCategories: Set<Category>
        let implies: Options
    }

    /// All options, in the order of rules §2. New options are added here.
    public static let table: [Entry] = [
        Entry(
            option: .mixWithOthers, name: "mix-with-others",
            legalCategories: [.playback, .playAndRecord, .multiRoute], implies: []),
        Entry(
            option: .duckOthers, name: "duck-others",
            legalCategories: [.playback, .playAndRecord, .multiRoute, .ambient], implies: .mixWithOthers),
        Entry(
            option: .interruptSpokenAudioAndMixWithOthers, name: "interrupt-spoken-audio-and-mix-with-others",
            legalCategories: [.playback, .playAndRecord, .multiRoute], implies: .mixWithOthers),
        Entry(
            option: .allowBluetoothHFP, name: "allow-bluetooth-hfp",
            legalCategories: [.record, .playAndRecord], implies: []),
        Entry(
            option: .allowBluetoothA2DP, name: "allow-bluetooth-a2dp",
            legalCategories: [.playAndRecord], implies: []),
        Entry(option: .allowAirPlay, name: "allow-airplay", legalCategories: [.playAndRecord], implies: []),
        Entry(option: .defaultToSpeaker, name: "default-to-speaker", legalCategories: [.playAndRecord], implies: []),
        Entry(
            option: .overrideMutedMicrophoneInterruption, name: "override-muted-microphone-interruption",
            legalCategories: [.record, .playAndRecord, .multiRoute], implies: []),
    ]

    /// The option of that wire name, or nil.
    public init?(name: String) {
        guard let entry = Options.table.first(where: { $0.name == name }) else { return nil }
        self = entry.option
    }

    /// The wire names, in the order of the table.
    public var names: [String] { Options.table.filter { contains($0.option) }.map(\.name) }
}

extension Options: CustomStringConvertible {
    /// From wire names, such as `[mix-with-others, duck-others]`.
    public var description: String { "[" + names.joined(separator: ", ") + "]" }
}
