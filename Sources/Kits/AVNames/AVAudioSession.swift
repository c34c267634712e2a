public import Foundation
import Synchronization

extension AudioSession {
    /// The session of this program, as ``SessionKit/AudioSession/sharedInstance(bus:)``. If there is no bus, every later
    /// call throws that error.
    ///
    /// From the first call on, its events are also posted to `NotificationCenter.default`, on a thread of their own.
    /// Observers with `queue: .main` need a program that runs its main queue: an asynchronous `main`, `RunLoop.main.run()`
    /// or `dispatchMain()`.
    public nonisolated static func sharedInstance() -> AudioSession {
        do throws(SessionError) {
            let session = try waiting { () async throws(SessionError) in try await shared() }
            SessionNotes.post(of: session)
            return session
        } catch {
            return AudioSession(failed: error)
        }
    }

    public nonisolated func setCategory(
        _ category: Category, mode: Mode = .default, options: CategoryOptions = []
    ) throws(SessionError) {
        try waiting { () async throws(SessionError) in
            try await self.setCategory(category, mode: mode, options: options)
        }
    }

    public nonisolated func setActive(_ active: Bool, options: SetActiveOptions = []) throws(SessionError) {
        try waiting { () async throws(SessionError) in try await self.setActive(active, options: options) }
    }

    public nonisolated func overrideOutputAudioPort(_ portOverride: PortOverride) throws(SessionError) {
        try waiting { () async throws(SessionError) in try await self.overrideOutputAudioPort(portOverride) }
    }

    public nonisolated func setPreferredInput(_ port: Port?) throws(SessionError) {
        try waiting { () async throws(SessionError) in try await self.setPreferredInput(port) }
    }

    public nonisolated func setPreferredSampleRate(_ rate: Double) throws(SessionError) {
        try waiting { () async throws(SessionError) in try await self.setPreferredSampleRate(rate) }
    }

    public nonisolated func setPreferredIOBufferDuration(_ duration: Double) throws(SessionError) {
        try waiting { () async throws(SessionError) in try await self.setPreferredIOBufferDuration(duration) }
    }

    /// Empty if the daemon does not answer.
    public nonisolated var currentRoute: RouteDescription {
        let route = try? waiting { () async throws(SessionError) in try await self.route() }
        return route ?? RouteDescription(inputs: [], outputs: [])
    }
}

// MARK: Notifications

extension AudioSession {
    public static let interruptionNotification = Notification.Name("AVAudioSessionInterruptionNotification")
    public static let routeChangeNotification = Notification.Name("AVAudioSessionRouteChangeNotification")
    public static let silenceSecondaryAudioHintNotification = Notification.Name(
        "AVAudioSessionSilenceSecondaryAudioHintNotification")
    public static let mediaServicesWereLostNotification = Notification.Name(
        "AVAudioSessionMediaServicesWereLostNotification")
    public static let mediaServicesWereResetNotification = Notification.Name(
        "AVAudioSessionMediaServicesWereResetNotification")

    public enum InterruptionType: UInt, Sendable, Hashable {
        case ended = 0
        case began = 1
    }
}

/// `UInt`: the raw value of an ``SessionKit/AudioSession/InterruptionType``.
public let AVAudioSessionInterruptionTypeKey = "AVAudioSessionInterruptionTypeKey"
/// `UInt`: the raw value of the options; only with `.ended`.
public let AVAudioSessionInterruptionOptionKey = "AVAudioSessionInterruptionOptionKey"
/// `UInt`: for `InterruptionReason(rawValue:)`; only with `.began`.
public let AVAudioSessionInterruptionReasonKey = "AVAudioSessionInterruptionReasonKey"
/// `UInt`: for `RouteChangeReason(rawValue:)`.
public let AVAudioSessionRouteChangeReasonKey = "AVAudioSessionRouteChangeReasonKey"
/// The former `RouteDescription`.
public let AVAudioSessionRouteChangePreviousRouteKey = "AVAudioSessionRouteChangePreviousRouteKey"
/// `UInt`: 1 begin, 0 end.
public let AVAudioSessionSilenceSecondaryAudioHintTypeKey = "AVAudioSessionSilenceSecondaryAudioHintTypeKey"

