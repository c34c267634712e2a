import CPulse

/// Watches a file descriptor until it is released. The caller owns the descriptor, which must outlive the watch.
public final class IOWatch {
    /// The events to wait for, and the events that occurred (`pa_io_event_flags_t`).
    public struct Events: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        public static let readable = Events(rawValue: 1)
        public static let writable = Events(rawValue: 2)
        public static let hangUp = Events(rawValue: 4)
        public static let error = Events(rawValue: 8)
    }

    private var event: OpaquePointer?
    private let loop: EventLoop
    private let handler: (Events) -> Void

    /// The events to wait for. An empty set pauses the watch; otherwise hang-up and error are always reported. With an error
    /// alone, a file is watched that can always be read, such as those of the kernel about mounts.
    public var events: Events {
        didSet { if events != oldValue { loop.api.pointee.io_enable(event, events.flags) } }
    }

    /// Calls the handler from the loop repeatedly while the condition lasts: the handler must read, or stop watching.
    public init(on loop: EventLoop, descriptor: Int32, events: Events, _ handler: @escaping (Events) -> Void) {
        self.loop = loop
        self.events = events
        self.handler = handler
        event = loop.api.pointee.io_new(
            loop.api, descriptor, events.flags,
            { _, _, _, flags, context in
                guard let context else { return }
                let watch = Unmanaged<IOWatch>.fromOpaque(context).takeUnretainedValue()
                withExtendedLifetime(watch) { watch.handler(Events(flags)) }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { if let event { loop.api.pointee.io_free(event) } }
}

extension IOWatch.Events {
    fileprivate var flags: pa_io_event_flags_t {
        var raw: UInt32 = PA_IO_EVENT_NULL.rawValue
        if contains(.readable) { raw |= PA_IO_EVENT_INPUT.rawValue }
        if contains(.writable) { raw |= PA_IO_EVENT_OUTPUT.rawValue }
        if contains(.error) { raw |= PA_IO_EVENT_ERROR.rawValue }
        return pa_io_event_flags_t(rawValue: raw)
    }

    fileprivate init(_ flags: pa_io_event_flags_t) {
        self = []
        if flags.rawValue & PA_IO_EVENT_INPUT.rawValue != 0 { insert(.readable) }
        if flags.rawValue & PA_IO_EVENT_OUTPUT.rawValue != 0 { insert(.writable) }
        if flags.rawValue & PA_IO_EVENT_HANGUP.rawValue != 0 { insert(.hangUp) }
        if flags.rawValue & PA_IO_EVENT_ERROR.rawValue != 0 { insert(.error) }
    }
}
