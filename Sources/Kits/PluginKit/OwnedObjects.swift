public import DBus

/// The objects of a plugin that end when the connection that created them ends.
///
/// It keeps numbers, not the objects: a job, a capture session and a movie all end like this, each in its own way.
public final class OwnedObjects {
    private let connection: Connection
    private let end: (_ number: UInt64) -> Void
    private var owners: [String: (watch: Subscription, numbers: Set<UInt64>)] = [:]

    /// - Parameter end: ends the object with that number, because its owner has left. The newest object of an owner is
    ///   ended first: newer ones may wait for older ones, and must not start now. What is sent meanwhile leaves in one
    ///   batch.
    public init(on connection: Connection, end: @escaping (_ number: UInt64) -> Void) {
        (self.connection, self.end) = (connection, end)
    }

    /// The connections whose objects it keeps.
    public var owningConnections: Int { owners.count }

    /// Watches the owner of an object. If the connection has already ended, ``init(on:end:)``'s callback follows soon.
    /// - Parameter owner: the unique name of the connection.
    public func add(_ number: UInt64, of owner: String) {
        if owners[owner] == nil {
            owners[owner] = (connection.watchName(owner) { [weak self] in self?.left(owner) }, [])
        }
        owners[owner]?.numbers.insert(number)
    }

    /// The object has ended. Does nothing for an object that was not added.
    public func remove(_ number: UInt64, of owner: String) {
        guard owners[owner]?.numbers.remove(number) != nil else { return }
        if owners[owner]?.numbers.isEmpty == true { owners[owner] = nil }
    }

    private func left(_ owner: String) {
        guard let numbers = owners.removeValue(forKey: owner)?.numbers else { return }
        connection.batch { for number in numbers.sorted(by: >) { end(number) } }
    }
}
