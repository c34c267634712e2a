import CDBus

/// `org.freedesktop.DBus.Properties`, `.Introspectable`, `.ObjectManager` and `.Peer`.
enum StandardInterfaces {
    static let names = [
        StandardName.properties, StandardName.introspectable, StandardName.objectManager, StandardName.peer,
    ]

    static func serves(_ objects: ObjectTable, _ path: String, _ interface: String) -> Bool {
        switch interface {
        case StandardName.properties, StandardName.introspectable, StandardName.peer: true
        case StandardName.objectManager: objects.managers.contains(path)
        default: false
        }
    }

    /// The answer; nil if the interface has no such member here.
    static func answer(
        _ objects: ObjectTable, _ node: ObjectTable.Node, _ path: String, _ interface: String, _ member: String,
        _ call: Message
    ) throws(Failure) -> [Value]? {
        switch (interface, member) {
        case (StandardName.properties, "Get"):
            try ObjectTable.check(call, member, "ss")
            let (binding, property) = try find(node, path, try strings(call))
            return [.variant(property.get(binding.object))]
        case (StandardName.properties, "Set"):
            try ObjectTable.check(call, member, "ssv")
            let arguments = try call.arguments()
            let (binding, property) = try find(node, path, arguments.prefix(2).compactMap(\.stringValue))
            guard arguments.count == 3, case .variant(let value) = arguments[2] else { return nil }
            try objects.set(property, of: binding, at: path, to: value, by: call.sender ?? "")
            return []
        case (StandardName.properties, "GetAll"):
            try ObjectTable.check(call, member, "s")
            let interface = try strings(call).first ?? ""
            if let binding = node.binding(interface) { return [ObjectTable.describe(binding)] }
            // An empty name means all interfaces.
            guard interface.isEmpty || serves(objects, path, interface) else {
                throw unknown(interface, path)
            }
            guard interface.isEmpty else { return [.properties([])] }
            return [
                .properties(
                    node.bindings.flatMap { binding in
                        binding.table.properties.map { ($0.name, $0.get(binding.object)) }
                    })
            ]
        case (StandardName.introspectable, "Introspect"):
            try ObjectTable.check(call, member, "")
            return [.string(Introspection.text(of: node, at: path, in: objects))]
        case (StandardName.objectManager, "GetManagedObjects") where objects.managers.contains(path):
            try ObjectTable.check(call, member, "")
            return [managedObjects(objects, path)]
        case (StandardName.peer, "Ping"):
            return []
        case (StandardName.peer, "GetMachineId"):
            let machine = Failure.catching { dbus_try_get_local_machine_id($0) }
            guard let text = machine.result else { throw machine.failure ?? .noMemory }
            defer { dbus_free(text) }
            return [.string(String(cString: text))]
        default:
            return nil
        }
    }

    private static func strings(_ call: Message) throws(Failure) -> [String] {
        try call.arguments().compactMap(\.stringValue)
    }

    private static func unknown(_ interface: String, _ path: String) -> Failure {
        .unknownInterface("No interface \(Syntax.shortened(interface)) at \(Syntax.shortened(path))")
    }

    private static func find(
        _ node: ObjectTable.Node, _ path: String, _ names: [String]
    ) throws(Failure) -> (ObjectTable.Binding, InterfaceTable.Property) {
        let (interface, name) = (names.first ?? "", names.last ?? "")
        if interface.isEmpty {
            for binding in node.bindings {
                if let property = binding.table.property(name) { return (binding, property) }
            }
        } else if let binding = node.binding(interface) {
            if let property = binding.table.property(name) { return (binding, property) }
        } else if !Self.names.contains(interface) {
            throw unknown(interface, path)
        }
        throw .unknownProperty("No property \(Syntax.shortened(name)) in \(Syntax.shortened(interface))")
    }

    private static func managedObjects(_ objects: ObjectTable, _ root: String) -> Value {
        // Short paths first, so that numbered objects are in the order of their creation.
        let paths = objects.nodes.keys.filter { ObjectTable.isBelow($0, root) }
            .sorted { ($0.utf8.count, $0) < ($1.utf8.count, $1) }
        return .dictionary(
            key: "o", value: "a{sa{sv}}",
            paths.map { path in
                DictionaryEntry(
                    key: .objectPath(path), value: ObjectTable.describe(objects.nodes[path]?.bindings ?? []))
            })
    }
}
