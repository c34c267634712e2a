import CDBus
import EventLoop

/// libdbus's watches, timeouts and messages on the event loop.
///
/// Every context given to C is retained, and released by C's destroy callback.
enum LoopBridge {
    private final class Context {
        weak var connection: Connection?
        init(_ connection: Connection) { self.connection = connection }
    }

    /// The data of a DBusWatch. libdbus may have two watches for one descriptor; each has separate data here.
    private final class WatchState {
        var watch: IOWatch?
    }

    /// The data of a DBusTimeout.
    private final class TimeoutState {
        var timer: Timer?
    }

    private static func retained(_ object: AnyObject) -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(object).toOpaque()
    }

    private static let release: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
        if let context { Unmanaged<AnyObject>.fromOpaque(context).release() }
    }

    private static func connection(_ context: UnsafeMutableRawPointer?) -> Connection? {
        context.flatMap { Unmanaged<Context>.fromOpaque($0).takeUnretainedValue().connection }
    }

    /// False if libdbus has no memory left.
    static func attach(_ connection: Connection) -> Bool {
        let raw = connection.raw
        let context = Context(connection)
        let watches = retained(context)
        guard dbus_connection_set_watch_functions(raw, add, remove, toggle, watches, release) != 0 else {
            release(watches)
            return false
        }
        let timeouts = retained(context)
        guard
            dbus_connection_set_timeout_functions(raw, addTimeout, removeTimeout, toggleTimeout, timeouts, release) != 0
        else {
            release(timeouts)
            return false
        }
        // libdbus forbids dispatching here.
        dbus_connection_set_dispatch_status_function(
            raw,
            { _, status, context in
                guard status != DBUS_DISPATCH_COMPLETE else { return }
                LoopBridge.connection(context)?.scheduleDispatch()
            }, retained(context), release)
        let filter = retained(context)
        guard dbus_connection_add_filter(raw, receive, filter, release) != 0 else {
            release(filter)
            return false
        }
        connection.filterContext = filter
        return true
    }

    static func detach(_ connection: Connection) {
        detachWatches(connection)
        if let filter = connection.filterContext { dbus_connection_remove_filter(connection.raw, receive, filter) }
        connection.filterContext = nil
        dbus_connection_set_dispatch_status_function(connection.raw, nil, nil, nil)
    }

    static func detachWatches(_ connection: Connection) {
        // Calls the remove functions for all remaining watches. Removing functions needs no memory and cannot fail.
        _ = dbus_connection_set_watch_functions(connection.raw, nil, nil, nil, nil, nil)
        _ = dbus_connection_set_timeout_functions(connection.raw, nil, nil, nil, nil, nil)
    }

    private static let receive: DBusHandleMessageFunction = { _, message, context in
        guard let message, let connection = LoopBridge.connection(context) else {
            return DBUS_HANDLER_RESULT_NOT_YET_HANDLED
        }
        return connection.receive(message) ? DBUS_HANDLER_RESULT_HANDLED : DBUS_HANDLER_RESULT_NOT_YET_HANDLED
    }

    // MARK: Watches

    private static let add: DBusAddWatchFunction = { watch, context in
        guard let watch, let connection = LoopBridge.connection(context) else { return 0 }
        let state = WatchState()
        state.watch = IOWatch(
            on: connection.loop, descriptor: dbus_watch_get_unix_fd(watch), events: LoopBridge.events(watch)
        ) { [weak connection] seen in
            guard let connection else { return }
            // A hang-up is reported even to a paused watch.
            guard dbus_watch_get_enabled(watch) != 0 else { return }
            connection.handle(watch, LoopBridge.flags(seen))
        }
        dbus_watch_set_data(watch, LoopBridge.retained(state), LoopBridge.release)
        return 1
    }

    private static let remove: DBusRemoveWatchFunction = { watch, _ in
        guard let watch, let data = dbus_watch_get_data(watch) else { return }
        Unmanaged<WatchState>.fromOpaque(data).takeUnretainedValue().watch = nil
        dbus_watch_set_data(watch, nil, nil)
    }

    private static let toggle: DBusWatchToggledFunction = { watch, _ in
        guard let watch, let data = dbus_watch_get_data(watch) else { return }
        Unmanaged<WatchState>.fromOpaque(data).takeUnretainedValue().watch?.events = LoopBridge.events(watch)
    }

    private static func events(_ watch: OpaquePointer) -> IOWatch.Events {
        guard dbus_watch_get_enabled(watch) != 0 else { return [] }
        let flags = dbus_watch_get_flags(watch)
        // libdbus accepts hang-up and error as conditions seen, but not as conditions to wait for.
        var events: IOWatch.Events = []
        if flags & DBUS_WATCH_READABLE.rawValue != 0 { events.insert(.readable) }
        if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { events.insert(.writable) }
        return events
    }

    private static func flags(_ events: IOWatch.Events) -> UInt32 {
        var flags: UInt32 = 0
        if events.contains(.readable) { flags |= DBUS_WATCH_READABLE.rawValue }
        if events.contains(.writable) { flags |= DBUS_WATCH_WRITABLE.rawValue }
        if events.contains(.hangUp) { flags |= DBUS_WATCH_HANGUP.rawValue }
        if events.contains(.error) { flags |= DBUS_WATCH_ERROR.rawValue }
        return flags
    }

    // MARK: Timeouts

    private static let addTimeout: DBusAddTimeoutFunction = { timeout, context in
        guard let timeout, let connection = LoopBridge.connection(context) else { return 0 }
        let state = TimeoutState()
        state.timer = Timer(on: connection.loop) { [weak state] in
            // A DBusTimeout fires repeatedly until it is removed or paused, which its handler may do.
            _ = dbus_timeout_handle(timeout)
            if let timer = state?.timer { LoopBridge.arm(timer, timeout) }
        }
        if let timer = state.timer { arm(timer, timeout) }
        dbus_timeout_set_data(timeout, LoopBridge.retained(state), LoopBridge.release)
        return 1
    }

    private static let removeTimeout: DBusRemoveTimeoutFunction = { timeout, _ in
        guard let timeout, let data = dbus_timeout_get_data(timeout) else { return }
        Unmanaged<TimeoutState>.fromOpaque(data).takeUnretainedValue().timer = nil
        dbus_timeout_set_data(timeout, nil, nil)
    }

    private static let toggleTimeout: DBusTimeoutToggledFunction = { timeout, _ in
        guard let timeout, let data = dbus_timeout_get_data(timeout),
            let timer = Unmanaged<TimeoutState>.fromOpaque(data).takeUnretainedValue().timer
        else { return }
        LoopBridge.arm(timer, timeout)
    }

    private static func arm(_ timer: Timer, _ timeout: OpaquePointer) {
        if dbus_timeout_get_enabled(timeout) != 0 {
            timer.arm(after: Double(dbus_timeout_get_interval(timeout)) / 1_000)
        } else {
            timer.disarm()
        }
    }
}
