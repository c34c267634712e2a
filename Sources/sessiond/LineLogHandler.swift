import Logging
import PluginAPI

/// Writes each message as one line. Names of programs and files in it may have any character, so that one of them could
/// otherwise pass for a message of its own.
struct LineLogHandler: LogHandler {
    private var base: StreamLogHandler

    init(_ base: StreamLogHandler) { self.base = base }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(printable(event.message.description))"
        base.log(event: event)
    }
}
