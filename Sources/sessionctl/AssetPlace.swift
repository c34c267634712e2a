import DBus
import EventLoop
import Glibc
import MediaValues
import PluginAPI
import SessionBus

/// A plugin without a session, which the daemon starts if it does not run.
class PluginPlace {
    let service: Service
    let kind: PluginKind
    /// The unique name of the plugin's connection.
    let place: String
    /// Its object: plugins of other authors may have it at another path than ours.
    let objectPath: String

    /// The time limit for a file to wait for others and to be read, in seconds. The plugin has its own limits.
    static let patience = 300.0

    /// - Parameters:
    ///   - uri: the item that the plugin must open.
    ///   - purpose: for the error if there is no such plugin.
    init(_ kind: PluginKind, for uri: String, _ purpose: String, _ service: Service) throws {
        (self.service, self.kind) = (service, kind)
        // The daemon may have to start the plugin first.
        let answer: [Value] = try service.wait { reply in
            service.connection.call(
                BusName.service, ObjectPath.root, BusName.plugins, "Open", [.string(kind.word), .string(uri)],
                timeout: 30, reply)
        }
        guard answer.count == 2, let name = answer[0].stringValue, let path = answer[1].objectPathValue else {
            throw Complaint.refused("the service has not opened a plugin for \(purpose)")
        }
        let owner = try? service.connection.askBusAndWait("GetNameOwner", [.string(name)], timeout: Service.timeout)
        place = owner?.first?.stringValue ?? name
        objectPath = path
    }

    /// Calls a method of the plugin's object, and waits for the answer.
    func ask(_ member: String, _ arguments: [Value]) throws -> [Value] {
        try service.wait { reply in
            service.connection.call(
                place, objectPath, kind.interface, member, arguments, timeout: Self.patience, reply)
        }
    }
}

/// The plugin for films, and a file for it.
final class AssetPlace: PluginPlace {
    /// The absolute path of the file, as a URI.
    let uri: String

    init(_ file: String, _ service: Service) throws {
        uri = FileURI.uri(file)
        try super.init(.assets, for: uri, file.escaped, service)
    }
}

/// A job of the plugin, from its start to its end; ctrl-C cancels it.
final class FollowedJob {
    /// Its properties changed.
    var onChanged: () -> Void = {}
    /// A picture: requested and actual time, path, error.
    var onImage: (Double, Double, String, String) -> Void = { _, _, _, _ in }

    /// Changes the message of an error for the user.
    var wording: (String) -> String = { $0 }

    private(set) var properties: [String: Value] = [:]
    private let place: PluginPlace
    private var path = ""
    /// Signals that arrived before the path of the job was known.
    private var unheard: [Message] = []
    private var subscriptions: [Subscription] = []
    private var signals: [SignalWatch] = []
    /// The exit code, once it has ended.
    private var code: Int32?
    private var signal: Int32 = 0

    init(_ place: PluginPlace) {
        self.place = place
        let connection = place.service.connection
        subscriptions = [
            connection.subscribe(interface: BusName.job, sender: place.place) { [unowned self] in heard($0) },
            connection.subscribe(
                interface: StandardName.properties, member: "PropertiesChanged", sender: place.place, arg0: BusName.job
            ) { [unowned self] in heard($0) },
            connection.subscribe(path: place.kind.objectPath, interface: place.kind.interface, sender: place.place) {
                [unowned self] in heard($0)
            },
            connection.watchName(place.place) { [unowned self] in
                end(Complaint.refused("\(place.kind.program) ended unexpectedly"))
            },
        ]
        connection.onDisconnect = { [unowned self] in end(Complaint.unreachable("the bus connection was lost")) }
        signals = [SIGINT, SIGTERM, SIGHUP].map { number in
            place.service.loop.watch(signal: number) { [unowned self] in cancel(number) }
        }
    }

    /// Starts the job by that method, and waits until it has ended; returns the exit code.
    func run(_ member: String, _ arguments: [Value]) throws -> Int32 {
        let service = place.service
        let answer: [Value] = try service.wait { reply in
            service.connection.call(
                place.place, place.kind.objectPath, place.kind.interface, member, arguments,
                timeout: PluginPlace.patience, reply)
        }
        let job = answer.first?.objectPathValue ?? "/"
        // A job may have ended before all of its properties are known: its signals are heard afterwards.
        let known: [Value]? = try? service.wait { reply in
            service.connection.call(
                place.place, job, StandardName.properties, "GetAll", [.string(BusName.job)], timeout: Service.timeout,
                reply)
        }
        path = job
        learn(known?.first?.asProperties ?? [:])
        let unheard = unheard
        self.unheard = []
        for message in unheard { heard(message) }
        if signal != 0 { sendCancel() }
        while true {
            if let code { return code }
            guard service.loop.iterate() else { throw Complaint.unreachable("the bus connection was lost") }
        }
    }

    private func heard(_ message: Message) {
        guard !path.isEmpty else { return unheard.append(message) }
        guard let values = try? message.arguments() else { return }
        switch message.member {
        case "PropertiesChanged" where message.path == path:
            place.service.connection.readChanges(message) { [weak self] _, properties in self?.learn(properties) }
        case "Image" where values.first?.objectPathValue == path:
            if values.count == 5, let requested = values[1].doubleValue, let actual = values[2].doubleValue {
                onImage(requested, actual, values[3].stringValue ?? "", values[4].stringValue ?? "")
            }
        default: break
        }
    }

    private func learn(_ changes: [String: Value]) {
        properties.merge(changes) { $1 }
        onChanged()
        switch properties["State"]?.stringValue {
        case "finished": code = code ?? 0
        case "failed", "cancelled":
            if signal != 0 {
                code = code ?? 128 + signal
            } else {
                let name = properties["Error"]?.stringValue ?? ""
                end(Complaint(Failure(name: name, message: properties["Message"]?.stringValue ?? "")))
            }
        default: break
        }
    }

    private func cancel(_ number: Int32) {
        // At a second signal, the command ends at once.
        if signal != 0 { code = 128 + number }
        signal = number
        if !path.isEmpty { sendCancel() }
    }

    private func sendCancel() { place.service.connection.call(place.place, path, BusName.job, "Cancel", []) { _ in } }

    private func end(_ complaint: Complaint) {
        guard code == nil else { return }
        code = complaint.code
        ProgressLine.clearIfDrawn()
        Output.complain(wording(complaint.message))
    }
}
