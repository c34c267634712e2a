public import DBus
import PluginAPI
import SessionBus

/// Lets the user pick items of the music library (MPMediaPickerController).
///
///     var picker = MediaPicker(mediaTypes: [.music])
///     picker.allowsPickingMultipleItems = true
///     if let songs = try await picker.pick() { try await player.setQueue(with: songs) }
///
/// A plugin of the kind `media-picker` shows a window. If there is none, `sessionctl library pick` shows a list on the
/// terminal of this program.
public struct MediaPicker: Sendable {
    /// Empty: all types.
    public var mediaTypes: Set<MediaItem.MediaType>
    public var allowsPickingMultipleItems = false
    /// The text above the list; nil: a default text.
    public var prompt: String?
    private let bus: BusAddress

    /// - Parameter bus: the bus of the daemon.
    public init(mediaTypes: Set<MediaItem.MediaType> = [], bus: BusAddress = .session) {
        (self.mediaTypes, self.bus) = (mediaTypes, bus)
    }

    /// How the pick ended.
    private enum Outcome: Sendable {
        case picked(MediaQuery.Picked)
        case cancelled
        case failed(SessionError)
    }

    /// Waits until the user has picked items or cancelled.
    /// - Returns: the items in the order in which they were picked; nil: cancelled by the user, because the library
    ///   ended, or because this task was cancelled.
    /// - Throws: `ResourceNotAvailable` if there is neither a picker nor a terminal.
    public func pick() async throws(SessionError) -> MediaItemCollection? {
        let library = MediaLibrary(bus: bus)
        let changes = try await library.subscribe()
        let window = PluginClient(.mediaPicker, on: bus, .shared(uri: ""))
        var terminal: TerminalPick?
        do throws(SessionError) {
            try await window.found()
        } catch {
            guard error.code == .resourceNotAvailable else { throw error }
            terminal = try TerminalPick(arguments, bus)
        }
        let outcome = await withTaskGroup(of: Outcome.self) { [terminal] group in
            group.addTask {
                do throws(SessionError) {
                    guard let terminal else { return try await ask(window) }
                    return try await terminal.uris.map { .picked(.uris($0)) } ?? .cancelled
                } catch {
                    return .failed(error)
                }
            }
            group.addTask {
                // The sequence ends when this task is cancelled.
                for await change in changes where change == .unavailable { break }
                return .cancelled
            }
            let outcome = await group.next() ?? .cancelled
            // A picker that is still shown is closed: it is cancelled when its caller leaves the bus.
            await terminal?.cancel()
            await window.close()
            group.cancelAll()
            return outcome
        }
        switch outcome {
        case .cancelled: return nil
        case .failed(let error): throw error
        case .picked(let picked):
            var items: [MediaItem] = []
            for query in picked.queries {
                items += try await library.page(query, offset: 0, max: 1).items
            }
            return MediaItemCollection(items: items)
        }
    }

    private func ask(_ window: PluginClient) async throws(SessionError) -> Outcome {
        var options: [(String, Value)] = [
            ("media-types", .strings(mediaTypes.map(\.rawValue).sorted())),
            ("several", .bool(allowsPickingMultipleItems)),
        ]
        if let prompt { options.append(("prompt", .string(prompt))) }
        let answer = try await window.ask("Pick", [.properties(options)], timeout: .infinity)
        let ids = answer.count == 2 ? answer[1].arrayValue?.compactMap(\.uint64Value) ?? [] : []
        return answer.first?.boolValue == true && !ids.isEmpty ? .picked(.ids(ids)) : .cancelled
    }

    /// The arguments of `sessionctl library`.
    private var arguments: [String] {
        var arguments = ["library", "pick"]
        if allowsPickingMultipleItems { arguments.append("--several") }
        if !mediaTypes.isEmpty {
            arguments += ["--media-type", mediaTypes.map(\.rawValue).sorted().joined(separator: ",")]
        }
        if let prompt { arguments += ["--prompt=" + prompt] }
        return arguments
    }
}

extension MediaQuery {
    /// The result of a picker.
    enum Picked: Sendable {
        case ids([UInt64])
        case uris([String])

        /// A query for each item.
        var queries: [MediaQuery] {
            switch self {
            case .ids(let ids): ids.map { MediaQuery().filter(.persistentID, is: $0) }
            case .uris(let uris): uris.map { MediaQuery().filter(.assetURL, is: $0) }
            }
        }
    }
}

extension PluginKind {
    /// This package has no plugin of this kind; a desktop provides one.
    static let mediaPicker = PluginKind(
        word: "media-picker", id: "org.sessiond1.picker", program: "", interfaces: ["org.sessiond1.MediaPicker"],
        objectPath: "/org/sessiond1/media_picker", busName: "org.sessiond1.MediaPicker", sessions: .none, item: "",
        action: "Lets the user pick items of the music library")
}
