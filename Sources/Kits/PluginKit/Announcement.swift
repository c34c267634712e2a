package import DBus

/// The properties of one exported interface and their last sent values: only changed values are sent.
package final class Announcement<Object: AnyObject> {
    package struct Property: Sendable {
        package let name: String
        let signature: String
        let isTold: Bool
        package let get: @Sendable (Object) -> Value
        let set: (@Sendable (Object, Value) throws(Failure) -> Void)?

        package init(
            _ name: String, _ signature: String, isTold: Bool = true, _ get: @escaping @Sendable (Object) -> Value,
            set: (@Sendable (Object, Value) throws(Failure) -> Void)? = nil
        ) {
            self.name = name
            self.signature = signature
            self.isTold = isTold
            self.get = get
            self.set = set
        }

        package var exported: Interface<Object>.Property {
            Interface<Object>.Property(name, signature, get: get, set: set, emitsChanged: isTold)
        }
    }

    private let path: String
    private let interface: String
    private let properties: [Property]
    private let objects: ObjectTable
    private var told: [String: Value] = [:]

    package init(_ object: Object, path: String, interface: String, _ properties: [Property], on objects: ObjectTable) {
        self.path = path
        self.interface = interface
        self.properties = properties.filter(\.isTold)
        self.objects = objects
        for property in self.properties { told[property.name] = property.get(object) }
    }

    /// Sends the values that differ from the last sent ones.
    package func update(_ object: Object) {
        var changes: [(String, Value)] = []
        for property in properties {
            let value = property.get(object)
            guard told[property.name] != value else { continue }
            told[property.name] = value
            changes.append((property.name, value))
        }
        if !changes.isEmpty { objects.propertiesChanged(path: path, interface: interface, changes) }
    }
}
