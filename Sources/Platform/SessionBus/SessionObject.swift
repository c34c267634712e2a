public import DBus
public import PluginAPI

/// `/org/sessiond1/session/<n>`, `org.sessiond1.Session`: answers from a ``SessionService``; its methods emit the
/// signals of their names.
public final class SessionObject {
    public let id: SessionID
    private let path: String
    private let service: any SessionService
    private let objects: ObjectTable
    /// Whether a change of ``waits`` was sent without its value, and no client has read it since.
    private var isInvalidated = false

    /// The properties as they were sent last. One program may ask again and again for those of all sessions.
    private var encoded: (description: SessionDescription, properties: EncodedProperties)?
    /// The first property in a list of sessions.
    private lazy var encodedPath = try? EncodedProperties([("path", Value(id))])

    /// The last sent values of ``derived``.
    private var told: [String: Value] = [:]

    private static let waits = "WaitingFor"
    /// They follow from the route and the server, and often stay the same when the route changes.
    private static let derived: Set = ["SampleRate", "IOBufferDuration"]
    /// The longest list of sessions that is sent with its value.
    private static let longestTold = 16

    /// On the bus after ``export()``.
    public init(_ id: SessionID, _ service: any SessionService, on objects: ObjectTable) {
        self.id = id
        self.service = service
        self.objects = objects
        path = ObjectPath.session(id)
    }

    /// Appears on the bus, until ``remove()``. The service must already be able to describe it.
    public func export() {
        objects.export(self, at: path, interfaces: [SessionObject.interface])
        guard let description = service.describe(id) else { return }
        for name in SessionObject.derived { told[name] = SessionObject.readings[name]?(description) }
    }

    /// Leaves the bus: later callers get `ExpiredSession`.
    public func remove() { objects.remove(path: path) }

    /// Sends the current properties, by name. A long ``waits`` is only marked as changed.
    public func propertiesChanged(_ names: [String]) {
        guard let description = service.describe(id) else { return }
        var values: [(String, Value)] = []
        values.reserveCapacity(names.count)
        var invalidated: [String] = []
        for name in names {
            if name == SessionObject.waits, description.waitingFor.count > SessionObject.longestTold {
                if !isInvalidated { invalidated = [name] }
                isInvalidated = true
            } else if let value = SessionObject.readings[name]?(description) {
                if name == SessionObject.waits { isInvalidated = false }
                if SessionObject.derived.contains(name), told.updateValue(value, forKey: name) == value { continue }
                values.append((name, value))
            }
        }
        objects.propertiesChanged(path: path, interface: BusName.session, values, invalidated: invalidated)
    }

    /// Its waits changed. If they are many, the change is sent only once until a client reads the property: if all
    /// sessions wait for all others, each new session would otherwise cause a message to each.
    public func waitsChanged() {
        guard !isInvalidated || service.waitCount(of: id) <= SessionObject.longestTold else { return }
        propertiesChanged([SessionObject.waits])
    }

    /// A client has read, or may have read, the invalidated property.
    public func wasRead() { isInvalidated = false }

    /// The cause: nil if no session did it; then the name is that of the unplugged output, or "".
    public func interruptionBegan(_ reason: InterruptionReason, by: SessionID?, byName: String, sequence: UInt64) {
        let details: [(String, Value)] = [
            ("by", Value(by)), ("by-name", .string(byName)), ("sequence", .uint64(sequence)),
        ]
        emit("InterruptionBegan", [.string(reason.rawValue), .properties(details)])
    }

    /// The duration, and the reason of the interruption.
    public func interruptionEnded(
        shouldResume: Bool, microseconds: UInt64, reason: InterruptionReason, sequence: UInt64
    ) {
        let details: [(String, Value)] = [
            ("duration-usec", .uint64(microseconds)), ("reason", .string(reason.rawValue)),
            ("sequence", .uint64(sequence)),
        ]
        emit("InterruptionEnded", [.bool(shouldResume), .properties(details)])
    }

    /// The part of the route that its category uses, before and after.
    public func routeChanged(_ reason: RouteChangeReason, previous: Route, current: Route) {
        emit("RouteChanged", [.uint32(reason.rawValue), Value(previous), Value(current)])
    }

