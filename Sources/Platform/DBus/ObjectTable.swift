import CDBus

/// The objects of one connection and the dispatch of calls to them.
///
/// Serves Introspectable and Properties on every exported path and on the paths above it, ObjectManager on paths that
/// enable it, and Peer on any path. An exported object is kept alive until its path is removed.
public final class ObjectTable {
    struct Binding {
        let object: AnyObject
        let table: InterfaceTable
    }

    final class Node {
        var bindings: [Binding] = []

        func binding(_ interface: String) -> Binding? { bindings.first { $0.table.name == interface } }
    }

    weak var connection: Connection?
    private(set) var nodes: [String: Node] = [:]
    /// For every path above an exported one: its children and how many exported paths each leads to.
    private(set) var children: [String: [String: Int]] = [:]
    private(set) var managers: [String] = []
    /// The object that answers on paths above exported ones.
    private let emptyNode = Node()
    /// The property that a Set is changing, and whether its handler has announced the change.
    private var setting: (path: String, interface: String, property: String, told: Bool)?

    /// Called before a call to an unknown path is answered with UnknownObject; nil: it is.
    public var unknownObject: ((String) -> Failure?)?

    /// The answer to a call with a text of more than 64 KiB, or more than 4 MiB of text in all.
    public var longText = Failure.longText

    /// Paths whose calls are answered by a handler of the program.
    private var relays: [String: (Invocation) -> Void] = [:]
    /// The same for everything below a path.
    private var treeRelays: [String: (Invocation) -> Void] = [:]

    init() {}

    // MARK: Exporting

    /// Passes every call to this path to the handler, which answers now or later. This includes all interfaces, also
    /// Properties and Introspectable, but not Peer. Nothing may be exported there.
    public func relay(path: String, _ handler: @escaping (Invocation) -> Void) {
        precondition(Syntax.isPath(path) && nodes[path] == nil, "not an object path, or one in use")
        relays[path] = handler
    }

    /// The same for this path and all paths below it: for objects that are too many to be exported.
    public func relay(below path: String, _ handler: @escaping (Invocation) -> Void) {
        precondition(Syntax.isPath(path) && nodes[path] == nil, "not an object path, or one in use")
        treeRelays[path] = handler
        // Whoever looks for objects finds it.
        countChild(path, 1)
    }

    private func relay(of path: String) -> ((Invocation) -> Void)? {
        relays[path] ?? treeRelays.first { path == $0.key || Self.isBelow(path, $0.key) }?.value
    }

    /// Adds interfaces at a path; exporting again at the same path adds to it, also with another object.
    ///
    /// The path must be a valid object path, and must not have the interface already. Otherwise the program has a bug.
    public func export<Object>(_ object: Object, at path: String, interfaces: [Interface<Object>]) {
        precondition(Syntax.isPath(path), "not an object path")
        let node = nodes[path] ?? Node()
        if nodes.updateValue(node, forKey: path) == nil { countChild(path, 1) }
        var added: [Binding] = []
        for interface in interfaces {
            precondition(node.binding(interface.name) == nil, "\(interface.name) is exported twice at \(path)")
            added.append(Binding(object: object, table: interface.table))
            node.bindings.append(Binding(object: object, table: interface.table))
        }
        for manager in managers where Self.isBelow(path, manager) {
            emit(
                path: manager, interface: StandardName.objectManager, member: "InterfacesAdded",
                [.objectPath(path), Self.describe(added)])
        }
    }

    /// Removes an object from the bus, if it is there.
    public func remove(path: String) {
        guard let node = nodes.removeValue(forKey: path) else { return }
        countChild(path, -1)
        let interfaces = Value.strings(node.bindings.map(\.table.name))
        for manager in managers where Self.isBelow(path, manager) {
            emit(
                path: manager, interface: StandardName.objectManager, member: "InterfacesRemoved",
                [.objectPath(path), interfaces])
        }
    }

