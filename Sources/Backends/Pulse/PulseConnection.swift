import CPulse
import EventLoop
import PluginAPI

/// One connection to the server, from `pa_context_new` to its end: requests out, answers and events in.
///
/// Used only on the loop. After ``close()``, no callback is called.
final class PulseConnection {
    enum State {
        case ready
        case failed(refused: Bool)
    }

    enum Facility {
        case sink
        case source
        case playing
        case recording
        case card
        case server
        case module
    }

    var onState: ((State) -> Void)?
    var onEvent: ((_ facility: Facility, _ index: UInt32, _ isRemoved: Bool) -> Void)?
    /// The server's remembered values of streams have changed (``watchMemory(_:)``).
    var onMemoryChanged: (() -> Void)?
    /// A client came, changed or went, after ``subscribe(clients:end:)`` has asked for that.
    var onClient: (() -> Void)?
    /// The server is connected, but does not answer.
    var onSilence: (() -> Void)?

    private let context: OpaquePointer
    private var isOpen = true
    private var replies: [ObjectIdentifier: Reply] = [:]
    private var modules = Modules()
    private let patience: Double
    private var lastAnswer: UInt64 = 0
    private var watchdog: Timer?

    /// The modules that this connection loads.
    private struct Modules {
        var loaded: Set<UInt32> = []
        /// The number of those that the server was asked for and that are not there yet.
        var loading = 0
        /// No more are loaded, and those that come are unloaded at once, each with its completion.
        var isOver = false
        var ends: [(Bool) -> Void] = []
    }

    /// Nil if libpulse has no memory left. `patience`: seconds without an answer after which ``onSilence`` is called.
    init?(loop: EventLoop, name: String, patience: Double) {
        let list = pa_proplist_new()
        defer { pa_proplist_free(list) }
        pa_proplist_sets(list, PA_PROP_APPLICATION_ID, "org.sessiond1")
        guard let made = pa_context_new_with_proplist(loop.api, name, list) else { return nil }
        context = made
        self.patience = patience
        watchdog = Timer(on: loop) { [weak self] in self?.lookForSilence() }
        let me = Unmanaged.passUnretained(self).toOpaque()
        pa_context_set_state_callback(
            context,
            { _, me in
                guard let me else { return }
                let connection = Unmanaged<PulseConnection>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(connection) { connection.stateChanged() }
            }, me)
        pa_context_set_subscribe_callback(
            context,
            { _, event, index, me in
                guard let me else { return }
                let connection = Unmanaged<PulseConnection>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(connection) { connection.happened(event, index) }
            }, me)
    }

    deinit {
        close()
        pa_context_unref(context)
    }

    /// A stream that requests the rate and the buffer of an output. It must be freed before the connection. Nil if
    /// libpulse refuses.
    func tune(_ output: PulseDevice, _ wish: OutputWish) -> PulseTuning? {
        isOpen ? PulseTuning(wish, for: output, on: context) : nil
    }

    /// Measures a stream. It must be freed before the connection. Nil if libpulse refuses.
    func measure(_ index: UInt32, on device: UInt32, _ attempts: Int, hasSound: Bool) -> PulseMeter? {
        isOpen ? PulseMeter(index, on: device, attempts, hasSound: hasSound, context: context) : nil
    }

    /// Starts to connect; ``onState`` reports the result, also if it fails at once. `server` nil: libpulse decides.
    func connect(to server: String?) {
        let status = pa_context_connect(context, server, PA_CONTEXT_NOAUTOSPAWN, nil)
        if status < 0, isOpen { onState?(.failed(refused: isRefusal)) }
    }

    /// No event and no answer is reported any more.
    func close() {
        guard isOpen else { return }
        isOpen = false
        pa_context_set_state_callback(context, nil, nil)
        pa_context_set_subscribe_callback(context, nil, nil)
        pa_ext_stream_restore_set_subscribe_cb(context, nil, nil)
        // This cancels the operations, so that nothing refers to the replies that are freed now.
        pa_context_disconnect(context)
        replies.removeAll()
        watchdog = nil
    }