    public func silenceSecondaryAudioHint(begin: Bool) { emit("SilenceSecondaryAudioHint", [.bool(begin)]) }
    /// Decibels, 0 when no longer ducked.
    public func duckingChanged(_ ducked: Bool, gain: Double) { emit("DuckingChanged", [.bool(ducked), .double(gain)]) }

    private func emit(_ member: String, _ arguments: [Value]) {
        objects.emit(path: path, interface: BusName.session, member: member, arguments)
    }

    /// All properties by name, in the contract's order. They are encoded again only if one has changed. Nil if it is closed.
    private func described() -> EncodedProperties? {
        guard let description = service.read(id) else { return nil }
        if let encoded, encoded.description == description { return encoded.properties }
        let values = SessionObject.properties.map { ($0.name, $0.value(description)) }
        guard let properties = try? EncodedProperties(values) else { return nil }
        encoded = (description, properties)
        return properties
    }

    /// The same with its path first, as in a list of sessions.
    public func listed() -> Value? {
        guard let encodedPath, let properties = described() else { return nil }
        return .encoded(encodedPath.followed(by: properties))
    }

    private struct Reading: Sendable {
        let name: String
        let signature: String
        let value: @Sendable (SessionDescription) -> Value
    }

    private static let properties: [Reading] = [
        Reading(name: "Name", signature: "s") { .string($0.name) },
        Reading(name: "Category", signature: "s") { .string($0.configuration.category.rawValue) },
        Reading(name: "Mode", signature: "s") { .string($0.configuration.mode.rawValue) },
        Reading(name: "Options", signature: "as") { .strings($0.configuration.options.names) },
        Reading(name: "Class", signature: "s") { .string($0.sessionClass.rawValue) },
        Reading(name: "State", signature: "s") { .string($0.state.rawValue) },
        Reading(name: "StateSince", signature: "t") { .uint64($0.stateSince) },
        Reading(name: "Foreground", signature: "b") { .bool($0.isForeground) },
        Reading(name: "Owner", signature: "s") { .string($0.owner) },
        Reading(name: "ProcessId", signature: "u") { .uint32($0.processID) },
        Reading(name: "DesktopEntry", signature: "s") { .string($0.desktopEntry) },
        Reading(name: "InterruptionReason", signature: "s") { .string($0.interruptionReason?.rawValue ?? "") },
        Reading(name: waits, signature: "ao") { .objectPaths($0.waitingFor.map(ObjectPath.session)) },
        Reading(name: "Ducked", signature: "b") { .bool($0.isDucked) },
        Reading(name: "DuckGain", signature: "d") { .double($0.duckGain) },
        Reading(name: "Muted", signature: "b") { .bool($0.isMuted) },
        Reading(name: "IgnoredInterruption", signature: "b") { .bool($0.ignoredInterruption) },
        Reading(name: "Adopted", signature: "b") { .bool($0.isAdopted) },
        Reading(name: "Evidence", signature: "s") { .string($0.evidence) },
        Reading(name: "OtherAudioPlaying", signature: "b") { .bool($0.otherAudioPlaying) },
        Reading(name: "SecondaryAudioShouldBeSilencedHint", signature: "b") { .bool($0.silenceHint) },
        Reading(name: "CurrentRoute", signature: "a{sv}") { Value($0.route) },
        Reading(name: "AvailableInputs", signature: "aa{sv}") { Value($0.availableInputs) },
        Reading(name: "PreferredInput", signature: "s") { .string($0.preferredInput) },
        Reading(name: "SampleRate", signature: "d") {
            .double(Double(($0.route.outputs.first ?? $0.route.inputs.first)?.sampleRate ?? 0))
        },
        // The actual value if the server reports it; until then the requested one.
        Reading(name: "IOBufferDuration", signature: "d") { session in
            let latency = session.route.outputs.isEmpty ? session.inputLatency : session.outputLatency
            return .double(latency > 0 ? latency : session.preferences.ioBufferDuration ?? 0)
        },
        Reading(name: "OutputLatency", signature: "d") { .double($0.outputLatency) },
        Reading(name: "InputLatency", signature: "d") { .double($0.inputLatency) },
        Reading(name: "OutputVolume", signature: "d") { .double($0.outputVolume) },
    ]

