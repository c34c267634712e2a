/// One D-Bus interface of an object type: its members and their handlers, shared by all objects that carry it.
// SAFETY: immutable; the handlers run only where an ObjectTable calls them, which is the one thread of its loop, so a
// handler that refers to state of that loop is never run elsewhere. Making one a `static let` shares it on that thread.
public struct Interface<Object: AnyObject>: @unchecked Sendable {
    /// A method that callers may call.
    public struct Method {
        let name: String
        let erased: InterfaceTable.Method

        /// - Parameters:
        ///   - inputSignature: the types of all arguments; calls with others get InvalidArgs and no handler sees them.
        ///   - handler: answers the invocation now, or keeps it and answers later.
        public init(_ name: String, _ inputSignature: String, _ handler: @escaping (Object, Invocation) -> Void) {
            self.name = name
            erased = InterfaceTable.Method(name: name, signature: inputSignature) { object, invocation in
                handler(unsafeDowncast(object, to: Object.self), invocation)
            }
        }
    }

    /// A property that callers may read, and set if it has a setter.
    public struct Property {
        let erased: InterfaceTable.Property

        /// - Parameters:
        ///   - set: nil for read-only. Gets a value of the declared type.
        ///   - emitsChanged: whether PropertiesChanged may carry it: then a `Set` that changed it says so if `set`
        ///     did not, else ``ObjectTable/propertiesChanged(path:interface:_:invalidated:)`` leaves it out.
        public init(
            _ name: String, _ signature: String, get: @escaping (Object) -> Value,
            set: ((Object, Value) throws(Failure) -> Void)? = nil, emitsChanged: Bool = true
        ) {
            var erasedSet: ((AnyObject, Value) throws(Failure) -> Void)?
            if let set {
                erasedSet = { (object, value) throws(Failure) in
                    try set(unsafeDowncast(object, to: Object.self), value)
                }
            }
            erased = InterfaceTable.Property(
                name: name, signature: signature, emitsChanged: emitsChanged,
                get: { get(unsafeDowncast($0, to: Object.self)) }, set: erasedSet)
        }
    }

    public let name: String
    let table: InterfaceTable

    /// - Parameters:
    ///   - introspection: the `<interface>…</interface>` element, served verbatim; created when it is first needed.
    ///   - describe: all properties at once, for an object that has them encoded; nil: they are read one by one.
    ///   - permission: throws the error for a caller, by its unique name, that may not call the methods and may not set the
    ///     properties; reading is not asked about.
    public init(
        name: String, introspection: @autoclosure @escaping () -> String, methods: [Method] = [],
        properties: [Property] = [], describe: ((Object) -> EncodedProperties?)? = nil,
        permission: ((Object, String) throws(Failure) -> Void)? = nil
    ) {
        precondition(Syntax.isInterface(name), "not an interface name: \(name)")
        self.name = name
        var erasedPermission: ((AnyObject, String) throws(Failure) -> Void)?
        if let permission {
            erasedPermission = { (object, caller) throws(Failure) in
                try permission(unsafeDowncast(object, to: Object.self), caller)
            }
        }
        table = InterfaceTable(
            name: name, introspection: introspection, methods: methods.map(\.erased),
            properties: properties.map(\.erased),
            describe: describe.map { describe in { describe(unsafeDowncast($0, to: Object.self)) } },
            permission: erasedPermission)
    }
}

/// An interface without its object's type, so that objects of different types share one table.
///
/// Only an ``Interface`` creates one, and only `export` combines it with an object, of the same type: so the downcasts
/// succeed.
final class InterfaceTable {
    struct Method {
        let name: String
        let signature: String
        let handler: (AnyObject, Invocation) -> Void
    }

    struct Property {
        let name: String
        let signature: String
        let emitsChanged: Bool
        let get: (AnyObject) -> Value
        let set: ((AnyObject, Value) throws(Failure) -> Void)?
    }

    let name: String
    let introspection: () -> String
    let methods: [String: Method]
    /// In the declared order, which GetAll keeps.
    let properties: [Property]
    private let propertyIndex: [String: Int]
    let describe: ((AnyObject) -> EncodedProperties?)?
    let permission: ((AnyObject, String) throws(Failure) -> Void)?

    init(
        name: String, introspection: @escaping () -> String, methods: [Method], properties: [Property],
        describe: ((AnyObject) -> EncodedProperties?)?, permission: ((AnyObject, String) throws(Failure) -> Void)?
    ) {
        self.name = name
        self.introspection = introspection
        self.methods = Dictionary(methods.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        self.properties = properties
        (self.describe, self.permission) = (describe, permission)
        propertyIndex = Dictionary(properties.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { $1 })
    }

    func property(_ name: String) -> Property? { propertyIndex[name].map { properties[$0] } }
}
