import DBus
import MediaValues
import PluginAPI
import SessionBus
import SessionKit

// `org.mpris.MediaPlayer2.TrackList`: the queue for desktops.

/// The last sent state of the track list.
struct TrackListTold {
    var revision: UInt64 = 0
    var ids: [UInt64] = []
    var metadata: (id: UInt64, value: Value)?
}

extension PlayerPlugin {
    private static let name = "org.mpris.MediaPlayer2.TrackList"
    /// More single changes than this are sent as a new list.
    private static let singleLimit = 16

    /// Sends the changes of the list since the last sent state.
    func tellTrackList() {
        let current = queue.currentID.map { (id: $0, value: metadata) }
        defer { trackListTold.metadata = current }
        guard trackListTold.revision != queue.revision else {
            if let current, let told = trackListTold.metadata, told.id == current.id, told.value != current.value {
                tell("TrackMetadataChanged", [.objectPath(trackPath(current.id)), current.value])
            }
            return
        }
        let (before, now, unchanged) = (trackListTold.ids, queue.ids, queue.takeUnchanged())
        (trackListTold.revision, trackListTold.ids) = (queue.revision, now)
        // What is the same at both ends did not change: in a long list an edit concerns a few items.
        let shorter = min(before.count, now.count)
        let start = min(unchanged.start, shorter)
        let end = min(unchanged.end, shorter - start)
        let (was, became) = (before[start..<before.count - end], now[start..<now.count - end])
        guard was != became else { return }
        emit("QueueChanged", [])
        // Only that it changed, without the new value: a list may be long.
        connection.objects.emit(
            path: PlayerPlugin.mprisPath, interface: StandardName.properties, member: "PropertiesChanged",
            [.string(PlayerPlugin.name), .properties([]), .strings(["Tracks"])])
        let (old, new) = (Set(was), Set(became))
        let added = became.filter { !old.contains($0) }
        let removed = was.filter { !new.contains($0) }
        // The lists are unrelated, or many items are new: send a new list.
        guard before.count > removed.count, added.count + removed.count <= PlayerPlugin.singleLimit,
            was.filter({ new.contains($0) }) == became.filter({ old.contains($0) })
        else {
            let currentPath = queue.currentID.map(trackPath) ?? PlayerPlugin.noTrack
            return tell("TrackListReplaced", [.objectPaths(now.map(trackPath)), .objectPath(currentPath)])
        }
        for id in removed { tell("TrackRemoved", [.objectPath(trackPath(id))]) }
        for id in added {
            guard let place = became.firstIndex(of: id), let item = queue[id] else { continue }
            let after = place > 0 ? trackPath(now[place - 1]) : PlayerPlugin.noTrack
            tell("TrackAdded", [metadata(of: item), .objectPath(after)])
        }
    }

    private func tell(_ member: String, _ arguments: [Value]) {
        connection.objects.emit(path: PlayerPlugin.mprisPath, interface: PlayerPlugin.name, member: member, arguments)
    }

    private func addTrack(_ uri: String, after path: String, isCurrent: Bool) throws(Failure) {
        // An item that is not in the list means the end, as the specification requires for a list that has changed.
        let place: UInt64?? = path == PlayerPlugin.noTrack ? .some(nil) : trackID(path).flatMap { queue[$0]?.id }
        let ids = try insert([PlaylistEntry(uri: uri)], after: place)
        if isCurrent, let id = ids.first { try go(to: id) }
    }

    static var trackListInterface: Interface<PlayerPlugin> {
        Interface(
            name: name, introspection: InterfaceXML.fragment(PackageResources.org_mpris_MediaPlayer2_TrackList_xml),
            methods: [
                .init("GetTracksMetadata", "ao") { player, call in
                    let items = (call.arguments[0].objectPathsValue ?? []).prefix(PlayQueue.limit)
                        .compactMap { player.trackID($0).flatMap { player.queue[$0] } }
                    call.reply([.array(of: "a{sv}", items.map(player.metadata(of:)))])
                },
                .init("AddTrack", "sob") { player, call in
                    call.answer { () throws(Failure) in
                        try player.addTrack(
                            call.arguments[0].stringValue ?? "", after: call.arguments[1].objectPathValue ?? "",
                            isCurrent: call.arguments[2].boolValue == true)
                    }
                },
                .init("RemoveTrack", "o") { player, call in
                    call.answer { () throws(Failure) in
                        // A missing item need not be removed.
                        guard let id = player.trackID(call.arguments[0].objectPathValue ?? ""),
                            player.queue[id] != nil
                        else { return }
                        try player.remove(id)
                    }
                },
                .init("GoTo", "o") { player, call in
                    call.answer { () throws(Failure) in
                        guard let id = player.trackID(call.arguments[0].objectPathValue ?? ""),
                            player.queue[id] != nil
                        else { return }
                        try player.go(to: id)
                    }
                },
            ],
            properties: [
                Interface<PlayerPlugin>.Property(
                    "Tracks", "ao", get: { player in .objectPaths(player.queue.ids.map(player.trackPath)) },
                    emitsChanged: false),
                Interface<PlayerPlugin>.Property("CanEditTracks", "b", get: { _ in .bool(true) }),
            ])
    }
}
