import CPulse

/// Asks a sound server and changes it, like pactl, but over one connection that stays open.
///
/// Tests ask again and again until a condition is true. A process for each question took more processor time than the
/// tested programs.
public final class ServerControl {
    /// A stream that plays (sink input).
    public struct Stream: Sendable {
        public let index: UInt32
        /// The name of its sink; empty if it has none.
        public let sink: String
        /// The volume of the first channel; 65,536 is 100 %.
        public let volume: Int
        public let isMuted: Bool
        public let isCorked: Bool
        public let properties: [String: String]
    }

    /// A sink, with its number at the server. A sink that is made again has another number.
    public struct Sink: Equatable, Sendable {
        public let index: UInt32
        public let name: String
    }

    /// The names of the default sink and source; empty if there is none.
    public struct Defaults: Equatable, Sendable {
        public let sink: String
        public let source: String
    }

    private let server: String
    private var connection: PulseThread?
    private var opened = 0.0

    /// Seconds for which a connection is used to ask for the defaults. PipeWire reports a change of them only to a
    /// connection that is being set up at that moment, if there is one, and to no other (docs/adr/0012).
    private static let defaultsAge = 0.25

    init(server: String) { self.server = server }

    /// Closes the connection. The next question opens another one.
    func close() { connection = nil }

    /// Uses the open connection, or a new one if the server was restarted meanwhile.
    private func asking<R>(_ body: (PulseThread) throws -> R) throws -> R {
        if let connection {
            do { return try body(connection) } catch { if connection.isReady { throw error } }
        }
        connection = nil
        let made = try PulseThread(server: server, name: "tests")
        (connection, opened) = (made, monotonicNow())
        return try body(made)
    }

    // MARK: Questions

    /// All sinks, in the order of their numbers.
    public func sinks() throws -> [Sink] {
        try asking { connection in
            let list = Answers<Sink>()
            try connection.wait(keeping: list) {
                pa_context_get_sink_info_list(
                    connection.context,
                    { _, info, _, list in
                        guard let info = info?.pointee else { return }
                        Answers<Sink>.of(list).all.append(Sink(info))
                    }, list.pointer)
            }
            return list.all
        }
    }

    public func has(sink name: String) throws -> Bool { try sinks().contains { $0.name == name } }

    /// The streams that play, in the order of their numbers.
    public func streams() throws -> [Stream] {
        let streams = try asking { connection in
            let list = Answers<(Stream, UInt32)>()
            try connection.wait(keeping: list) {
                pa_context_get_sink_input_info_list(
                    connection.context,
                    { _, info, _, list in
                        guard let info = info?.pointee else { return }
                        Answers<(Stream, UInt32)>.of(list).all.append((Stream(info), info.sink))
                    }, list.pointer)
            }
            return list.all
        }
        if streams.isEmpty { return [] }
        let sinks = try sinks()
        return streams.map { stream, sink in stream.on(sinks.first { $0.index == sink }?.name ?? "") }
    }

    public func defaults() throws -> Defaults {
        if monotonicNow() - opened > ServerControl.defaultsAge { close() }
        return try asking { connection in
            let list = Answers<Defaults>()
            try connection.wait(keeping: list) {
                pa_context_get_server_info(
                    connection.context,
                    { _, info, list in
                        guard let info = info?.pointee else { return }
                        Answers<Defaults>.of(list).all.append(
                            Defaults(sink: text(info.default_sink_name), source: text(info.default_source_name)))
                    }, list.pointer)
            }
            guard let defaults = list.all.first else { throw SupportError("the server does not name its defaults") }
            return defaults
        }
    }

    /// The program of each client, as it states it.
    public func programs() throws -> [String] {
        try asking { connection in
            let list = Answers<String>()
            try connection.wait(keeping: list) {
                pa_context_get_client_info_list(
                    connection.context,
                    { _, info, _, list in
                        guard let info = info?.pointee else { return }
                        Answers<String>.of(list).all.append(
                            text(pa_proplist_gets(info.proplist, PA_PROP_APPLICATION_PROCESS_BINARY)))
                    }, list.pointer)
            }
            return list.all
        }
    }

    // MARK: Changes

    /// Each throws if the server refuses.