    private func stateChanged() {
        guard isOpen else { return }
        switch pa_context_get_state(context) {
        case PA_CONTEXT_READY: onState?(.ready)
        case PA_CONTEXT_FAILED, PA_CONTEXT_TERMINATED: onState?(.failed(refused: isRefusal))
        default: break
        }
    }

    private var isRefusal: Bool { pa_context_errno(context) == Int32(bitPattern: PA_ERR_CONNECTIONREFUSED.rawValue) }

    private func happened(_ event: pa_subscription_event_type_t, _ index: UInt32) {
        guard isOpen else { return }
        let isRemoved =
            event.rawValue & PA_SUBSCRIPTION_EVENT_TYPE_MASK.rawValue == PA_SUBSCRIPTION_EVENT_REMOVE.rawValue
        switch event.rawValue & PA_SUBSCRIPTION_EVENT_FACILITY_MASK.rawValue {
        case PA_SUBSCRIPTION_EVENT_SINK.rawValue: onEvent?(.sink, index, isRemoved)
        case PA_SUBSCRIPTION_EVENT_SOURCE.rawValue: onEvent?(.source, index, isRemoved)
        case PA_SUBSCRIPTION_EVENT_SINK_INPUT.rawValue: onEvent?(.playing, index, isRemoved)
        case PA_SUBSCRIPTION_EVENT_SOURCE_OUTPUT.rawValue: onEvent?(.recording, index, isRemoved)
        case PA_SUBSCRIPTION_EVENT_CARD.rawValue: onEvent?(.card, index, isRemoved)
        case PA_SUBSCRIPTION_EVENT_SERVER.rawValue: onEvent?(.server, 0, false)
        case PA_SUBSCRIPTION_EVENT_MODULE.rawValue: onEvent?(.module, index, isRemoved)
        case PA_SUBSCRIPTION_EVENT_CLIENT.rawValue: onClient?()
        default: break
        }
    }

    // MARK: Requests. `end` is called once with whether the server succeeded, unless the connection is closed first.

    /// `clients`: whether ``onClient`` is called, too.
    func subscribe(clients: Bool = false, end: @escaping (Bool) -> Void) {
        let mask =
            (clients ? PA_SUBSCRIPTION_MASK_CLIENT.rawValue : 0)
            | PA_SUBSCRIPTION_MASK_SINK.rawValue | PA_SUBSCRIPTION_MASK_SOURCE.rawValue
            | PA_SUBSCRIPTION_MASK_SINK_INPUT.rawValue | PA_SUBSCRIPTION_MASK_SOURCE_OUTPUT.rawValue
            | PA_SUBSCRIPTION_MASK_CARD.rawValue | PA_SUBSCRIPTION_MASK_SERVER.rawValue
            | PA_SUBSCRIPTION_MASK_MODULE.rawValue
        command(end) { pa_context_subscribe($0, pa_subscription_mask(rawValue: mask), $1, $2) }
    }

    func readServer(item: @escaping (pa_server_info) -> Void, end: @escaping (Bool) -> Void) {
        ask(item: { item($0.load(as: pa_server_info.self)) }, end) { context, reply in
            pa_context_get_server_info(
                context, { _, info, reply in Reply.last(reply, info.map { UnsafeRawPointer($0) }) }, reply)
        }
    }

