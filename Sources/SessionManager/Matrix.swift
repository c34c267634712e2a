import PluginAPI

/// Rules §4 as data: what an activation does to each session that is already active.
///
/// To change a rule, change a cell.
enum Matrix {
    /// The kind of the new session.
    enum Newcomer: Int, CaseIterable {
        /// Ambient, or any category with only mix-with-others.
        case mixing
        case ducking
        case interruptingSpoken
        /// Ducks others, and interrupts spoken audio: navigation.
        case navigating
        case playback
        /// Solo-ambient and audio-processing.
        case solo
        /// Record, play-and-record, multi-route.
        case recording
        case alert
        case call
    }

    /// The kind of the session that is already active.
    enum Incumbent: Int, CaseIterable {
        case mixable
        case mixableSpoken
        case exclusive
        case exclusiveSpoken
        case call
        case alert
    }

    enum Verdict {
        /// Both play.
        case mix
        /// Both play, unless the new session uses the microphone: then it is refused.
        case mixOutput
        /// The active session is ducked while the new one is active.
        case duck
        /// The active session is interrupted.
        case interrupt
        /// The new session is refused with `InsufficientPriority`.
        case refuse
    }

    private static let table: [[Verdict]] = [
        //                      mixable     mixable+spoken exclusive  excl.+spoken  call        alert
        /* mixing */ [.mix, .mix, .mix, .mix, .mixOutput, .mixOutput],
        /* ducking */ [.duck, .duck, .duck, .duck, .mixOutput, .mixOutput],
        /* interruptingSpoken */ [.mix, .interrupt, .mix, .interrupt, .mixOutput, .mixOutput],
        /* navigating */ [.duck, .interrupt, .duck, .interrupt, .mixOutput, .mixOutput],
        /* playback */ [.mix, .mix, .interrupt, .interrupt, .mix, .refuse],
        /* solo */ [.mix, .mix, .interrupt, .interrupt, .refuse, .refuse],
        /* recording */ [.mix, .mix, .interrupt, .interrupt, .refuse, .refuse],
        /* alert */ [.interrupt, .interrupt, .interrupt, .interrupt, .refuse, .interrupt],
        /* call */ [.interrupt, .interrupt, .interrupt, .interrupt, .interrupt, .interrupt],
    ]

    static func verdict(_ newcomer: Newcomer, over incumbent: Incumbent) -> Verdict {
        table[newcomer.rawValue][incumbent.rawValue]
    }
}

extension Matrix.Newcomer {
    init(_ sessionClass: SessionClass, _ configuration: Configuration) {
        switch sessionClass {
        case .call: self = .call
        case .alert: self = .alert
        case .app:
            guard configuration.isMixable else {
                switch configuration.category {
                case .playback: self = .playback
                case .ambient, .soloAmbient, .audioProcessing: self = .solo
                case .record, .playAndRecord, .multiRoute: self = .recording
                }
                return
            }
            let interrupts = configuration.options.contains(.interruptSpokenAudioAndMixWithOthers)
            switch (configuration.ducksOthers, interrupts) {
            case (false, false): self = .mixing
            case (true, false): self = .ducking
            case (false, true): self = .interruptingSpoken
            case (true, true): self = .navigating
            }
        }
    }
}

extension Matrix.Incumbent {
    init(_ sessionClass: SessionClass, _ configuration: Configuration) {
        switch sessionClass {
        case .call: self = .call
        case .alert: self = .alert
        case .app:
            switch (configuration.isMixable, configuration.mode == .spokenAudio) {
            case (true, false): self = .mixable
            case (true, true): self = .mixableSpoken
            case (false, false): self = .exclusive
            case (false, true): self = .exclusiveSpoken
            }
        }
    }
}
