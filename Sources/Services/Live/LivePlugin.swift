import DBus
import GStreamerBackend
import LiveBackend
import LiveStreaming
import PluginAPI
public import PluginKit
import SessionBus

/// Live streams for other programs, on the bus as `org.sessiond1.Live`. Each stream is an object of its own, with a session
/// of its own if it has a microphone.
public final class LivePlugin: Plugin {
    private let host: PluginHost
    let callers: FreeCallers
    private var streams: [UInt64: LiveStreamObject] = [:]
    private var lastNumber: UInt64 = 0
    private lazy var owned = OwnedObjects(on: host.connection) { [unowned self] in streams[$0]?.close() }
    private var announcement: Announcement<LivePlugin>?

    /// An encoder uses much of a processor.
    private static let limit = 16

    public init(_ host: PluginHost) {
        self.host = host
        callers = FreeCallers(on: host.connection)
        host.connection.objects.export(self, at: PluginKind.live.objectPath, interfaces: [LivePlugin.interface])
        announcement = Announcement(
            self, path: PluginKind.live.objectPath, interface: PluginKind.live.interface, Self.properties,
            on: host.connection.objects)
    }

    public func end(_ done: @escaping () -> Void) {
        let open = streams.values.sorted { $0.number < $1.number }
        guard !open.isEmpty else { return finish(done) }
        ending = { [unowned self] in finish(done) }
        for stream in open { stream.close() }
    }

    private var ending: (() -> Void)?

    private func finish(_ done: () -> Void) {
        ending = nil
        host.connection.flush()
        done()
    }

    /// - Throws: `BadParameter`, `NotSupported`, `ResourceNotAvailable`.
    private func create(_ url: String, _ options: LiveOptions, for owner: String) throws(SessionError) -> String {
        guard streams.count < Self.limit else {
            throw SessionError(.resourceNotAvailable, "there are \(streams.count) streams already: close one")
        }
        let target = try LiveTarget(url, key: options.key)
        lastNumber += 1
        let identity = StreamIdentity(clientName: options.name.isEmpty ? "Live stream" : options.name)
        let stream = LiveStreamObject(
            lastNumber, at: PluginKind.live.objectPath + "/stream/\(lastNumber)", target, options, owner: owner,
            on: host
        ) { [host] () throws(SessionError) in
            try LivePush(target, options.settings, identity, device: options.input, on: host.loop)
        }
        stream.onClosed = { [unowned self] in closed($0) }
        stream.onChanged = { [unowned self] in settle() }
        streams[lastNumber] = stream
        owned.add(lastNumber, of: owner)
        announcement?.update(self)
        return stream.path
    }

    private func closed(_ stream: LiveStreamObject) {
        streams[stream.number] = nil
        owned.remove(stream.number, of: stream.owner)
        settle()
        if streams.isEmpty { ending?() }
    }

    private func settle() {
        announcement?.update(self)
        host.isBusy = streams.values.contains(where: \.isRunning)
    }

    // MARK: The bus

    private static let properties: [Announcement<LivePlugin>.Property] = [
        .init("Streams", "ao") {
            .array(of: "o", $0.streams.values.sorted { $0.number < $1.number }.map { .objectPath($0.path) })
        }
    ]

    private static let interface = Interface<LivePlugin>(
        name: PluginKind.live.interface, introspection: PluginXML.live,
        methods: [
            .init("CreateStream", "sa{sv}") { live, call in
                do throws(Failure) {
                    try live.callers.require(call.sender, to: "send live streams")
                    let options = try LiveOptions(call.arguments[1])
                    do throws(SessionError) {
                        call.reply([
                            .objectPath(
                                try live.create(call.arguments[0].stringValue ?? "", options, for: call.sender))
                        ])
                    } catch {
                        throw Failure(error)
                    }
                } catch {
                    call.fail(error)
                }
            }
        ],
        properties: properties.map(\.exported))
}
