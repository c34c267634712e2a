import PluginAPI

/// Which programs are in a guessed call, by their streams (docs/adr/0014).
///
/// A program that is known to make calls is in a call when it has recorded from a real source and played, both for
/// ``beginning``. The call ends after ``pause`` without any stream, or after ``mute`` without a recording: programs
/// create new streams in the middle of a call, and some close the microphone when the user mutes it. If the server made a
/// headset hands-free for the call, the call lasts until the headset is ready for music again, but at most ``headset``: what
/// resumes then would begin in the quality of a telephone.
///
/// It is a value: it gets all streams at each check, and returns the time of the next check.
struct CallEvidence: Codable {
    /// Microseconds for which the program must record and play.
    static let beginning: UInt64 = 500_000
    /// Microseconds without any stream, after which the call has ended.
    static let pause: UInt64 = 1_000_000
    /// Microseconds without a recording, after which the call has ended even if the program plays on.
    static let mute: UInt64 = 5_000_000
    /// Microseconds without a recording, in which WirePlumber restores the profile of a headset (after two seconds).
    static let headset: UInt64 = 3_500_000

    private enum Phase: Codable {
        /// It records and plays, since then. `wasHandsFree`: as ``Call/wasHandsFree``.
        ///
        /// Can transition to: `on`, after ``CallEvidence/beginning``; none, when it does not do both any more.
        case beginning(since: UInt64, wasHandsFree: Bool)
        /// In a call. `silent`: since when it neither records nor plays; `deaf`: since when it does not record.
        ///
        /// Can transition to: none, when it was silent, or did not record, for long enough.
        case on(Call, silent: UInt64?, deaf: UInt64?)
    }

    /// A current call.
    struct Call: Hashable, Codable {
        /// The evidence, for display.
        let words: String
        /// The titles (`media.name`) under which the program both records and plays: a stream with another title is
        /// another page of the same browser. Empty: its pages cannot be distinguished.
        var pages: Set<String>
        /// The headset of the route was hands-free before the call, so it stays so after the call.
        var wasHandsFree = false
    }

    private var phases: [Program.Key: Phase] = [:]

    /// The call that the program is in; nil: none.
    func call(of program: Program.Key) -> Call? {
        if case .on(let call, _, _) = phases[program] { call } else { nil }
    }

    /// Whether any program has just begun to record and play.
    var isBeginning: Bool {
        phases.values.contains { if case .beginning = $0 { true } else { false } }
    }

    /// Whether no program is in a call, and none has begun to record and play.
    var isEmpty: Bool { phases.isEmpty }

    /// The streams of one program that may be part of a call.
    private struct Doing {
        var recording: AudioStream?
        var recordingTitles: Set<String> = []
        var playingTitles: Set<String> = []
        var isPlaying: Bool { !playingTitles.isEmpty }

        func pages(before: Set<String>) -> Set<String> {
            (recording == nil ? before : recordingTitles).intersection(playingTitles)
        }
    }

    /// Applies the current streams. `streams`: those that may be part of a call; `known`: programs whose calls were
    /// active when an earlier daemon ended; `sustained`: programs whose calls continue whatever the streams do;
    /// `isHandsFree`: as ``AudioSnapshot/isHeadsetHandsFree``.
    ///
    /// - Returns: when to check again; nil: when the streams change.
    mutating func look(
        _ streams: some Sequence<StreamFacts>, known: [Program.Key: String], sustained: (Program.Key) -> Bool,
        isHandsFree: Bool, at now: UInt64
    ) -> UInt64? {
        var doings: [Program.Key: Doing] = [:]
        for facts in streams {
            guard let key = facts.program?.key else { continue }
            let stream = facts.stream
            let title = stream.properties["media.name"] ?? ""
            switch stream.direction {
            case .record where CallEvidence.isVoice(stream):
                doings[key, default: Doing()].recording = stream
                doings[key, default: Doing()].recordingTitles.insert(title)
            // A held stream plays from the view of its program.
            case .playback where stream.isProgram && !stream.isCorked:
                doings[key, default: Doing()].playingTitles.insert(title)
            case .record, .playback: break
            }
        }
        for (key, words) in known where phases[key] == nil {
            phases[key] = .on(Call(words: words, pages: []), silent: nil, deaf: nil)
        }
        var deadline: UInt64?
        func wait(until due: UInt64) { deadline = min(deadline ?? due, due) }
        for key in Set(phases.keys).union(doings.keys) {
            let doing = doings[key] ?? Doing()
            let next = next(
                phases[key], doing, isSustained: sustained(key), isHandsFree: isHandsFree, at: now, wait)
            phases[key] = next
        }
        return deadline
    }

    private func next(
        _ phase: Phase?, _ doing: Doing, isSustained: Bool, isHandsFree: Bool, at now: UInt64,
        _ wait: (UInt64) -> Void
    ) -> Phase? {
        switch phase {
        case nil, .beginning:
            guard let recording = doing.recording, doing.isPlaying else { return nil }
            var (since, wasHandsFree) = (now, isHandsFree)
            if case .beginning(let earlier, let before) = phase { (since, wasHandsFree) = (earlier, before) }
            let due = since + CallEvidence.beginning
            guard due <= now else {
                wait(due)
                return .beginning(since: since, wasHandsFree: wasHandsFree)
            }
            let call = Call(
                words: CallEvidence.words(recording), pages: doing.pages(before: []), wasHandsFree: wasHandsFree)
            return .on(call, silent: nil, deaf: nil)
        case .on(var call, let silent, let deaf):
            call.pages = doing.pages(before: call.pages)
            guard doing.recording == nil, !isSustained else { return .on(call, silent: nil, deaf: nil) }
            let deaf = deaf ?? now
            let silent = doing.isPlaying ? nil : silent ?? now
            var due = min(deaf + CallEvidence.mute, silent.map { $0 + CallEvidence.pause } ?? .max)
            if isHandsFree, !call.wasHandsFree { due = max(due, deaf + CallEvidence.headset) }
            guard due > now else { return nil }
            wait(due)
            return .on(call, silent: silent, deaf: deaf)
        }
    }

    /// The program is gone, or can no longer be in a call.
    mutating func forget(where isGone: (Program.Key) -> Bool) { phases = phases.filter { !isGone($0.key) } }

    /// Whether it records speech: not a meter, not a monitor of a sink, and not paused. A recording that is muted at
    /// the server is still part of a call.
    private static func isVoice(_ stream: AudioStream) -> Bool {
        stream.isProgram && !stream.isPeakMeter && !stream.isCorked && stream.portUID != nil
    }

    private static func words(_ recording: AudioStream) -> String {
        "records from \(quoted(recording.portName.prefix(bytes: 120))) and plays"
    }
}
