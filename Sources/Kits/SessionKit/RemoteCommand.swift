import Synchronization

/// The answer of an app to a command (MPRemoteCommandHandlerStatus).
public enum RemoteCommandHandlerStatus: Sendable, Hashable {
    case success, noSuchContent, noActionableNowPlayingItem, deviceNotFound, commandFailed
}

/// A command of a desktop, a media key or a headset (MPRemoteCommandEvent and its subclasses).
public struct RemoteCommandEvent: Sendable, Hashable {
    /// Seconds, for ``RemoteCommandCenter/changePlaybackPositionCommand``.
    public var positionTime = 0.0
    /// Seconds, for the commands that skip.
    public var interval = 0.0
    /// For ``RemoteCommandCenter/changePlaybackRateCommand``.
    public var playbackRate = 1.0
}

/// One command (MPRemoteCommand). It is offered while it is enabled and has a target.
public final class RemoteCommand: Sendable {
    public typealias Handler = @Sendable (RemoteCommandEvent) async -> RemoteCommandHandlerStatus

    private struct State {
        var isEnabled = true
        var intervals: [Double] = []
        /// In the order in which they were added.
        var handlers: [(token: Int, handler: Handler)] = []
        var last = 0
    }

    private let state = Mutex(State())
    private let changed: @Sendable () -> Void

    init(changed: @escaping @Sendable () -> Void) { self.changed = changed }

    /// Whether the command is offered if it has a target; default true.
    public var isEnabled: Bool {
        get { state.withLock(\.isEnabled) }
        set {
            state.withLock { $0.isEnabled = newValue }
            changed()
        }
    }

    /// Seconds; the first one is the interval of a skip of unknown length. Only for the commands that skip.
    public var preferredIntervals: [Double] {
        get { state.withLock(\.intervals) }
        set { state.withLock { $0.intervals = newValue } }
    }

    /// Adds a handler.
    /// - Returns: what ``removeTarget(_:)`` needs.
    @discardableResult
    // The module AVNames has a synchronous one, which a closure without `await` should mean.
    @_disfavoredOverload
    public func addTarget(handler: @escaping Handler) -> Int {
        let token = state.withLock { state in
            state.last += 1
            state.handlers.append((state.last, handler))
            return state.last
        }
        changed()
        return token
    }

    /// Removes a handler; nil: all of them.
    public func removeTarget(_ token: Int?) {
        state.withLock { state in state.handlers.removeAll { token == nil || $0.token == token } }
        changed()
    }

    var isOffered: Bool { state.withLock { $0.isEnabled && !$0.handlers.isEmpty } }

    /// Calls all handlers; the first answer that is not success counts.
    func run(_ event: RemoteCommandEvent) async -> RemoteCommandHandlerStatus {
        var answer = RemoteCommandHandlerStatus.success
        for (_, handler) in state.withLock(\.handlers) {
            let status = await handler(event)
            if answer == .success { answer = status }
        }
        return answer
    }
}

/// The commands of the desktop, of media keys and of headsets to an app that plays by itself (MPRemoteCommandCenter).
///
/// When the first target is added, the app becomes a player of the desktop (MPRIS), with what ``NowPlayingInfoCenter``
/// says. Handlers are called one after the other, in the order of the commands, on no particular thread: the next
/// command waits until the handler of the last one has returned.
public final class RemoteCommandCenter: Sendable {
    private static let only = RemoteCommandCenter(.shared)
    /// The commands that have arrived.
    let line = WorkLine()

    /// The center of this program, on the session bus.
    public static func shared() -> RemoteCommandCenter { only }

    public let playCommand: RemoteCommand
    public let pauseCommand: RemoteCommand
    public let stopCommand: RemoteCommand
    /// Without a target, the commands play and pause take its place.
    public let togglePlayPauseCommand: RemoteCommand
    public let nextTrackCommand: RemoteCommand
    public let previousTrackCommand: RemoteCommand
    public let skipForwardCommand: RemoteCommand
    public let skipBackwardCommand: RemoteCommand
    public let changePlaybackPositionCommand: RemoteCommand
    public let changePlaybackRateCommand: RemoteCommand

    init(_ control: RemoteControl) {
        func make() -> RemoteCommand { RemoteCommand { [weak control] in control?.changed() } }
        (playCommand, pauseCommand, stopCommand) = (make(), make(), make())
        (togglePlayPauseCommand, nextTrackCommand, previousTrackCommand) = (make(), make(), make())
        (skipForwardCommand, skipBackwardCommand) = (make(), make())
        (changePlaybackPositionCommand, changePlaybackRateCommand) = (make(), make())
        control.commands.withLock { $0 = self }
    }

    /// Whether the app takes any command.
    var hasTargets: Bool {
        [
            playCommand, pauseCommand, stopCommand, togglePlayPauseCommand, nextTrackCommand, previousTrackCommand,
            skipForwardCommand, skipBackwardCommand, changePlaybackPositionCommand, changePlaybackRateCommand,
        ].contains(where: \.isOffered)
    }
}
