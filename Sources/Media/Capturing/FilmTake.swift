package import PluginAPI

/// What happens to a film that is being recorded: pauses by the user, by a call and by a camera that is gone, and its end.
///
/// It is a value without a camera and without a clock: facts go in, and what the recorder must do comes out, in order.
package struct FilmTake: Sendable, Hashable {
    package enum Pause: Sendable, Hashable, CaseIterable {
        case user, interruption, camera
    }

    package enum State: Sendable, Hashable {
        case idle
        /// It grows if nothing pauses it.
        case recording(pauses: Set<Pause>)
        /// Its last pictures and sounds are written.
        case ending(CaptureEndReason)
    }

    package enum Fact: Sendable, Hashable {
        case started
        case paused
        /// The user wants it to go on. While the session is interrupted, the session must be asked first: pass this after it
        /// was granted.
        case resumed
        case stopped(CaptureEndReason)
        /// The session was interrupted: the microphone is closed.
        case interrupted(CaptureInterruption)
        /// The session may record again, and the microphone is open.
        case granted
        /// The interruption ended, and the session does not record: the film waits for the user.
        case notResumed
        case cameraGone
        case cameraBack
        /// The file is complete, or cannot be written any more.
        case closed
    }

    package enum Act: Sendable, Hashable {
        /// What comes from now on is not in the film; it is again.
        case hold, proceed
        /// Write the end of the file.
        case end(CaptureEndReason)
    }

    package private(set) var state = State.idle

    package init() {}

    package var isRecording: Bool { if case .recording = state { true } else { false } }
    package var pauses: Set<Pause> { if case .recording(let pauses) = state { pauses } else { [] } }
    /// Whether the film grows.
    package var isGrowing: Bool { state == .recording(pauses: []) }

    package mutating func handle(_ fact: Fact) -> [Act] {
        switch fact {
        case .started:
            guard state == .idle else { return [] }
            state = .recording(pauses: [])
            return []
        case .closed:
            state = .idle
            return []
        case .paused: return pause(for: .user)
        case .resumed: return resume(from: [.user, .interruption])
        case .cameraGone: return pause(for: .camera)
        case .cameraBack: return resume(from: [.camera])
        case .granted: return resume(from: [.interruption])
        case .notResumed:
            guard pauses.contains(.interruption) else { return [] }
            state = .recording(pauses: pauses.subtracting([.interruption]).union([.user]))
            return []
        case .interrupted(let policy):
            switch policy {
            case .pause: return pause(for: .interruption)
            case .silence: return []
            case .stop: return end(.interrupted)
            }
        case .stopped(let reason): return end(reason)
        }
    }

    private mutating func pause(for reason: Pause) -> [Act] {
        guard case .recording(let pauses) = state else { return [] }
        state = .recording(pauses: pauses.union([reason]))
        return pauses.isEmpty ? [.hold] : []
    }

    private mutating func resume(from reasons: Set<Pause>) -> [Act] {
        guard case .recording(let pauses) = state, !pauses.isDisjoint(with: reasons) else { return [] }
        let rest = pauses.subtracting(reasons)
        state = .recording(pauses: rest)
        return rest.isEmpty ? [.proceed] : []
    }

    private mutating func end(_ reason: CaptureEndReason) -> [Act] {
        guard case .recording = state else { return [] }
        state = .ending(reason)
        return [.end(reason)]
    }
}
