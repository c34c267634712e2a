import DBus
import EventLoop
import PluginAPI
import SessionBus

// `org.sessiond1.Recorder`.

extension RecorderPlugin {
    /// The object path.
    public static let objectPath = ObjectPath.recorder

    func export() -> [Announcement<RecorderPlugin>] {
        let objects = connection.objects
        objects.export(self, at: ObjectPath.recorder, interfaces: [RecorderPlugin.interface])
        return [
            Announcement(
                self, path: ObjectPath.recorder, interface: BusName.recorder, RecorderPlugin.properties, on: objects)
        ]
    }

    func emit(_ member: String, _ arguments: [Value]) {
        connection.objects.emit(path: ObjectPath.recorder, interface: BusName.recorder, member: member, arguments)
    }

    private static var properties: [Announcement<RecorderPlugin>.Property] {
        [
            .init("Path", "s", { .string($0.engine.path ?? "") }),
            .init("State", "s", { .string($0.state.rawValue) }),
            .init("DeviceTime", "d", isTold: false, { _ in .double(MonotonicClock.seconds) }),
            .init("Position", "d", isTold: false, { .double($0.engine.position) }),
            .init(
                "MeteringEnabled", "b", { .bool($0.engine.meteringEnabled) },
                set: { recorder, value throws(Failure) in
                    recorder.changing { recorder.engine.meteringEnabled = value.boolValue == true }
                }),
        ]
    }

    private static var interface: Interface<RecorderPlugin> {
        Interface(
            name: BusName.recorder, introspection: InterfaceXML.fragment(PackageResources.org_sessiond1_Recorder_xml),
            methods: [
                .init("Prepare", "sa{sv}") { recorder, call in
                    do throws(Failure) {
                        try recorder.requireFree(call.sender)
                        let settings = try RecordingSettings(call.arguments[1])
                        recorder.prepare(path: call.arguments[0].stringValue ?? "", settings: settings) {
                            call.answer($0)
                        }
                    } catch {
                        call.fail(error)
                    }
                },
                .init("Record", "") { recorder, call in recorder.record { call.answer($0) } },
                .init("RecordFor", "d") { recorder, call in
                    recorder.record(for: call.arguments[0].doubleValue ?? .nan) { call.answer($0) }
                },
                .init("RecordAt", "d") { recorder, call in
                    let time = call.arguments[0].doubleValue ?? .nan
                    guard time >= 0, time < 1e10 else {
                        return call.fail(
                            Failure(.badParameter("the time must be in seconds of CLOCK_MONOTONIC, not \(time)")))
                    }
                    recorder.record(at: MonotonicClock.microseconds(time)) { call.answer($0) }
                },
                .init("Pause", "") { recorder, call in
                    recorder.pause()
                    call.reply()
                },
                .init("Stop", "") { recorder, call in
                    recorder.stop()
                    call.reply()
                },
                .init("Delete", "") { recorder, call in
                    call.answer { () throws(Failure) in try recorder.delete() }
                },
                .init("Meters", "") { recorder, call in call.reply([Value(recorder.engine.meters())]) },
            ],
            properties: properties.map(\.exported))
    }
}

extension RecordingSettings {
    /// The settings of `Prepare`: an a{sv} of known keys, or an error that names the invalid one.
    init(_ dictionary: Value) throws(Failure) {
        let reader = try OptionReader(
            dictionary, known: ["format", "sample-rate", "channels", "bit-depth", "float", "quality"])
        self.init(
            format: try reader.word("format"),
            sampleRate: try reader.double("sample-rate"),
            channels: try reader.uint32("channels").map { Int($0) },
            bitDepth: try reader.uint32("bit-depth").map { Int($0) },
            isFloat: try reader.bool("float") ?? false,
            quality: try reader.word("quality") ?? .medium)
    }
}
