import CameraBackend
import Capturing
import DBus
import PluginAPI
import PluginKit
import SessionBus

// `org.sessiond1.Capture`.
extension CapturePlugin {
    private static func method(
        _ name: String, _ signature: String, _ body: @escaping (CapturePlugin, Invocation) throws(Failure) -> Void
    ) -> Interface<CapturePlugin>.Method {
        .init(name, signature) { capture, call in
            do throws(Failure) {
                try body(capture, call)
            } catch {
                call.fail(error)
            }
        }
    }

    static let interface = Interface<CapturePlugin>(
        name: PluginKind.capture.interface, introspection: PluginXML.capture,
        methods: [
            method("Devices", "a{sv}") { (capture, call) throws(Failure) in
                try capture.callers.require(call.sender, to: "see cameras")
                let reader = try OptionReader(call.arguments[0], known: ["media", "position"])
                let media: CaptureMediaType? = try reader.word("media")
                let position: CapturePosition? = try reader.word("position")
                func answer(_ microphones: [CaptureSource]) {
                    let devices = (capture.cameras + microphones).filter { device in
                        (media == nil || device.media == media) && (position == nil || device.position == position)
                    }
                    let shown = devices.filter { $0.media == .video }
                    capture.readControls(of: shown) { [unowned capture] in
                        call.reply([.array(of: "a{sv}", devices.map { .properties(capture.fields($0)) })])
                    }
                }
                // Microphones are not the portal's.
                if media == .audio { return capture.microphones(answer) }
                capture.look { media == .video ? answer([]) : capture.microphones(answer) }
            },
            method("CreateSession", "sa{sv}") { (capture, call) throws(Failure) in
                try capture.callers.require(call.sender, to: "use a camera")
                let name = call.arguments[0].stringValue ?? ""
                guard !name.isEmpty, name.utf8.count <= 255 else {
                    throw Failure(.badParameter("the name of a session must have 1 to 255 bytes"))
                }
                let reader = try OptionReader(
                    call.arguments[1], known: ["category", "mode", "on-interruption", "desktop-entry"])
                var options = CaptureSession.Options()
                options.category = try reader.word("category") ?? .record
                options.mode = try reader.word("mode") ?? (options.category.hasInput ? .videoRecording : .default)
                options.onInterruption = try reader.word("on-interruption")
                options.desktopEntry = try reader.string("desktop-entry") ?? ""
                guard options.category.hasInput else {
                    throw Failure(
                        .badParameter(
                            "the category '\(options.category.rawValue)' has no input: use record or play-and-record"))
                }
                do throws(SessionError) {
                    _ = try Configuration(category: options.category.rawValue, mode: options.mode.rawValue, options: [])
                } catch {
                    throw Failure(error)
                }
                call.reply([.objectPath(try capture.create(name, options, for: call.sender).path)])
            },
            method("ListSessions", "") { (capture, call) throws(Failure) in
                let sessions = capture.sessions.values.sorted { $0.number < $1.number }
                call.reply([
                    .array(
                        of: "a{sv}",
                        sessions.map { session in
                            var fields = CaptureSession.properties.map { ($0.name, $0.get(session)) }
                            fields.append(("path", .objectPath(session.path)))
                            return .properties(fields)
                        })
                ])
            },
        ])

    func fields(_ device: CaptureSource) -> [(String, Value)] {
        [
            ("id", .string(device.id)), ("name", .string(device.name)), ("media", .string(device.media.rawValue)),
            ("position", .string(device.position.rawValue)),
            ("in-use-by", .string(users(of: device).joined(separator: ", "))),
            ("presets", .strings(device.presets.map(\.rawValue))),
            (
                "formats",
                .array(
                    of: "(uuuus)",
                    device.formats.map { format in
                        .structure([
                            .uint32(UInt32(format.width)), .uint32(UInt32(format.height)),
                            .uint32(UInt32(format.rate.numerator)), .uint32(UInt32(format.rate.denominator)),
                            .string(format.pixels),
                        ])
                    })
            ),
            ("controls", .properties(device.media == .video ? abilities(of: device) : [])),
            ("control-values", .properties(device.media == .video ? hardware.controls(of: device.id).wire : [])),
        ]
    }

    private func abilities(of device: CaptureSource) -> [(String, Value)] {
        hardware.controls(of: device.id).abilities.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            control, ability in
            switch ability {
            case .range(let range):
                (control.rawValue, .structure([.double(range.lowerBound), .double(range.upperBound)]))
            case .words(let words): (control.rawValue, .strings(words))
            }
        }
    }
}

extension CaptureControls {
    /// What is set, by name.
    var wire: [(String, Value)] {
        values.sorted { $0.key.rawValue < $1.key.rawValue }.compactMap { control, setting in
            switch setting {
            case .number(let number): (control.rawValue, .double(number))
            case .word(let word): (control.rawValue, .string(word))
            case .other: nil
            }
        }
    }
}

extension CameraSetting {
    init(_ value: Value) {
        let value = value.unwrapped
        self = value.doubleValue.map { .number($0) } ?? value.stringValue.map { .word($0) } ?? .other
    }
}
