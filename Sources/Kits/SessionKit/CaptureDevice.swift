public import DBus
public import PluginAPI
import SessionBus

/// A camera or a microphone (AVCaptureDevice).
///
///     let front = try await CaptureDevice.default(for: .video, position: .front)
///
/// The plugin for cameras (`sessiond-capture`) finds them, through PipeWire or V4L2.
public struct CaptureDevice: Sendable, Hashable, Identifiable {
    public typealias MediaType = CaptureMediaType
    public typealias Position = CapturePosition

    public struct Format: Sendable, Hashable {
        public let size: PictureSize
        /// Pictures per second.
        public let frameRate: Double
        /// GStreamer's name of the pixels, such as `YUY2`, or `JPEG`.
        public let pixels: String
    }

    /// The same after a restart of the machine. `default` is the microphone that the route chooses.
    public let id: String
    /// For display.
    public let localizedName: String
    public let mediaType: MediaType
    public let position: Position
    /// The names of the capture sessions that use it now, of all programs; empty: none.
    public let inUseBy: String
    /// Of a camera.
    public let formats: [Format]
    /// What a session with this camera can have; none for a microphone.
    public let presets: Set<CaptureSession.Preset>
    /// What can be set of a camera, as ``CaptureSession/set(_:to:of:)`` takes it, and what is set now. A camera whose
    /// driver does not answer has only a zoom.
    public let controls: [Control: Ability]
    public let controlValues: [Control: Setting]

    public typealias Control = CaptureControl

    public enum Ability: Sendable, Hashable {
        case range(ClosedRange<Double>)
        case words([String])
    }

    public enum Setting: Sendable, Hashable {
        case number(Double)
        case word(String)

        init?(_ value: Value) {
            if let number = value.doubleValue {
                self = .number(number)
            } else if let word = value.stringValue {
                self = .word(word)
            } else {
                return nil
            }
        }

        var value: Value {
            switch self {
            case .number(let number): .double(number)
            case .word(let word): .string(word)
            }
        }
    }

    /// Finds devices (AVCaptureDevice.DiscoverySession).
    public struct DiscoverySession: Sendable {
        /// Of all media types if nil.
        public var mediaType: MediaType?
        /// At all positions if nil.
        public var position: Position?
        private let bus: BusAddress

        /// - Parameter bus: where sessiond is.
        public init(mediaType: MediaType? = nil, position: Position? = nil, on bus: BusAddress = .session) {
            (self.mediaType, self.position, self.bus) = (mediaType, position, bus)
        }

        /// Those that are there now.
        /// - Throws: `ResourceNotAvailable` if the plugin is not installed.
        public var devices: [CaptureDevice] {
            get async throws(SessionError) {
                let client = PluginClient(.capture, on: bus, CaptureSession.plugin)
                var filter: [(String, Value)] = []
                if let mediaType { filter.append(("media", .string(mediaType.rawValue))) }
                if let position { filter.append(("position", .string(position.rawValue))) }
                let answer = try await client.ask("Devices", [.properties(filter)])
                await client.close()
                return (answer.first?.arrayValue ?? []).compactMap { CaptureDevice($0) }
            }
        }
    }

    /// The first device of a type, at a position if one is given; for sound, the microphone that the route chooses. Nil: there
    /// is none.
    public static func `default`(
        for mediaType: MediaType, position: Position? = nil, on bus: BusAddress = .session
    ) async throws(SessionError) -> CaptureDevice? {
        try await DiscoverySession(mediaType: mediaType, position: position, on: bus).devices.first
    }

    init?(_ value: Value) {
        guard let fields = value.asProperties, let id = fields["id"]?.stringValue,
            let mediaType = MediaType(rawValue: fields["media"]?.stringValue ?? "")
        else { return nil }
        (self.id, self.mediaType) = (id, mediaType)
        localizedName = fields["name"]?.stringValue ?? id
        position = Position(rawValue: fields["position"]?.stringValue ?? "") ?? .unspecified
        inUseBy = fields["in-use-by"]?.stringValue ?? ""
        controls = Self.named(fields["controls"]) { value in
            if let ends = value.structureValue?.compactMap(\.doubleValue), ends.count == 2, ends[0] <= ends[1] {
                return .range(ends[0]...ends[1])
            }
            return value.arrayValue.map { .words($0.compactMap(\.stringValue)) }
        }
        controlValues = Self.named(fields["control-values"]) { Setting($0) }
        formats = (fields["formats"]?.arrayValue ?? []).compactMap { format in
            guard let parts = format.structureValue, parts.count == 5, let width = parts[0].uint32Value,
                let height = parts[1].uint32Value, let frames = parts[2].uint32Value,
                let seconds = parts[3].uint32Value, seconds > 0, let pixels = parts[4].stringValue
            else { return nil }
            return Format(
                size: PictureSize(width: Int(width), height: Int(height)), frameRate: Double(frames) / Double(seconds),
                pixels: pixels)
        }
        presets = Set((fields["presets"]?.stringsValue ?? []).compactMap(CaptureSession.Preset.init))
    }

    private static func named<Answer>(_ value: Value?, _ body: (Value) -> Answer?) -> [Control: Answer] {
        var all: [Control: Answer] = [:]
        for (name, value) in value?.asProperties ?? [:] {
            if let control = Control(rawValue: name), let answer = body(value) { all[control] = answer }
        }
        return all
    }
}
