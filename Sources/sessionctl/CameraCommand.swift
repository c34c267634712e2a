import ArgumentParser
import DBus
import EventLoop
import PluginAPI
import SessionBus

/// `sessionctl camera`.
struct CameraCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "camera", abstract: "List cameras, show them, take photos, and record films that survive a call.",
        subcommands: [
            CameraListCommand.self, CameraPhotoCommand.self, CameraRecordCommand.self, CameraPreviewCommand.self,
            CameraFramesCommand.self, CameraControlsCommand.self, CameraSetCommand.self,
        ],
        defaultSubcommand: CameraListCommand.self)
}

/// The plugin for cameras.
final class CameraPlace: PluginPlace {
    /// Seconds for a camera to send its first picture.
    static let opening = 30.0
    /// The same if the desktop asks the user first, who has a minute.
    static let starting = 90.0

    init(_ service: Service) throws { try super.init(.capture, for: "file:///", "cameras", service) }

    func devices() throws -> [Value] { try ask("Devices", [.properties([])]).first?.arrayValue ?? [] }

    /// The fields of a camera.
    func fields(of camera: String) throws -> [String: Value] {
        try devices().compactMap(\.asProperties).first { $0["id"]?.stringValue == camera } ?? [:]
    }

    /// A camera by its id, its position or its name; nil: the first one.
    func camera(_ text: String?) throws -> String {
        let cameras = try devices().compactMap(\.asProperties).filter { $0["media"]?.stringValue == "video" }
        guard !cameras.isEmpty else {
            throw Complaint.refused(
                "there is no camera; with PipeWire, the package gstreamer1.0-pipewire must be installed")
        }
        guard let text else { return cameras[0]["id"]?.stringValue ?? "" }
        for key in ["id", "position", "name"] {
            if let found = cameras.first(where: { $0[key]?.stringValue == text }) {
                return found["id"]?.stringValue ?? ""
            }
        }
        throw Complaint.refused("there is no camera '\(text.escaped)'; see 'sessionctl camera list'")
    }

    /// Creates a capture session; it ends with this process.
    func createSession(_ options: [(String, Value)]) throws -> String {
        try ask("CreateSession", [.string("sessionctl camera"), .properties(options)]).first?.objectPathValue ?? "/"
    }

    /// Calls a method of a capture session, and waits for the answer.
    @discardableResult
    func ask(_ session: String, _ member: String, _ arguments: [Value] = []) throws -> [Value] {
        try service.wait { reply in
            service.connection.call(
                place, session, Self.session, member, arguments, timeout: Self.timeout(of: member), reply)
        }
    }

    /// Seconds for the answer to a method of a capture session.
    static func timeout(of member: String) -> Double { member == "StartRunning" ? starting : opening }

    func set(_ session: String, _ property: String, _ value: Value) throws {
        let _: [Value] = try service.wait { reply in
            service.connection.call(
                place, session, StandardName.properties, "Set",
                [.string(Self.session), .string(property), .variant(value)], timeout: Service.timeout, reply)
        }
    }

    static let session = BusName.captureSession
}

/// `sessionctl camera list`.
struct CameraListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the cameras and microphones, and who uses them.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let devices = try CameraPlace(Service(bus)).devices()
        if output.json { return Output.line(JSON.object(.cameras, [("Devices", .array(of: "a{sv}", devices))])) }
        var table = Table()
        let fields = devices.compactMap(\.asProperties)
        if !fields.contains(where: { $0["media"]?.stringValue == "video" }) {
            table.add([Table.Cell("No cameras.", .dim)])
        }
        if !fields.isEmpty { table.addHeader(["KIND", "POSITION", "NAME", "LARGEST", "USED BY", "ID"]) }
        for device in fields {
            func text(_ key: String) -> String { device[key]?.stringValue?.escaped ?? "" }
            let isCamera = text("media") == "video"
            table.add([
                Table.Cell(isCamera ? "camera" : "microphone"),
                Table.Cell(isCamera && text("position") != "unspecified" ? text("position") : ""),
                Table.Cell(text("name"), .strong), Table.Cell(Self.largest(device["formats"])),
                Table.Cell(text("in-use-by"), .warning), Table.Cell(text("id"), .dim),
            ])
        }
        Output.write(table)
    }

    /// The largest format, such as `1280x720, 30/s`.
    private static func largest(_ formats: Value?) -> String {
        let all = (formats?.arrayValue ?? []).compactMap { format -> (size: UInt32, text: String)? in
            guard let fields = format.structureValue, fields.count == 5, let width = fields[0].uint32Value,
                let height = fields[1].uint32Value, let numerator = fields[2].uint32Value,
                let denominator = fields[3].uint32Value, denominator > 0
            else { return nil }
            let rate = Wording.whole((Double(numerator) / Double(denominator)).rounded(), 0...1_000)
            return (width &* height, "\(width)x\(height), \(rate)/s")
        }
        return all.max { $0.size < $1.size }?.text ?? ""
    }
}

