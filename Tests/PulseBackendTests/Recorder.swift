import EventLoop
import PluginAPI

/// Everything that an adapter reported, in order.
final class Recorder {
    enum Told: Equatable {
        case lost
        case reset
        case route(RouteChangeReason, from: [String], to: [String])
        case ports
        case streams
        case inputMute(Bool)
        case volume(Double)
    }

    private(set) var all: [Told] = []
    private(set) var routes: [(reason: RouteChangeReason, previous: Route, current: Route)] = []

    init(_ backend: any AudioBackend) {
        backend.onServicesLost = { [unowned self] in all.append(.lost) }
        backend.onServicesReset = { [unowned self] in all.append(.reset) }
        backend.onRouteChanged = { [unowned self] in
            routes.append(($0, $1, $2))
            all.append(.route($0, from: Recorder.uids($1), to: Recorder.uids($2)))
        }
        backend.onPortsChanged = { [unowned self] in all.append(.ports) }
        backend.onStreamsChanged = { [unowned self] in all.append(.streams) }
        backend.onInputMuteChanged = { [unowned self] in all.append(.inputMute($0)) }
        backend.onOutputVolumeChanged = { [unowned self] in all.append(.volume($0)) }
    }

    var changes: [Told] { all.filter { if case .route = $0 { true } else { false } } }

    func count(_ told: Told) -> Int { all.filter { $0 == told }.count }

    func clear() {
        all = []
        routes = []
    }

    static func uids(_ route: Route) -> [String] { (route.inputs + route.outputs).map(\.uid) }
}