extension AudioSession.RouteChangeReason {
    /// The value of ``AVAudioSessionRouteChangeReasonKey``; the numbers are those of iOS.
    public init?(rawValue: UInt) {
        guard let number = UInt32(exactly: rawValue), let reason = Self(rawValue: number) else { return nil }
        self = reason
    }
}

extension AudioSession.InterruptionReason {
    private static let numbers: [Self: UInt] = [
        .default: 0, .appWasSuspended: 1, .builtInMicMuted: 2, .routeDisconnected: 4,
    ]

    /// The value of ``AVAudioSessionInterruptionReasonKey``; the numbers are those of iOS.
    public init?(rawValue: UInt) {
        guard let reason = Self.numbers.first(where: { $0.value == rawValue })?.key else { return nil }
        self = reason
    }

    var number: UInt { Self.numbers[self] ?? 0 }
}

/// Posts the events of sessions as notifications.
private enum SessionNotes {
    private static let posting = Mutex<Set<ObjectIdentifier>>([])

    static func post(of session: AudioSession) {
        let id = ObjectIdentifier(session)
        guard posting.withLock({ $0.insert(id).inserted }) else { return }
        // Before the first request of the app, so that none is missed.
        let (interruptions, changes) = (session.interruptions, session.routeChanges)
        let (hints, services) = (session.silenceSecondaryAudioHints, session.mediaServicesEvents)
        Task { [weak session] in
            for await interruption in interruptions {
                post(AudioSession.interruptionNotification, session) { interruption.userInfo }
            }
            // The session has ended.
            posting.withLock { _ = $0.remove(id) }
        }
        Task { [weak session] in
            for await change in changes {
                post(AudioSession.routeChangeNotification, session) {
                    [
                        AVAudioSessionRouteChangeReasonKey: UInt(change.reason.rawValue),
                        AVAudioSessionRouteChangePreviousRouteKey: change.previousRoute,
                    ]
                }
            }
        }
        Task { [weak session] in
            for await hint in hints {
                post(AudioSession.silenceSecondaryAudioHintNotification, session) {
                    [AVAudioSessionSilenceSecondaryAudioHintTypeKey: UInt(hint == .begin ? 1 : 0)]
                }
            }
        }
        Task { [weak session] in
            for await event in services {
                let name =
                    event == .lost
                    ? AudioSession.mediaServicesWereLostNotification : AudioSession.mediaServicesWereResetNotification
                post(name, session) { [:] }
            }
        }
    }

    /// Foundation waits until observers on an operation queue have returned: not on a thread that they may need, as the main
    /// thread and those of tasks.
    private static let queue = DispatchQueue(label: "org.sessiond.AVNames.notifications")

    private static func post(
        _ name: Notification.Name, _ session: AudioSession?, _ info: @escaping @Sendable () -> [AnyHashable: Any]
    ) {
        guard let session else { return }
        queue.async { NotificationCenter.default.post(name: name, object: session, userInfo: info()) }
    }
}

extension AudioSession.Interruption {
    fileprivate var userInfo: [AnyHashable: Any] {
        switch self {
        case .began(let reason, _):
            [
                AVAudioSessionInterruptionTypeKey: AudioSession.InterruptionType.began.rawValue,
                AVAudioSessionInterruptionReasonKey: reason.number,
            ]
        case .ended(let options):
            [
                AVAudioSessionInterruptionTypeKey: AudioSession.InterruptionType.ended.rawValue,
                AVAudioSessionInterruptionOptionKey: options.rawValue,
            ]
        }
    }
}