/// The camera of a command, and the size of the pictures.
struct CameraOptions: ParsableArguments {
    @Option(help: "The camera: its id, its position (front, back, external) or its name; default: the first one.")
    var device: String?
    @Option(
        help: ArgumentHelp(
            "The size: low, medium, high (default), photo, 640x480, 960x540, 1280x720, 1920x1080, 3840x2160 or input-priority.",
            valueName: "preset"))
    var preset: String?
    @Option(help: "Show a part of the picture, enlarged: from 1 (all of it) to 8.")
    var zoom: Double?

    func validate() throws {
        if let zoom, !(1...8).contains(zoom) { throw ValidationError("--zoom needs a number from 1 to 8") }
    }
}

/// `sessionctl camera photo`.
struct CameraPhotoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "photo", abstract: "Take a photo.",
        discussion: "Without a file, the photo goes to the folder for pictures.")

    @Argument(help: "The file, which ends in .jpg or .png.", completion: .file())
    var file: String?
    @Option(help: "How the camera is held: degrees clockwise by which the photo must be turned: 0, 90, 180 or 270.")
    var orientation: UInt32?
    @Option(help: "Take that many photos, one directly after the other, up to 20. Their names get a number.")
    var burst: UInt32?
    @Flag(help: "Switch the light of the camera on for the photo.")
    var flash = false
    @Flag(help: "Also play the sound of a shutter, unless the silent switch is on.")
    var shutterSound = false
    @Flag(help: "Replace an existing file.")
    var overwrite = false
    @OptionGroup var camera: CameraOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let path = try file.map { try FileArgument.path($0) } ?? ""
        let place = try CameraPlace(service)
        let session = try place.open(camera)
        let sound: [(String, Value)] = shutterSound ? [("shutter-sound", .bool(true))] : []
        try place.ask(session, "AddOutput", [.string("photo"), .properties(sound)])
        try place.ask(session, "StartRunning")
        var options: [(String, Value)] = [("overwrite", .bool(overwrite))]
        if let orientation { options.append(("orientation", .uint32(orientation))) }
        if let burst { options.append(("burst", .uint32(burst))) }
        if flash { options.append(("flash", .string("on"))) }
        let count = Int(burst ?? 1)
        var saved: [(path: String, error: String)] = []
        let subscription = service.connection.subscribe(
            path: session, interface: CameraPlace.session, member: "DidCapturePhoto", sender: place.place
        ) { message in
            guard let values = try? message.arguments(), values.count == 3 else { return }
            saved.append((values[1].stringValue ?? "", values[2].stringValue ?? ""))
        }
        try place.ask(session, "CapturePhoto", [.string(path), .properties(options)])
        _ = withExtendedLifetime(subscription) {
            service.loop.iterate(timeout: CameraPlace.opening) { saved.count >= count }
        }
        for photo in saved where photo.error.isEmpty { Output.line(photo.path.escaped) }
        if let failed = saved.first(where: { !$0.error.isEmpty }) { throw Complaint.refused(failed.error.escaped) }
        guard saved.count >= count else {
            throw Complaint.refused("the camera has not saved the \(count > 1 ? "photos" : "photo") in time")
        }
        try place.ask(session, "StopRunning")
    }
}