    private static let readings = Dictionary(
        properties.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })

    private typealias Handler = (SessionObject, Invocation) throws(Failure) -> Void

    /// A method for the owner: for other callers not even the arguments are read.
    private static func method(_ name: String, _ signature: String, _ body: @escaping Handler)
        -> Interface<SessionObject>.Method
    {
        .init(name, signature) { object, call in
            // Signals that may follow are sent after the answer.
            call.batch {
                do throws(Failure) {
                    try refusing { () throws(SessionError) in
                        try object.service.authorize(object.id, caller: call.sender)
                    }
                    try body(object, call)
                    call.reply()
                } catch {
                    call.fail(name: error.name, message: error.message)
                }
            }
        }
    }

    private static let interface = Interface<SessionObject>(
        name: BusName.session, introspection: InterfaceXML.session,
        methods: [
            method("SetCategory", "ssas") { object, call throws(Failure) in
                let words = call.arguments[2].arrayValue?.compactMap(\.stringValue) ?? []
                try refusing { () throws(SessionError) in
                    let configuration = try Configuration(
                        category: call.arguments[0].stringValue ?? "", mode: call.arguments[1].stringValue ?? "",
                        options: words)
                    try object.service.setCategory(object.id, configuration, caller: call.sender)
                }
            },
            method("Activate", "a{sv}") { object, call throws(Failure) in
                _ = try OptionReader(call.arguments[0], known: [])
                try refusing { () throws(SessionError) in
                    try object.service.activate(object.id, caller: call.sender)
                }
            },
            method("Deactivate", "a{sv}") { object, call throws(Failure) in
                let notify = try OptionReader(call.arguments[0], known: ["notify-others"]).bool("notify-others")
                try refusing { () throws(SessionError) in
                    try object.service.deactivate(object.id, notifyOthers: notify ?? false, caller: call.sender)
                }
            },
            method("OverrideOutput", "s") { object, call throws(Failure) in
                let name = call.arguments[0].stringValue ?? ""
                try refusing { () throws(SessionError) in
                    guard let override = OutputOverride(rawValue: name) else {
                        throw .badParameter("unknown port \(quoted(name)); use speaker or none")
                    }
                    try object.service.overrideOutput(object.id, override, caller: call.sender)
                }
            },
            method("SetPreferredInput", "s") { object, call throws(Failure) in
                let uid = call.arguments[0].stringValue ?? ""
                try refusing { () throws(SessionError) in
                    try object.service.setPreferredInput(object.id, uid: uid, caller: call.sender)
                }
            },
            method("SetPreferences", "a{sv}") { object, call throws(Failure) in try object.setPreferences(call) },
            method("Close", "") { object, call throws(Failure) in
                try refusing { () throws(SessionError) in
                    try object.service.close(object.id, caller: call.sender)
                }
            },
        ],
        properties: properties.map { property in
            .init(
                property.name, property.signature,
                get: { object in object.service.read(object.id).map(property.value) ?? .string("") })
        }, describe: { $0.described() })

    private func setPreferences(_ call: Invocation) throws(Failure) {
        let reader = try OptionReader(
            call.arguments[0],
            known: [
                "sample-rate", "io-buffer-duration", "interrupt-on-route-disconnect", "no-interruptions-from-alerts",
            ])
        let rate = try reader.double("sample-rate")
        let duration = try reader.double("io-buffer-duration")
        let interrupts = try reader.bool("interrupt-on-route-disconnect")
        let noAlerts = try reader.bool("no-interruptions-from-alerts")
        try refusing { () throws(SessionError) in
            if let rate, !Preferences.sampleRates.contains(rate) {
                throw .badParameter("'sample-rate' must be 1000 to 768000 Hz")
            }
            if let duration, !(duration > 0 && duration <= Preferences.longestBuffer) {
                throw .badParameter("'io-buffer-duration' must be above 0 and at most 10 s")
            }
            try service.setPreferences(
                id,
                { preferences in
                    if let rate { preferences.sampleRate = rate }
                    if let duration { preferences.ioBufferDuration = duration }
                    if let interrupts { preferences.interruptsOnRouteDisconnect = interrupts }
                    if let noAlerts { preferences.noInterruptionsFromAlerts = noAlerts }
                }, caller: call.sender)
        }
    }
}

/// Runs code that may be refused; a refusal becomes a bus error.
private func refusing(_ body: () throws(SessionError) -> Void) throws(Failure) {
    do throws(SessionError) { try body() } catch { throw Failure(error) }
}
