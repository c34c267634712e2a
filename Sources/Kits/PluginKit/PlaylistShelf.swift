import DBus
import EventLoop
import PluginAPI
import SessionBus

/// The playlists of the music library, for a player. The library is queried when a client reads the playlists of the
/// player.
final class PlaylistShelf {
    struct Entry: Equatable {
        let id: UInt64
        let name: String
    }

    /// The playlists that are known.
    private(set) var entries: [Entry] = []
    /// Called when the playlists have changed, with those whose name has changed.
    var onChanged: (_ renamed: [Entry]) -> Void = { _ in }
    /// Nil after the library has ended.
    private var place: String?
    private var isKnown = false
    private var subscription: Subscription?
    private let connection: Connection
    private let connect: () throws(Failure) -> Connection
    /// The connection that opens the library. It is closed soon, so that an unused library is stopped.
    private var opener: Connection?
    private lazy var closing = Timer(on: connection.loop) { [unowned self] in
        opener?.close()
        opener = nil
    }

    /// The time for which the library is kept open, the time limit for its start, and the one for its answer, in
    /// seconds.
    private static let (keepTime, startTime, patience) = (10.0, 30.0, 60.0)
    /// More playlists than this are not listed.
    private static let limit: UInt32 = 5_000

    /// - Parameter connect: creates another connection to the same bus.
    init(on connection: Connection, _ connect: @escaping () throws(Failure) -> Connection) {
        (self.connection, self.connect) = (connection, connect)
    }

    /// Called when a client reads the number of playlists. Queries the library once.
    func wake() {
        guard !isKnown else { return }
        isKnown = true
        read { _ in }
    }

    /// Reads all playlists from the library.
    func read(_ reply: @escaping (Result<[Entry], Failure>) -> Void) {
        isKnown = true
        ask("Collections", [.string("playlist"), .properties([]), .uint32(0), .uint32(Self.limit)]) {
            [weak self] answer in
            guard let self else { return }
            reply(answer.map { self.learn($0) })
        }
    }

    /// The items of a playlist, in the form of `LoadItems`.
    func items(of id: UInt64, _ reply: @escaping (Result<[Value], Failure>) -> Void) {
        ask("Uris", [.properties([("playlist", .uint64(id))]), .uint32(0)]) { answer in
            reply(answer.map { $0.first?.arrayValue ?? [] })
        }
    }

    private func learn(_ values: [Value]) -> [Entry] {
        let rows = values.count == 2 ? (values[1].arrayValue ?? []).compactMap(\.asProperties) : []
        let new = rows.map { Entry(id: $0["id"]?.uint64Value ?? 0, name: $0["title"]?.stringValue ?? "") }
        let names = Dictionary(entries.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
        let isNew = new != entries
        entries = new
        if isNew { onChanged(new.filter { entry in names[entry.id].map { $0 != entry.name } ?? false }) }
        return new
    }

    // MARK: The library

    private func ask(
        _ member: String, _ arguments: [Value], _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        open { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let failure): reply(.failure(failure))
            case .success(let place): call(place, member, arguments, reply)
            }
        }
    }

    private func call(
        _ place: String, _ member: String, _ arguments: [Value],
        _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        connection.call(
            place, PluginKind.library.objectPath, PluginKind.library.interface, member, arguments,
            timeout: Self.patience, reply)
    }

    private func open(_ reply: @escaping (Result<String, Failure>) -> Void) {
        let opener: Connection
        do throws(Failure) {
            if let open = self.opener { opener = open } else { opener = try connect() }
        } catch {
            return reply(.failure(error))
        }
        self.opener = opener
        closing.arm(after: Self.keepTime)
        opener.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Open",
            [.string(PluginKind.library.word), .string("file:///")], timeout: Self.startTime
        ) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): reply(.failure(failure))
            case .success(let values):
                connection.askBus("GetNameOwner", [values.first ?? .string("")]) { [weak self] answer in
                    guard let self else { return }
                    switch answer {
                    case .failure(let failure): reply(.failure(failure))
                    case .success(let values):
                        let place = values.first?.stringValue ?? ""
                        follow(place)
                        reply(.success(place))
                    }
                }
            }
        }
    }

    /// Reads again after changes, as long as that library runs.
    private func follow(_ place: String) {
        guard self.place != place else { return }
        self.place = place
        subscription = connection.subscribe(
            path: PluginKind.library.objectPath, interface: PluginKind.library.interface, member: "Changed",
            sender: place
        ) { [weak self] _ in
            self?.call(
                place, "Collections", [.string("playlist"), .properties([]), .uint32(0), .uint32(Self.limit)]
            ) { [weak self] answer in if let values = try? answer.get() { _ = self?.learn(values) } }
        }
    }
}