    /// Serves `org.freedesktop.DBus.ObjectManager` at a path: everything exported below it is listed and announced.
    public func enableObjectManager(at path: String) {
        precondition(Syntax.isPath(path), "not an object path")
        guard !managers.contains(path) else { return }
        managers.append(path)
        // The manager exists even if nothing is exported at or below its path.
        if nodes[path] == nil {
            nodes[path] = Node()
            countChild(path, 1)
        }
    }

    private func countChild(_ path: String, _ change: Int) {
        var path = path[...]
        while path != "/", let slash = path.lastIndex(of: "/") {
            let name = String(path[path.index(after: slash)...])
            path = slash == path.startIndex ? "/" : path[..<slash]
            let parent = String(path)
            let count = children[parent]?[name] ?? 0
            children[parent, default: [:]][name] = count + change > 0 ? count + change : nil
            if children[parent]?.isEmpty == true { children[parent] = nil }
        }
    }

    static func isBelow(_ path: String, _ root: String) -> Bool {
        guard root != "/" else { return path != "/" }
        return path.utf8.count > root.utf8.count + 1 && path.hasPrefix(root)
            && path.utf8.dropFirst(root.utf8.count).first == UInt8(ascii: "/")
    }

    // MARK: Signals

    /// Emits a signal to all subscribers, or to one peer only. With invalid values, nothing is sent.
    ///
    /// With ``Connection/servedUsers``, all subscribers are the connections that have called.
    public func emit(
        path: String, interface: String, member: String, _ arguments: [Value] = [], to destination: String? = nil
    ) {
        guard let connection, connection.isOpen,
            let signal = try? Message.signal(path: path, interface: interface, member: member)
        else { return }
        guard destination == nil, let listeners = connection.listeners else {
            return emit(signal, arguments, to: destination, on: connection)
        }
        for peer in listeners.peers {
            guard let signal = try? Message.signal(path: path, interface: interface, member: member) else { continue }
            emit(signal, arguments, to: peer, on: connection)
        }
    }

    private func emit(_ signal: Message, _ arguments: [Value], to destination: String?, on connection: Connection) {
        if let destination { signal.destination = destination }
        signal.append(arguments)
        connection.send(signal)
    }

    /// Emits PropertiesChanged, without properties that are declared not to be announced. With
    /// ``Connection/servedUsers``, it has no values, because every user hears it.
    ///
    /// - Parameter invalidated: properties that have changed too, but whose values are not sent to all subscribers.
    public func propertiesChanged(
        path: String, interface: String, _ properties: [(String, Value)], invalidated: [String] = []
    ) {
        guard let connection, connection.isOpen else { return }
        let table = nodes[path]?.binding(interface)?.table
        let told = properties.filter { table?.property($0.0)?.emitsChanged ?? true }
        guard !told.isEmpty || !invalidated.isEmpty else { return }
        if let setting, setting.path == path, setting.interface == interface,
            told.contains(where: { $0.0 == setting.property })
        {
            self.setting?.told = true
        }
        let isOverheard = connection.listeners != nil
        let arguments: [Value] = [
            .string(interface), .properties(isOverheard ? [] : told),
            .strings((isOverheard ? told.map(\.0) : []) + invalidated),
        ]
        guard table != nil else {
            guard
                let signal = try? Message.signal(
                    path: path, interface: StandardName.properties, member: "PropertiesChanged")
            else { return }
            return emit(signal, arguments, to: nil, on: connection)
        }
        // The path was validated when it was exported.
        let signal = Draft(signal: "PropertiesChanged", path: path, interface: StandardName.properties)
        emit(Message(signal), arguments, to: nil, on: connection)
    }

