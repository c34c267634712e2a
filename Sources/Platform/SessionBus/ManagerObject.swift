public import DBus
public import PluginAPI

/// `/org/sessiond1`, `org.sessiond1.Manager`: answers from a ``SessionService``; its methods emit the signals of their
/// names.
public final class ManagerObject {
    private let service: any SessionService
    private let objects: ObjectTable

    /// Exports itself; exists while the object table keeps it.
    public init(_ service: any SessionService, on objects: ObjectTable) {
        self.service = service
        self.objects = objects
        objects.export(self, at: ObjectPath.root, interfaces: [ManagerObject.interface])
        objects.refuseLongTexts()
        objects.unknownObject = { [unowned service] path in
            guard let id = ObjectPath.sessionID(path) else { return nil }
            do throws(SessionError) {
                try service.authorize(id, caller: "")
                return nil
            } catch {
                return error.code == .expiredSession ? Failure(error) : nil
            }
        }
    }

    /// The current properties, by name.
    public func propertiesChanged(_ names: [String]) {
        let description = service.manager
        objects.propertiesChanged(
            path: ObjectPath.root, interface: BusName.manager,
            names.compactMap { name in ManagerObject.readings[name].map { (name, $0(description)) } })
    }

    /// Sent once globally; each session also has its own signal.
    public func routeChanged(_ reason: RouteChangeReason, previous: Route, current: Route) {
        emit("RouteChanged", [.uint32(reason.rawValue), Value(previous), Value(current)])
    }

    public func servicesLost() { emit("ServicesLost", []) }
    public func servicesReset() { emit("ServicesReset", []) }

    private func emit(_ member: String, _ arguments: [Value]) {
        objects.emit(path: ObjectPath.root, interface: BusName.manager, member: member, arguments)
    }

    private struct Reading: Sendable {
        let name: String
        let signature: String
        let value: @Sendable (ManagerDescription) -> Value
    }

    private static let properties: [Reading] = [
        Reading(name: "Sequence", signature: "t") { .uint64($0.sequence) },
        Reading(name: "Version", signature: "s") { .string($0.version) },
        Reading(name: "SilentMode", signature: "b") { .bool($0.isSilentMode) },
        Reading(name: "ScreenLocked", signature: "b") { .bool($0.isScreenLocked) },
        Reading(name: "NowPlaying", signature: "o") { Value($0.nowPlaying) },
        Reading(name: "CurrentRoute", signature: "a{sv}") { Value($0.route) },
        Reading(name: "AvailableInputs", signature: "aa{sv}") { Value($0.inputs) },
        Reading(name: "AvailableOutputs", signature: "aa{sv}") { Value($0.outputs) },
        Reading(name: "ServerConnected", signature: "b") { .bool($0.isServerConnected) },
        Reading(name: "ServerName", signature: "s") { .string($0.serverName) },
        Reading(name: "Neighbours", signature: "aa{sv}") {
            .array(
                of: "a{sv}",
                $0.neighbours.map { .properties([("name", .string($0.name)), ("does", .string($0.does))]) })
        },
        Reading(name: "SettingsError", signature: "s") { .string($0.settingsError) },
        Reading(name: "Ducking", signature: "a{sv}") {
            .properties([
                ("gain", .double($0.ducking.gain)), ("attack", .double($0.ducking.attack)),
                ("release", .double($0.ducking.release)), ("hold", .double($0.ducking.hold)),
            ])
        },
    ]

