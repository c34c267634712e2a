import DBus
import PluginAPI
import SessionBus

/// A job of a plugin, as the plugin lists it.
struct JobInfo {
    /// The unique name of the plugin's connection.
    let place: String
    let path: String
    private let entries: [DictionaryEntry]
    private let properties: [String: Value]

    init?(place: String, path: String, _ value: Value) {
        guard let properties = value.asProperties, let entries = value.dictionaryValue else { return nil }
        (self.place, self.path, self.entries, self.properties) = (place, path, entries, properties)
    }

    subscript(_ property: String) -> Value? { properties[property] }

    /// Its path without the common start: `assets/3`.
    var label: String { Self.label(of: path) }

    static func label(of path: String) -> String {
        let parts = path.split(separator: "/")
        return parts.count == 5 && parts[3] == "job" ? "\(parts[2])/\(parts[4])" : path
    }

    var name: String { properties["Name"]?.stringValue ?? "" }
    var state: String { properties["State"]?.stringValue ?? "" }
    var isOver: Bool { ["finished", "failed", "cancelled"].contains(state) }

    /// All properties with the place of the job, for JSON.
    var raw: Value {
        let place: [DictionaryEntry] = [
            .init(key: .string("bus-name"), value: .variant(.string(self.place))),
            .init(key: .string("path"), value: .variant(.objectPath(path))),
        ]
        return .dictionary(key: "s", value: "v", place + entries)
    }

    /// Old jobs first.
    fileprivate var order: (String, UInt64) {
        (String(path.reversed().drop { $0 != "/" }), path.split(separator: "/").last.flatMap { UInt64($0) } ?? 0)
    }
}

extension Service {
    /// The jobs of all plugins on the bus.
    func jobs() throws -> [JobInfo] {
        let places = try jobPlaces()
        guard !places.isEmpty else { return [] }
        return try wait { reply in
            var found: [JobInfo] = []
            var left = places.count
            for place in places {
                connection.call(
                    place, ObjectPath.root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", [],
                    timeout: Self.timeout
                ) { answer in
                    // A plugin without jobs has no such object, and a plugin may have ended meanwhile.
                    for object in (try? answer.get())?.first?.dictionaryValue ?? [] {
                        guard let path = object.key.objectPathValue else { continue }
                        for entry in object.value.dictionaryValue ?? [] where entry.key.stringValue == BusName.job {
                            if let job = JobInfo(place: place, path: path, entry.value) { found.append(job) }
                        }
                    }
                    left -= 1
                    if left == 0 { reply(.success(found.sorted { $0.order < $1.order })) }
                }
            }
        }
    }

    /// The connections of plugins: those with the bus names of our kinds, and those that the daemon lists.
    private func jobPlaces() throws -> [String] {
        do throws(Failure) {
            let all = try connection.askBusAndWait("ListNames", timeout: Self.timeout).first?.stringsValue ?? []
            var names = all.filter { name in PluginKind.all.contains { name.hasPrefix($0.busName + ".instance") } }
            if all.contains(BusName.service) {
                let plugins = try? connection.callAndWait(
                    BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: Self.timeout)
                let rows = (plugins?.first?.arrayValue ?? []).compactMap(\.asProperties)
                names += rows.compactMap { $0["bus-name"]?.stringValue }.filter { !$0.isEmpty }
            }
            var places: [String] = []
            for name in names {
                let owner = name.hasPrefix(":") ? name : owner(of: name)
                if let owner, !places.contains(owner) { places.append(owner) }
            }
            return places
        } catch {
            throw complaint(error)
        }
    }

    private func owner(of name: String) -> String? {
        (try? connection.askBusAndWait("GetNameOwner", [.string(name)], timeout: Self.timeout))?.first?.stringValue
    }
}

extension [JobInfo] {
    /// Finds a job by its label, path, number or name.
    func chosen(by text: String) throws -> JobInfo {
        for matches in [
            filter { $0.label == text || $0.path == text }, filter { $0.path.hasSuffix("/job/\(text)") },
            filter { $0.name == text },
        ] where !matches.isEmpty {
            if matches.count == 1 { return matches[0] }
            let running = matches.filter { !$0.isOver }
            if running.count == 1 { return running[0] }
            let list = matches.map { "  \($0.label)  \($0.state.escaped)  \($0.name.escaped)" }.joined(separator: "\n")
            throw Complaint.refused("several jobs match '\(text.escaped)'; nothing was done:\n\(list)")
        }
        throw Complaint.refused("there is no job '\(text.escaped)'; see 'sessionctl jobs'")
    }
}