    /// Sets a property for a caller, and announces a change.
    func set(
        _ property: InterfaceTable.Property, of binding: Binding, at path: String, to value: Value, by caller: String
    ) throws(Failure) {
        guard let set = property.set else {
            throw .propertyReadOnly("\(binding.table.name).\(property.name) is read-only")
        }
        try binding.table.permission?(binding.object, caller)
        guard value.hasSignature(property.signature) else {
            throw .invalidArgs(
                "\(binding.table.name).\(property.name) is of type \(property.signature), not \(value.signature)")
        }
        let before = property.emitsChanged ? property.get(binding.object) : nil
        let outer = setting
        setting = (path, binding.table.name, property.name, false)
        defer { setting = outer }
        try set(binding.object, value)
        guard let before, setting?.told == false else { return }
        let after = property.get(binding.object)
        if after != before {
            propertiesChanged(path: path, interface: binding.table.name, [(property.name, after)])
        }
    }

    // MARK: Dispatch

    /// Answers a call, or passes it to its method.
    func handle(_ call: Message, on connection: Connection) {
        do throws(Failure) {
            try dispatch(call, on: connection)
        } catch {
            connection.answer(CallHeader(call), error == .longText ? longText : error)
        }
    }

    private func dispatch(_ call: Message, on connection: Connection) throws(Failure) {
        guard let path = call.path, let member = call.member else { throw .unknownMethod("A call without a name") }
        let interface = call.interface
        if interface != StandardName.peer, let relay = relay(of: path) {
            let arguments = try call.arguments()
            return relay(
                Invocation(
                    call, on: connection, path: path, interface: interface ?? "", member: member,
                    arguments: arguments))
        }
        guard let node = nodes[path] ?? (interface != StandardName.peer && children[path] == nil ? nil : emptyNode)
        else {
            throw unknownObject?(path) ?? .unknownObject("No object at \(Syntax.shortened(path))")
        }
        guard let interface else {
            for binding in node.bindings {
                if let method = binding.table.methods[member] {
                    return try invoke(method, of: binding, path, call, on: connection)
                }
            }
            for interface in StandardInterfaces.names {
                if let answer = try StandardInterfaces.answer(self, node, path, interface, member, call) {
                    return connection.answer(CallHeader(call), answer)
                }
            }
            throw .unknownMethod("No method \(member) at \(Syntax.shortened(path))")
        }
        if let binding = node.binding(interface) {
            guard let method = binding.table.methods[member] else {
                throw .unknownMethod("No method \(member) in \(interface)")
            }
            return try invoke(method, of: binding, path, call, on: connection)
        }
        guard StandardInterfaces.serves(self, path, interface) else {
            throw .unknownInterface("No interface \(interface) at \(Syntax.shortened(path))")
        }
        guard let answer = try StandardInterfaces.answer(self, node, path, interface, member, call) else {
            throw .unknownMethod("No method \(member) in \(interface)")
        }
        connection.answer(CallHeader(call), answer)
    }

    private func invoke(
        _ method: InterfaceTable.Method, of binding: Binding, _ path: String, _ call: Message,
        on connection: Connection
    ) throws(Failure) {
        try binding.table.permission?(binding.object, call.sender ?? "")
        try Self.check(call, method.name, method.signature)
        let arguments = try call.arguments()
        let invocation = Invocation(
            call, on: connection, path: path, interface: binding.table.name, member: method.name,
            arguments: arguments)
        method.handler(binding.object, invocation)
    }

    static func check(_ call: Message, _ member: String, _ expected: String) throws(Failure) {
        guard dbus_message_has_signature(call.raw, expected) == 0 else { return }
        throw .invalidArgs("\(member) takes (\(expected)), not (\(call.signature))")
    }

    static func describe(_ bindings: [Binding]) -> Value {
        .dictionary(
            key: "s", value: "a{sv}",
            bindings.map { DictionaryEntry(key: .string($0.table.name), value: describe($0)) })
    }

    static func describe(_ binding: Binding) -> Value {
        binding.table.describe?(binding.object).map(Value.encoded)
            ?? .properties(binding.table.properties.map { ($0.name, $0.get(binding.object)) })
    }
}
