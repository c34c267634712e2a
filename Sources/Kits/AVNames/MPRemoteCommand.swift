public import Foundation

/// What a handler is given. The commands with a value have a subclass.
@MainActor
open class MPRemoteCommandEvent {
    public let command: MPRemoteCommand
    /// Seconds since the machine was started.
    public let timestamp: TimeInterval

    init(_ command: MPRemoteCommand) { (self.command, timestamp) = (command, ProcessInfo.processInfo.systemUptime) }
}

public final class MPChangePlaybackPositionCommandEvent: MPRemoteCommandEvent {
    /// Seconds.
    public let positionTime: TimeInterval

    init(_ command: MPRemoteCommand, _ event: RemoteCommandEvent) {
        positionTime = event.positionTime
        super.init(command)
    }
}

public final class MPSkipIntervalCommandEvent: MPRemoteCommandEvent {
    /// Seconds.
    public let interval: TimeInterval

    init(_ command: MPRemoteCommand, _ event: RemoteCommandEvent) {
        interval = event.interval
        super.init(command)
    }
}

public final class MPChangePlaybackRateCommandEvent: MPRemoteCommandEvent {
    public let playbackRate: Float

    init(_ command: MPRemoteCommand, _ event: RemoteCommandEvent) {
        playbackRate = Float(event.playbackRate)
        super.init(command)
    }
}

extension RemoteCommand {
    /// Adds a handler, which is called on the main thread.
    /// - Returns: what `removeTarget` needs.
    @discardableResult
    public func addTarget(
        handler: @escaping @MainActor (MPRemoteCommandEvent) -> MPRemoteCommandHandlerStatus
    ) -> Int {
        addTarget(asynchronous: { [weak self] (event: RemoteCommandEvent) async -> RemoteCommandHandlerStatus in
            guard let self else { return .commandFailed }
            return await MainActor.run { handler(self.event(event)) }
        })
    }

    @MainActor
    private func event(_ event: RemoteCommandEvent) -> MPRemoteCommandEvent {
        let center = MPRemoteCommandCenter.shared()
        if self === center.changePlaybackPositionCommand { return MPChangePlaybackPositionCommandEvent(self, event) }
        if self === center.changePlaybackRateCommand { return MPChangePlaybackRateCommandEvent(self, event) }
        if self === center.skipForwardCommand || self === center.skipBackwardCommand {
            return MPSkipIntervalCommandEvent(self, event)
        }
        return MPRemoteCommandEvent(self)
    }

    private func addTarget(asynchronous handler: @escaping Handler) -> Int { addTarget(handler: handler) }
}