    /// One client, or all if `index` is nil.
    func readClients(_ index: UInt32?, item: @escaping (pa_client_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_client_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_client_info.self)) }, end) { context, reply in
            index.map { pa_context_get_client_info(context, $0, step, reply) }
                ?? pa_context_get_client_info_list(context, step, reply)
        }
    }

    func readModules(_ index: UInt32?, item: @escaping (pa_module_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_module_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_module_info.self)) }, end) { context, reply in
            index.map { pa_context_get_module_info(context, $0, step, reply) }
                ?? pa_context_get_module_info_list(context, step, reply)
        }
    }

    /// One sink, or all if `index` is nil. The other readers are alike.
    func readSinks(_ index: UInt32?, item: @escaping (pa_sink_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_sink_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_sink_info.self)) }, end) { context, reply in
            index.map { pa_context_get_sink_info_by_index(context, $0, step, reply) }
                ?? pa_context_get_sink_info_list(context, step, reply)
        }
    }

    func readSources(_ index: UInt32?, item: @escaping (pa_source_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_source_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_source_info.self)) }, end) { context, reply in
            index.map { pa_context_get_source_info_by_index(context, $0, step, reply) }
                ?? pa_context_get_source_info_list(context, step, reply)
        }
    }

    func readCards(_ index: UInt32?, item: @escaping (pa_card_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_card_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_card_info.self)) }, end) { context, reply in
            index.map { pa_context_get_card_info_by_index(context, $0, step, reply) }
                ?? pa_context_get_card_info_list(context, step, reply)
        }
    }

    func readPlaying(_ index: UInt32?, item: @escaping (pa_sink_input_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_sink_input_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_sink_input_info.self)) }, end) { context, reply in
            index.map { pa_context_get_sink_input_info(context, $0, step, reply) }
                ?? pa_context_get_sink_input_info_list(context, step, reply)
        }
    }

    func readRecording(
        _ index: UInt32?, item: @escaping (pa_source_output_info) -> Void, end: @escaping (Bool) -> Void
    ) {
        let step: pa_source_output_info_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_source_output_info.self)) }, end) { context, reply in
            index.map { pa_context_get_source_output_info(context, $0, step, reply) }
                ?? pa_context_get_source_output_info_list(context, step, reply)
        }
    }

    /// All remembered values of streams; refused by a server that has none.
    func readMemory(item: @escaping (pa_ext_stream_restore_info) -> Void, end: @escaping (Bool) -> Void) {
        let step: pa_ext_stream_restore_read_cb_t = { _, info, eol, reply in
            Reply.step(reply, info.map { UnsafeRawPointer($0) }, eol)
        }
        ask(item: { item($0.load(as: pa_ext_stream_restore_info.self)) }, end) { context, reply in
            pa_ext_stream_restore_read(context, step, reply)
        }
    }

    /// Whether ``onMemoryChanged`` is called. A server without remembered values refuses; that is ignored.
    func watchMemory(_ isWatched: Bool) {
        let me = Unmanaged.passUnretained(self).toOpaque()
        pa_ext_stream_restore_set_subscribe_cb(
            context,
            { _, me in
                guard let me else { return }
                let connection = Unmanaged<PulseConnection>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(connection) { connection.onMemoryChanged?() }
            }, me)
        guard pa_context_get_state(context) == PA_CONTEXT_READY else { return }
        command({ _ in }) { pa_ext_stream_restore_subscribe($0, isWatched ? 1 : 0, $1, $2) }
    }

    /// Loads a module; succeeds once it is there. `made` is called before `end`, with its number. Fails after
    /// ``unloadModules(_:)``.
    func loadModule(
        _ name: String, _ arguments: String, made: @escaping (UInt32) -> Void = { _ in }, end: @escaping (Bool) -> Void
    ) {
        guard !modules.isOver else { return end(false) }
        var module = noIndex
        modules.loading += 1
        let loaded = { [weak self] (isThere: Bool) in
            guard let self else { return end(isThere) }
            modules.loading -= 1
            guard let unloaded = modules.ends.popLast() else {
                if isThere { modules.loaded.insert(module) }
                return end(isThere)
            }
            if isThere { unloadModule(module, unloaded) } else { unloaded(true) }
            end(false)
        }
        let item = { (index: UnsafeRawPointer) in
            module = index.load(as: UInt32.self)
            made(module)
        }
        ask(item: item, loaded) { context, reply in
            pa_context_load_module(
                context, name, arguments,
                { _, index, reply in
                    withUnsafePointer(to: index) { Reply.last(reply, index == noIndex ? nil : UnsafeRawPointer($0)) }
                }, reply)
        }
    }

    func unloadModule(_ module: UInt32, _ end: @escaping (Bool) -> Void) {
        modules.loaded.remove(module)
        command(end) { pa_context_unload_module($0, module, $1, $2) }
    }

    /// Unloads all modules that it has loaded, also those that the server is still loading. `end` creates the completion for
    /// each.
    func unloadModules(_ end: () -> (Bool) -> Void) {
        modules.isOver = true
        for module in modules.loaded.sorted() { unloadModule(module, end()) }
        while modules.ends.count < modules.loading { modules.ends.append(end()) }
    }

    /// Any request that the server answers with success or failure.
    func command(
        _ end: @escaping (Bool) -> Void,
        _ send: (OpaquePointer, @escaping pa_context_success_cb_t, UnsafeMutableRawPointer) -> OpaquePointer?
    ) {
        ask(item: nil, end) { context, reply in
            send(context, { _, success, reply in Reply.last(reply, success: success != 0) }, reply)
        }
    }

    private func ask(
        item: ((UnsafeRawPointer) -> Void)?, _ end: @escaping (Bool) -> Void,
        _ send: (OpaquePointer, UnsafeMutableRawPointer) -> OpaquePointer?
    ) {
        guard isOpen else { return }
        let reply = Reply(connection: self, item: item, end: end)
        guard let operation = send(context, Unmanaged.passUnretained(reply).toOpaque()) else { return end(false) }
        pa_operation_unref(operation)
        if replies.isEmpty {
            lastAnswer = MonotonicClock.now()
            watchdog?.arm(after: patience)
        }
        replies[ObjectIdentifier(reply)] = reply
    }

    private func answered(_ reply: Reply, success: Bool) {
        guard replies.removeValue(forKey: ObjectIdentifier(reply)) != nil else { return }
        lastAnswer = MonotonicClock.now()
        if replies.isEmpty { watchdog?.disarm() }
        reply.end(success)
    }

    private func lookForSilence() {
        guard isOpen, !replies.isEmpty else { return }
        let deadline = lastAnswer &+ MonotonicClock.microseconds(patience)
        // The server may have a long queue, so each answer restarts the timeout.
        if MonotonicClock.now() < deadline { watchdog?.arm(at: deadline) } else { onSilence?() }
    }

    /// A request that waits for its answer; owned by the connection until then.
    private final class Reply {
        private weak var connection: PulseConnection?
        private let item: ((UnsafeRawPointer) -> Void)?
        let end: (Bool) -> Void

        init(connection: PulseConnection, item: ((UnsafeRawPointer) -> Void)?, end: @escaping (Bool) -> Void) {
            self.connection = connection
            self.item = item
            self.end = end
        }

        private func finish(_ success: Bool) { connection?.answered(self, success: success) }

        /// One call of a list callback: an item, the end (`eol > 0`) or an error (`eol < 0`).
        static func step(_ context: UnsafeMutableRawPointer?, _ info: UnsafeRawPointer?, _ eol: Int32) {
            guard let context else { return }
            let reply = Unmanaged<Reply>.fromOpaque(context).takeUnretainedValue()
            withExtendedLifetime(reply) {
                if eol == 0, let info { reply.item?(info) } else { reply.finish(eol > 0) }
            }
        }

        static func last(_ context: UnsafeMutableRawPointer?, _ info: UnsafeRawPointer?) {
            guard let context else { return }
            let reply = Unmanaged<Reply>.fromOpaque(context).takeUnretainedValue()
            withExtendedLifetime(reply) {
                if let info { reply.item?(info) }
                reply.finish(info != nil)
            }
        }

        static func last(_ context: UnsafeMutableRawPointer?, success: Bool) {
            guard let context else { return }
            let reply = Unmanaged<Reply>.fromOpaque(context).takeUnretainedValue()
            withExtendedLifetime(reply) { reply.finish(success) }
        }
    }
}
