import PluginAPI

/// The table of rules §4, with its own words.
enum SpecMatrix {
    enum Cell: Hashable {
        case mix
        case duck
        case interrupt
        case refused
    }

    enum Row: Int, CaseIterable {
        case mixing
        case ducking
        case interruptingSpoken
        case navigation
        case playback
        case soloAmbientOrProcessing
        case recording
        case alert
        case call
    }

    enum Column: Int, CaseIterable {
        case mixable
        case mixableSpoken
        case nonMixable
        case nonMixableSpoken
        case call
        case alert
    }

    /// MIX¹ is written as MIX. `cell` applies the note.
    private static let text = """
        MIX  | MIX | MIX  | MIX | MIX     | MIX
        DUCK | DUCK| DUCK | DUCK| MIX     | MIX
        MIX  | INT | MIX  | INT | MIX     | MIX
        DUCK | INT | DUCK | INT | MIX     | MIX
        MIX  | MIX | INT  | INT | MIX     | REFUSED
        MIX  | MIX | INT  | INT | REFUSED | REFUSED
        MIX  | MIX | INT  | INT | REFUSED | REFUSED
        INT  | INT | INT  | INT | REFUSED | INT
        INT  | INT | INT  | INT | INT     | INT
        """

    static let table: [[Cell]] = text.split(separator: "\n").map { line in
        line.split(separator: "|").map { word in
            switch word.filter({ $0 != " " }) {
            case "MIX": .mix
            case "DUCK": .duck
            case "INT": .interrupt
            case "REFUSED": .refused
            case let other: fatalError("unknown word in the table: \(other)")
            }
        }
    }

    static func row(_ sessionClass: SessionClass, _ configuration: Configuration) -> Row {
        switch sessionClass {
        case .call: return .call
        case .alert: return .alert
        case .app: break
        }
        let options = configuration.options
        if configuration.category == .ambient || options.contains(.mixWithOthers) {
            switch (options.contains(.duckOthers), options.contains(.interruptSpokenAudioAndMixWithOthers)) {
            case (true, true): return .navigation
            case (true, false): return .ducking
            case (false, true): return .interruptingSpoken
            case (false, false): return .mixing
            }
        }
        switch configuration.category {
        case .ambient, .playback: return .playback
        case .soloAmbient, .audioProcessing: return .soloAmbientOrProcessing
        case .record, .playAndRecord, .multiRoute: return .recording
        }
    }

    static func column(_ sessionClass: SessionClass, _ configuration: Configuration) -> Column {
        switch sessionClass {
        case .call: return .call
        case .alert: return .alert
        case .app: break
        }
        let spoken = configuration.mode == .spokenAudio
        if configuration.category == .ambient || configuration.options.contains(.mixWithOthers) {
            return spoken ? .mixableSpoken : .mixable
        }
        return spoken ? .nonMixableSpoken : .nonMixable
    }

    /// The effect of a new session on an active one. Note ¹: a mixable session with an input is refused during a call
    /// or an alert.
    static func cell(_ row: Row, hasInput: Bool, over column: Column) -> Cell {
        if hasInput, row.rawValue <= Row.navigation.rawValue, column == .call || column == .alert { return .refused }
        return table[row.rawValue][column.rawValue]
    }
}