    private static let readings = Dictionary(
        properties.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })

    private static var interface: Interface<ManagerObject> {
        Interface(
            name: BusName.manager, introspection: InterfaceXML.manager,
            methods: [
                .init("CreateSession", "sa{sv}") { $0.createSession($1) },
                .init("ListSessions", "") { object, call in
                    call.reply([.array(of: "a{sv}", object.service.listedSessions)])
                },
                .init("ListStreams", "") { object, call in
                    call.reply([.array(of: "a{sv}", object.service.listedStreams)])
                },
                .init("LastMinute", "") { object, call in
                    let work = object.service.recentWork
                    call.reply([
                        .properties([
                            ("wake-ups", .uint64(work.wakeUps)), ("processor-usec", .uint64(work.processor)),
                        ])
                    ])
                },
                .init("SetSilentMode", "b") { object, call in
                    let on = call.arguments[0].boolValue == true
                    object.change(call) { () throws(SessionError) in
                        try object.service.setSilentMode(on, caller: call.sender)
                    }
                },
                .init("SetScreenLocked", "b") { object, call in
                    let locked = call.arguments[0].boolValue == true
                    object.change(call) { () throws(SessionError) in
                        try object.service.setScreenLocked(locked, caller: call.sender)
                    }
                },
                .init("SetForeground", "ob") { object, call in
                    let foreground = call.arguments[1].boolValue == true
                    object.change(call) { () throws(SessionError) in
                        try object.service.setForeground(
                            call.sessionArgument(), foreground, caller: call.sender)
                    }
                },
                .init("History", "u") { object, call in
                    let count = call.arguments[0].uint32Value ?? 0
                    call.reply([.array(of: "a{sv}", object.service.history(before: .max, count))])
                },
                .init("HistoryBefore", "tu") { object, call in
                    let (end, count) = (call.arguments[0].uint64Value ?? 0, call.arguments[1].uint32Value ?? 0)
                    call.reply([.array(of: "a{sv}", object.service.history(before: end, count))])
                },
                .init("ExportHistory", "") { object, call in
                    call.reply([.string(object.service.exportHistory(isPrivate: false))])
                },
                .init("ExportPrivateHistory", "") { object, call in
                    do throws(Failure) {
                        try object.service.authorizeSwitch(caller: call.sender)
                        call.reply([.string(object.service.exportHistory(isPrivate: true))])
                    } catch {
                        call.fail(error)
                    }
                },
                .init("Explain", "o") { object, call in
                    do throws(SessionError) {
                        call.reply([.array(of: "a{sv}", try object.service.explain(call.sessionArgument()))])
                    } catch {
                        call.fail(error)
                    }
                },
            ],
            properties: properties.map { property in
                .init(
                    property.name, property.signature, get: { property.value($0.service.manager) },
                    emitsChanged: property.name != "Sequence" && property.name != "Version")
            })
    }

    /// Changes shared state, if the caller may.
    private func change(_ call: Invocation, _ body: () throws(SessionError) -> Void) {
        do throws(Failure) {
            try service.authorizeSwitch(caller: call.sender)
        } catch {
            return call.fail(error)
        }
        call.answer(body)
    }

    private func createSession(_ call: Invocation) {
        let request: SessionRequest
        do throws(Failure) {
            request = try SessionRequest(call.arguments[0].stringValue ?? "", call.arguments[1])
        } catch {
            call.fail(name: error.name, message: error.message)
            return
        }
        service.createSession(request, caller: call.sender) { result in
            switch result {
            case .success(let id): call.reply([Value(id)])
            case .failure(let failure): call.fail(name: failure.name, message: failure.message)
            }
        }
    }

}

extension Invocation {
    func fail(_ error: SessionError) {
        let failure = Failure(error)
        fail(name: failure.name, message: failure.message)
    }

    /// Answers without a value, or with the refusal.
    func answer(_ body: () throws(SessionError) -> Void) {
        do throws(SessionError) {
            try body()
            reply()
        } catch {
            fail(error)
        }
    }

    /// The session named by the first argument.
    func sessionArgument() throws(SessionError) -> SessionID {
        let path = arguments[0].objectPathValue ?? ""
        guard let id = ObjectPath.sessionID(path) else {
            throw .badParameter("\(quoted(path)) is not a session; use a path that CreateSession returned")
        }
        return id
    }
}

extension ObjectTable {
    /// A call with a text that no service here has a use for is answered with our error for values out of their range.
    public func refuseLongTexts() {
        longText = Failure(.badParameter("a text has at most 64 KiB, and all texts of a call 4 MiB"))
    }
}
