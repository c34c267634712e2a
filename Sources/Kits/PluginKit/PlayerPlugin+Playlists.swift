public import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus
import SessionKit

// `org.mpris.MediaPlayer2.Playlists`: the playlists of the music library, for desktops.

extension PlayerPlugin {
    private static let playlistsName = "org.mpris.MediaPlayer2.Playlists"

    /// Offers the playlists of the music library.
    /// - Parameter connect: creates another connection to the same bus.
    public func offerPlaylists(_ connect: @escaping () throws(Failure) -> Connection) {
        let shelf = PlaylistShelf(on: connection, connect)
        shelf.onChanged = { [unowned self] renamed in
            changing {}
            for entry in renamed { tellPlaylist("PlaylistChanged", [structure(entry)]) }
        }
        playlists = shelf
    }

    func announcementOfPlaylists() -> Announcement<PlayerPlugin> {
        Announcement(
            self, path: PlayerPlugin.mprisPath, interface: Self.playlistsName, Self.playlistProperties,
            on: connection.objects)
    }

    private func tellPlaylist(_ member: String, _ arguments: [Value]) {
        connection.objects.emit(path: PlayerPlugin.mprisPath, interface: Self.playlistsName, member: member, arguments)
    }

    private var prefix: String { "\(path)/playlist/" }

    private func structure(_ entry: PlaylistShelf.Entry) -> Value {
        .structure([.objectPath(prefix + String(entry.id)), .string(entry.name), .string("")])
    }

    private func id(_ path: String) -> UInt64? {
        guard path.hasPrefix(prefix), let id = UInt64(path.dropFirst(prefix.count)), prefix + String(id) == path else {
            return nil
        }
        return id
    }

    /// Loads its items, and plays them.
    private func activatePlaylist(_ path: String, _ reply: @escaping Reply) {
        guard let playlists, let id = id(path) else {
            return reply(.failure(Failure(.badParameter("\(quoted(path)): no such playlist"))))
        }
        playlists.read { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): reply(.failure(failure))
            case .success(let entries):
                guard let entry = entries.first(where: { $0.id == id }) else {
                    return reply(.failure(Failure(.badParameter("\(quoted(path)): no such playlist"))))
                }
                playlists.items(of: id) { [weak self] in self?.play($0, of: entry, reply) }
            }
        }
    }

    private func play(
        _ items: Result<[Value], Failure>, of entry: PlaylistShelf.Entry, _ reply: @escaping Reply
    ) {
        do throws(Failure) {
            var entries: [PlaylistEntry] = []
            for value in try items.get() { entries.append(try Self.entry(value)) }
            try load(entries)
        } catch {
            return reply(.failure(error))
        }
        changing { activePlaylist = entry }
        play(reply)
    }

    private func listPlaylists(_ call: Invocation) {
        guard let playlists else { return call.reply([.array(of: "(oss)", [])]) }
        let (index, max) = (Int(call.arguments[0].uint32Value ?? 0), Int(call.arguments[1].uint32Value ?? 0))
        let isReversed = call.arguments[3].boolValue == true
        playlists.read { answer in
            switch answer {
            case .failure(let failure): call.fail(failure)
            case .success(let entries):
                // Only this order is supported, so it is returned for every requested order.
                let ordered = isReversed ? entries.reversed() : entries
                call.reply([.array(of: "(oss)", ordered.dropFirst(index).prefix(max).map(self.structure))])
            }
        }
    }

    private static var playlistProperties: [Announcement<PlayerPlugin>.Property] {
        [
            .init("PlaylistCount", "u", { .uint32(UInt32(clamping: $0.playlists?.entries.count ?? 0)) }),
            .init("Orderings", "as", { _ in .strings(["Alphabetical"]) }),
            .init(
                "ActivePlaylist", "(b(oss))",
                { player in
                    guard let active = player.activePlaylist else {
                        return .structure([
                            .bool(false), .structure([.objectPath(ObjectPath.none), .string(""), .string("")]),
                        ])
                    }
                    let known = player.playlists?.entries.first { $0.id == active.id } ?? active
                    return .structure([.bool(true), player.structure(known)])
                }),
        ]
    }

    static var playlistsInterface: Interface<PlayerPlugin> {
        var properties = playlistProperties.map(\.exported)
        // A client that reads the number wants the playlists. The library is queried, and its answer is signalled as a
        // change.
        properties[0] = .init(
            "PlaylistCount", "u",
            get: { player in
                player.playlists?.wake()
                return .uint32(UInt32(clamping: player.playlists?.entries.count ?? 0))
            })
        return Interface(
            name: playlistsName,
            introspection: InterfaceXML.fragment(PackageResources.org_mpris_MediaPlayer2_Playlists_xml),
            methods: [
                .init("ActivatePlaylist", "o") { player, call in
                    player.activatePlaylist(call.arguments[0].objectPathValue ?? "") { call.answer($0) }
                },
                .init("GetPlaylists", "uusb") { player, call in player.listPlaylists(call) },
            ],
            properties: properties)
    }
}
