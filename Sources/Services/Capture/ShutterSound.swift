import DBus
import Glibc
import PluginAPI
import Processes
import SessionBus

/// The sound of a shutter, by the plugin for sound effects: its session is ambient, so the silent switch mutes it.
///
/// Nothing waits for it. If it cannot be played, that is told once, and photos are taken without it.
final class ShutterSound {
    private let connection: Connection
    private let complain: (String) -> Void
    private var place: (name: String, effect: UInt32)?
    private var watch: Subscription?
    private var isLoading = false
    /// Photos that were taken while it was loaded: they are heard as one.
    private var isWanted = false
    private var isTold = false

    init(on connection: Connection, complain: @escaping (String) -> Void) {
        (self.connection, self.complain) = (connection, complain)
    }

    /// Loads it, so that it is heard at once.
    func prepare() {
        guard place == nil, !isLoading else { return }
        guard let file = Self.file else {
            return fail("no file '\(Self.name)' is in the sound themes: install sound-theme-freedesktop")
        }
        isLoading = true
        connection.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Open",
            [.string(PluginKind.soundEffects.word), .string("file:///")], timeout: 20
        ) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): fail(failure.message)
            case .success(let values): load(file, values.first?.stringValue ?? "")
            }
        }
    }

    func play() {
        guard let place else {
            isWanted = true
            return prepare()
        }
        connection.call(
            place.name, PluginKind.soundEffects.objectPath, PluginKind.soundEffects.interface, "Play",
            [.uint32(place.effect)],
            timeout: 5
        ) { [weak self] answer in
            if case .failure(let failure) = answer { self?.fail(failure.message) }
        }
    }

    private func load(_ file: String, _ name: String) {
        watch = connection.watchName(name) { [weak self] in
            self?.place = nil
            self?.watch = nil
        }
        connection.call(
            name, PluginKind.soundEffects.objectPath, PluginKind.soundEffects.interface, "Load", [.string(file)],
            timeout: 10
        ) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): fail(failure.message)
            case .success(let values):
                isLoading = false
                place = (name, values.first?.uint32Value ?? 0)
                if isWanted { play() }
                isWanted = false
            }
        }
    }

    private func fail(_ reason: String) {
        (isLoading, isWanted) = (false, false)
        if !isTold { complain("the sound of the shutter cannot be played: \(reason)") }
        isTold = true
    }

    private static let name = "camera-shutter"

    /// In the theme that every desktop has (Sound Theme Specification).
    private static var file: String? {
        let folders =
            [UserFolder.data.path].compactMap(\.self)
            + (getenv("XDG_DATA_DIRS").map { String(cString: $0) } ?? "/usr/local/share:/usr/share").split(
                separator: ":"
            ).map(String.init)
        for folder in folders {
            for ending in ["oga", "ogg", "wav"] {
                let path = "\(folder)/sounds/freedesktop/stereo/\(name).\(ending)"
                if access(path, R_OK) == 0 { return path }
            }
        }
        return nil
    }
}
