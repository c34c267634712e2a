import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// `sessionctl camera controls`.
struct CameraControlsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "controls", abstract: "List what can be set of a camera, and what is set.",
        discussion:
            "What a camera can depends on its driver: focus, exposure, white balance, stabilization and a light.")

    @Option(help: "The camera: its id, its position (front, back, external) or its name; default: the first one.")
    var device: String?
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try CameraPlace(Service(bus))
        let fields = try place.fields(of: place.camera(device))
        let values = fields["control-values"]?.asProperties ?? [:]
        var table = Table()
        table.addHeader(["CONTROL", "VALUE", "POSSIBLE"])
        for (name, ability) in (fields["controls"]?.asProperties ?? [:]).sorted(by: { $0.key < $1.key }) {
            table.add([
                Table.Cell(name.escaped, .strong), Table.Cell(Self.text(values[name])),
                Table.Cell(Self.possible(ability), .dim),
            ])
        }
        Output.write(table)
    }

    /// A number with at most four places behind the point, or a word.
    fileprivate static func text(_ value: Value?) -> String {
        guard let value else { return "" }
        guard let number = value.doubleValue else { return value.stringValue?.escaped ?? "" }
        let rounded = (number * 10_000).rounded() / 10_000
        return rounded == rounded.rounded() && abs(rounded) < 1e9 ? "\(Int(rounded))" : "\(rounded)"
    }

    private static func possible(_ ability: Value) -> String {
        if let ends = ability.structureValue, ends.count == 2 { return "\(text(ends[0])) to \(text(ends[1]))" }
        return (ability.arrayValue ?? []).compactMap(\.stringValue).map(\.escaped).joined(separator: ", ")
    }
}

/// `sessionctl camera set`.
struct CameraSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Set a control of a camera.",
        discussion: """
            'camera controls' lists them. What is set stays, also for other programs; the light (torch) goes out when this command \
            ends, with ctrl-C.
            """)

    @Argument(help: "The control, such as focus.")
    var control: String
    @Argument(help: "The value: a number or a word.")
    var value: String
    @Option(help: "The camera: its id, its position (front, back, external) or its name; default: the first one.")
    var device: String?
    @OptionGroup var bus: BusOptions

    func run() throws {
        guard control != CaptureControl.zoom.rawValue, control != CaptureControl.flash.rawValue else {
            throw Complaint.usage(
                "the \(control) belongs to a photo or a film: see the option --\(control) of 'camera photo'")
        }
        let service = try Service(bus)
        let place = try CameraPlace(service)
        let camera = try place.camera(device)
        let session = try place.createSession([])
        try place.ask(session, "AddInput", [.string(camera), .properties([])])
        try place.ask(session, "LockForConfiguration", [.string(camera)])
        let setting = Double(value).map { Value.double($0) } ?? .string(value)
        // The light goes out with the session, which ends with this process.
        let isLight = control == CaptureControl.torch.rawValue && Double(value) != 0
        let loop = service.loop
        let signals = (isLight ? [SIGINT, SIGTERM, SIGHUP] : []).map { number in
            loop.watch(signal: number) { loop.quit(0) }
        }
        try place.ask(session, "SetControl", [.string(camera), .string(control), .variant(setting)])
        let values = try place.fields(of: camera)["control-values"]?.asProperties ?? [:]
        let text = values[control].map { CameraControlsCommand.text($0) } ?? value.escaped
        Output.line("\(control.escaped) \(text)")
        guard isLight else { return }
        let gone = service.connection.watchName(place.place) { loop.quit(1) }
        let code = loop.run()
        withExtendedLifetime((signals, gone)) {}
        guard code == 0 else { throw Complaint.refused("\(place.kind.program) ended unexpectedly") }
    }
}

extension CameraPlace {
    /// Switches the light of the camera of a session on, or off.
    /// - Parameter failed: called with the reason if it cannot.
    func toggleLight(of session: String, failed: @escaping (Failure) -> Void) {
        func call(_ member: String, _ arguments: [Value], _ then: @escaping () -> Void) {
            service.connection.call(
                place, session, Self.session, member, arguments, timeout: Service.timeout
            ) { answer in
                if case .failure(let failure) = answer { failed(failure) }
                then()
            }
        }
        service.connection.call(
            place, session, StandardName.properties, "GetAll", [.string(Self.session)], timeout: Service.timeout
        ) { answer in
            let fields = (try? answer.get())?.first?.asProperties ?? [:]
            let inputs = (fields["Inputs"]?.arrayValue ?? []).compactMap(\.asProperties)
            let camera = inputs.first { $0["media"]?.stringValue == "video" }?["device"] ?? .string("")
            let level = fields["Controls"]?.asProperties?[CaptureControl.torch.rawValue]?.doubleValue ?? 0
            let setting = Value.variant(.double(level > 0 ? 0 : 1))
            call("LockForConfiguration", [camera]) {
                call("SetControl", [camera, .string(CaptureControl.torch.rawValue), setting]) {
                    call("UnlockForConfiguration", [camera]) {}
                }
            }
        }
    }
}
