import PluginAPI
import Testing

/// Compares each pair with the tables of rules §1 and §2.
@Suite struct ConfigurationTests {
    struct CategoryRow: Sendable {
        let input: Bool
        let output: Bool
        let obeysSilentSwitch: Bool
        let prepares: Bool
        let plays: Bool
    }

    static let categories: [Category: CategoryRow] = [
        .ambient: CategoryRow(input: false, output: true, obeysSilentSwitch: true, prepares: true, plays: true),
        .soloAmbient: CategoryRow(input: false, output: true, obeysSilentSwitch: true, prepares: true, plays: true),
        .playback: CategoryRow(input: false, output: true, obeysSilentSwitch: false, prepares: true, plays: true),
        .record: CategoryRow(input: true, output: false, obeysSilentSwitch: false, prepares: true, plays: false),
        .playAndRecord: CategoryRow(input: true, output: true, obeysSilentSwitch: false, prepares: true, plays: true),
        .multiRoute: CategoryRow(input: true, output: true, obeysSilentSwitch: false, prepares: true, plays: true),
        .audioProcessing: CategoryRow(
            input: false, output: false, obeysSilentSwitch: false, prepares: false, plays: false),
    ]

    /// The first table of §2: each option, the categories that allow it, and the options that it implies.
    static let options: [(name: String, legal: Set<String>, implies: Set<String>)] = [
        ("mix-with-others", ["playback", "play-and-record", "multi-route"], []),
        ("duck-others", ["playback", "play-and-record", "multi-route", "ambient"], ["mix-with-others"]),
        (
            "interrupt-spoken-audio-and-mix-with-others", ["playback", "play-and-record", "multi-route"],
            ["mix-with-others"]
        ),
        ("allow-bluetooth-hfp", ["record", "play-and-record"], []),
        ("allow-bluetooth-a2dp", ["play-and-record"], []),
        ("allow-airplay", ["play-and-record"], []),
        ("default-to-speaker", ["play-and-record"], []),
        ("override-muted-microphone-interruption", ["record", "play-and-record", "multi-route"], []),
    ]

    /// The second table of §2: each mode, the categories that allow it, and the options that it adds.
    static let modes: [(name: String, legal: Set<String>, adds: Set<String>)] = [
        ("default", Set(Category.allCases.map(\.rawValue)), []),
        ("voice-chat", ["play-and-record"], ["allow-bluetooth-hfp"]),
        ("game-chat", ["play-and-record"], ["allow-bluetooth-hfp"]),
        ("video-chat", ["play-and-record"], ["allow-bluetooth-hfp", "default-to-speaker"]),
        ("video-recording", ["record", "play-and-record"], []),
        ("measurement", ["playback", "record", "play-and-record"], []),
        ("movie-playback", ["playback"], []),
        ("spoken-audio", ["playback", "play-and-record", "multi-route"], []),
        ("voice-prompt", ["playback", "play-and-record", "ambient"], []),
    ]

    @Test func names_agreeWithTheContract() {
        #expect(
            Set(Category.allCases.map(\.rawValue)) == [
                "ambient", "solo-ambient", "playback", "record", "play-and-record", "multi-route", "audio-processing",
            ])
        #expect(Mode.allCases.map(\.rawValue).sorted() == Self.modes.map(\.name).sorted())
        #expect(Options.table.map(\.name).sorted() == Self.options.map(\.name).sorted())
    }

    @Test(arguments: Category.allCases)
    func category_agreesWithTheTable(_ category: Category) throws {
        let row = try #require(Self.categories[category])
        #expect(category.hasInput == row.input)
        #expect(category.hasOutput == row.output)
        #expect(category.obeysSilentSwitch == row.obeysSilentSwitch)
        #expect(category.playerMay.prepare == row.prepares)
        #expect(category.playerMay.play == row.plays)
        let plain = try Configuration(category: category)
        #expect(plain.isMixable == (category == .ambient))
        #expect(plain.options.names == (category == .ambient ? ["mix-with-others"] : []))
    }

    @Test func newSession_isSoloAmbient() {
        #expect(Configuration.initial == Configuration.of(.soloAmbient))
        #expect(!Configuration.initial.isMixable)
    }

    /// Every category, mode and set of up to two options, and the set of all options.
    @Test(arguments: Category.allCases)
    func everyTriple_isLegalOrRefusedAsInTheTables(_ category: Category) {
        var sets: [[String]] = [[], Self.options.map(\.name)]
        for first in Self.options {
            for second in Self.options where first.name <= second.name {
                sets.append(first.name == second.name ? [first.name] : [first.name, second.name])
            }
        }
        for mode in Self.modes {
            for set in sets { expect(category.rawValue, mode, set) }
        }
    }

    private func expect(
        _ category: String, _ mode: (name: String, legal: Set<String>, adds: Set<String>), _ set: [String]
    ) {
        let entries = Self.options.filter { set.contains($0.name) }
        let illegal = entries.filter { !$0.legal.contains(category) }
        var readBack = Set(set).union(mode.adds)
        for entry in entries { readBack.formUnion(entry.implies) }
        if category == "ambient" { readBack.insert("mix-with-others") }
        let isLegal = mode.legal.contains(category) && illegal.isEmpty
        do {
            let made = try Configuration(category: category, mode: mode.name, options: set)
            #expect(isLegal, "\(category) \(mode.name) \(set) must be refused")
            #expect(Set(made.options.names) == readBack)
            #expect(made.isMixable == readBack.contains("mix-with-others"))
            #expect(made.ducksOthers == readBack.contains("duck-others"))
        } catch {
            #expect(!isLegal, "\(category) \(mode.name) \(set) must be legal: \(error)")
            #expect(error.code == .badParameter)
            #expect(error.message.contains(category))
            let namesMode = !mode.legal.contains(category) && error.message.contains(mode.name)
            #expect(namesMode || illegal.contains { error.message.contains($0.name) }, "\(error)")
            #expect(error.message.contains("; use it with "), "\(error)")
        }
    }

    @Test func unknownNames_areRefusedByName() {
        func message(_ category: String, _ mode: String, _ options: [String]) -> String {
            do throws(SessionError) {
                _ = try Configuration(category: category, mode: mode, options: options)
                return "accepted"
            } catch {
                return error.code == .badParameter ? error.message : "another code"
            }
        }
        #expect(message("loud", "default", []).contains("loud"))
        #expect(message("playback", "louder", []).contains("louder"))
        #expect(message("playback", "default", ["mix-with-others", "loudest"]).contains("loudest"))
        #expect(message("Playback", "default", []).contains("Playback"))
    }

    @Test func options_arePrintedByTheirNames() {
        #expect("\(Options())" == "[]")
        #expect("\(Options([.duckOthers, .mixWithOthers]))" == "[mix-with-others, duck-others]")
    }
}
