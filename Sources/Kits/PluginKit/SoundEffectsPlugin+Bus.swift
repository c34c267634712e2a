import DBus
import PluginAPI
import SessionBus

// `org.sessiond1.SoundEffects`.

extension SoundEffectsPlugin {
    /// The object path.
    public static let objectPath = ObjectPath.soundEffects

    func export() -> [Announcement<SoundEffectsPlugin>] {
        let objects = connection.objects
        objects.export(self, at: ObjectPath.soundEffects, interfaces: [SoundEffectsPlugin.interface])
        return [
            Announcement(
                self, path: ObjectPath.soundEffects, interface: BusName.soundEffects, SoundEffectsPlugin.properties,
                on: objects)
        ]
    }

    func emit(_ member: String, _ arguments: [Value]) {
        connection.objects.emit(
            path: ObjectPath.soundEffects, interface: BusName.soundEffects, member: member, arguments)
    }

    private static var properties: [Announcement<SoundEffectsPlugin>.Property] {
        [
            .init("Loaded", "u", { .uint32(UInt32(clamping: $0.loadedCount)) }),
            .init("Playing", "u", { .uint32(UInt32(clamping: $0.playingCount)) }),
        ]
    }

    private func play(for call: Invocation, isAlert: Bool) {
        play(call.arguments[0].uint32Value ?? 0) { [connection] result in
            switch result {
            case .success(let number):
                call.reply([.uint32(number)])
                if isAlert { SoundEffectsPlugin.buzz(connection) }
            case .failure(let failure): call.fail(failure)
            }
        }
    }

    /// Vibration without sound: feedbackd's quiet profile. Without feedbackd or a vibrating device, only the sound is
    /// played.
    private static func buzz(_ connection: Connection) {
        connection.call(
            "org.sigxcpu.Feedback", "/org/sigxcpu/Feedback", "org.sigxcpu.Feedback", "TriggerFeedback",
            [
                .string("sessiond-effects"), .string("message-new-instant"),
                .properties([("profile", .string("quiet"))]), .int32(-1),
            ]
        ) { _ in }
    }

    private static var interface: Interface<SoundEffectsPlugin> {
        Interface(
            name: BusName.soundEffects,
            introspection: InterfaceXML.fragment(PackageResources.org_sessiond1_SoundEffects_xml),
            methods: [
                .init("Load", "s") { effects, call in
                    effects.load(path: call.arguments[0].stringValue ?? "") { result in
                        switch result {
                        case .success(let (effect, duration)): call.reply([.uint32(effect), .double(duration)])
                        case .failure(let failure): call.fail(failure)
                        }
                    }
                },
                .init("Unload", "u") { effects, call in
                    call.answer { () throws(Failure) in try effects.unload(call.arguments[0].uint32Value ?? 0) }
                },
                .init("Play", "u") { effects, call in effects.play(for: call, isAlert: false) },
                .init("PlayAlert", "u") { effects, call in effects.play(for: call, isAlert: true) },
                .init("Stop", "u") { effects, call in
                    effects.stop(call.arguments[0].uint32Value ?? 0)
                    call.reply()
                },
            ],
            properties: properties.map(\.exported))
    }
}