    public func setDefaultSink(_ name: String) throws {
        try patiently {
            try succeed("set-default-sink \(name)") { pa_context_set_default_sink($0, name, $1, $2) }
        }
    }

    /// PipeWire's server refuses a default before the session manager works, to a client that came before that for ever.
    private func patiently(_ set: () throws -> Void) throws {
        if (try? set()) != nil { return }
        let isSet = eventually {
            close()
            return (try? set()) != nil
        }
        if !isSet { try set() }
    }

    public func setDefaultSource(_ name: String) throws {
        try patiently {
            try succeed("set-default-source \(name)") { pa_context_set_default_source($0, name, $1, $2) }
        }
    }

    /// Sets the volume of a stream with one channel.
    public func setVolume(ofStream index: UInt32, to volume: Int) throws {
        var volumes = pa_cvolume()
        pa_cvolume_set(&volumes, 1, pa_volume_t(volume))
        try succeed("set-sink-input-volume \(index) \(volume)") {
            pa_context_set_sink_input_volume($0, index, &volumes, $1, $2)
        }
    }

    public func move(stream index: UInt32, to sink: String) throws {
        try succeed("move-sink-input \(index) \(sink)") {
            pa_context_move_sink_input_by_name($0, index, sink, $1, $2)
        }
    }

    /// Loads a module and returns its number.
    func load(_ module: String, _ arguments: String) throws -> UInt32 {
        try asking { connection in
            let list = Answers<UInt32>()
            try connection.wait(keeping: list) {
                pa_context_load_module(
                    connection.context, module, arguments,
                    { _, index, list in Answers<UInt32>.of(list).all.append(index) }, list.pointer)
            }
            guard let index = list.all.first, index != .max else {
                throw SupportError("load-module \(module) \(arguments): refused")
            }
            return index
        }
    }

    func unload(module index: UInt32) throws {
        try succeed("unload-module \(index)") { pa_context_unload_module($0, index, $1, $2) }
    }

    private func succeed(
        _ what: String, _ request: (OpaquePointer, pa_context_success_cb_t, UnsafeMutableRawPointer) -> OpaquePointer?
    ) throws {
        try asking { connection in
            let list = Answers<Bool>()
            try connection.wait(keeping: list) {
                request(
                    connection.context, { _, isDone, list in Answers<Bool>.of(list).all.append(isDone != 0) },
                    list.pointer)
            }
            guard list.all == [true] else { throw SupportError("\(what): refused") }
        }
    }
}

/// What a callback of libpulse receives. libpulse's thread writes it before the request is done.
private final class Answers<Element> {
    var all: [Element] = []

    var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static func of(_ pointer: UnsafeMutableRawPointer?) -> Answers {
        guard let pointer else { fatalError("a callback without its list") }
        return Unmanaged<Answers>.fromOpaque(pointer).takeUnretainedValue()
    }
}

extension PulseThread {
    fileprivate var isReady: Bool { locked { pa_context_get_state(context) } == PA_CONTEXT_READY }

    /// ``wait(timeout:_:)`` with a list that lives until the request is done or cancelled.
    fileprivate func wait<Element>(keeping list: Answers<Element>, _ request: () -> OpaquePointer?) throws {
        try withExtendedLifetime(list) { try wait(request) }
    }
}

extension ServerControl.Sink {
    fileprivate init(_ info: pa_sink_info) {
        index = info.index
        name = text(info.name)
    }
}

extension ServerControl.Stream {
    fileprivate init(_ info: pa_sink_input_info) {
        index = info.index
        sink = ""
        volume = Int(info.volume.values.0)
        isMuted = info.mute != 0
        isCorked = info.corked != 0
        var properties: [String: String] = [:]
        var place: UnsafeMutableRawPointer?
        while let key = pa_proplist_iterate(info.proplist, &place) {
            properties[text(key)] = text(pa_proplist_gets(info.proplist, key))
        }
        self.properties = properties
    }

    fileprivate func on(_ sink: String) -> Self {
        Self(index: index, sink: sink, volume: volume, isMuted: isMuted, isCorked: isCorked, properties: properties)
    }
}

private func text(_ string: UnsafePointer<CChar>?) -> String { string.map { String(cString: $0) } ?? "" }
