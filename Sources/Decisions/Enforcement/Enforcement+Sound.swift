import PluginAPI

/// Streams that are judged by their sound (`[ducking] silent-streams`): those of programs without a session that duck
/// others because of their role, or because they read the screen aloud (`[ducking] screen-readers`).
extension Enforcement {
    /// Microseconds after the last sound of such a stream, including ``AudioStream/soundSpan``, until others are no longer
    /// ducked.
    static let afterSound: UInt64 = 2_000_000

    /// The streams that play and are to be measured. A held stream makes no sound, whatever its program does.
    func judgedBySound(_ facts: Facts) -> Set<AudioStream.ID> {
        let ducking = settings.ducking
        guard ducking.silentStreams || ducking.screenReaders else { return [] }
        let clients = facts.sessions.filter { $0.kind == .client }
        let judged = facts.streams.filter { facts in
            let stream = facts.stream
            return stream.direction == .playback && !stream.isCorked && !stream.isHeld
                && StreamOwnership.owners(of: facts, among: clients).isEmpty
                && (ducking.silentStreams || facts.readsAloud)
                && adoption(by: settings).adopted(facts)?.ducksByItsRole == true
        }
        return Set(judged.map(\.stream.id))
    }

    /// Those of them without a sound.
    func silentStreams(_ facts: Facts) -> Set<AudioStream.ID> {
        let judged = judgedBySound(facts)
        guard !judged.isEmpty else { return [] }
        return judged.subtracting(facts.streams.filter(\.stream.hasSound).map(\.stream.id))
    }
}

extension AdoptedProgram {
    fileprivate var ducksByItsRole: Bool {
        !isGuess && role.sessionClass == .app && role.configuration.options.contains(.duckOthers)
    }
}
