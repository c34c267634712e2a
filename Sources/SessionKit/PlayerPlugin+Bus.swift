import DBus
import EventLoop
import PluginAPI
import SessionBus

// `org.sessiond1.Player` and what both interfaces of a player share.

extension PlayerPlugin {
    /// Where it is served.
    public static let objectPath = ObjectPath.player

    func export() -> [Announcement<PlayerPlugin>] {
        let objects = connection.objects
        objects.export(self, at: ObjectPath.player, interfaces: [PlayerPlugin.interface])
        exportMPRIS()
        return [
            Announcement(
                self, path: ObjectPath.player, interface: BusName.player, PlayerPlugin.properties, on: objects),
            announcementOfMPRIS(),
        ]
    }

    func emit(_ member: String, _ arguments: [Value]) {
        connection.objects.emit(path: ObjectPath.player, interface: BusName.player, member: member, arguments)
    }

    func setVolume(_ volume: Double) throws(Failure) {
        try check(volume, 0...1, "Volume")
        changing { engine.volume = volume }
    }

    func setRate(_ rate: Double) throws(Failure) {
        try check(rate, 0.5...2, "Rate")
        changing { engine.rate = rate }
    }

    /// NaN is in no range.
    private func check(_ value: Double, _ range: ClosedRange<Double>, _ name: String) throws(Failure) {
        guard range.contains(value) else {
            throw Failure(
                .badParameter("\(name) must be \(range.lowerBound) to \(range.upperBound), not \(value)"))
        }
    }

    private static var properties: [Announcement<PlayerPlugin>.Property] {
        [
            .init("Uri", "s", { .string($0.engine.uri ?? "") }),
            .init("State", "s", { .string($0.state.rawValue) }),
            .init("Position", "d", isTold: false, { .double($0.engine.position) }),
            .init("Duration", "d", { .double($0.engine.duration ?? 0) }),
            .init(
                "Volume", "d", { .double($0.engine.volume) },
                set: { player, value throws(Failure) in try player.setVolume(value.doubleValue ?? .nan) }),
            .init(
                "Pan", "d", { .double($0.engine.pan) },
                set: { player, value throws(Failure) in
                    let pan = value.doubleValue ?? .nan
                    try player.check(pan, -1...1, "Pan")
                    player.changing { player.engine.pan = pan }
                }),
            .init(
                "Rate", "d", { .double($0.engine.rate) },
                set: { player, value throws(Failure) in try player.setRate(value.doubleValue ?? .nan) }),
            .init(
                "Loops", "i", { .int32(Int32(clamping: $0.engine.loops)) },
                set: { player, value throws(Failure) in
                    player.changing { player.engine.loops = Int(value.int32Value ?? 0) }
                }),
            .init(
                "MeteringEnabled", "b", { .bool($0.engine.meteringEnabled) },
                set: { player, value throws(Failure) in
                    player.changing { player.engine.meteringEnabled = value.boolValue == true }
                }),
            .init("Channels", "u", { .uint32(UInt32(clamping: $0.engine.channels)) }),
        ]
    }

    private static var interface: Interface<PlayerPlugin> {
        Interface(
            name: BusName.player, introspection: InterfaceXML.player,
            methods: [
                .init("Load", "s") { player, call in
                    call.answer { () throws(Failure) in try player.load(uri: call.arguments[0].stringValue ?? "") }
                },
                .init("Play", "") { player, call in player.play { call.answer($0) } },
                .init("PlayAt", "d") { player, call in
                    let time = call.arguments[0].doubleValue ?? .nan
                    // 1e9 s is thirty years after boot.
                    guard time >= 0, time < 1e9 else {
                        return call.fail(
                            Failure(.badParameter("time \(time) s: give one of CLOCK_MONOTONIC, 0 or more")))
                    }
                    player.play(at: MonotonicClock.microseconds(time)) { call.answer($0) }
                },
                .init("Pause", "") { player, call in
                    player.pause()
                    call.reply()
                },
                .init("Stop", "") { player, call in
                    player.stop()
                    call.reply()
                },
                .init("SeekTo", "d") { player, call in
                    call.answer { () throws(Failure) in try player.seek(to: call.arguments[0].doubleValue ?? .nan) }
                },
                .init("Meters", "") { player, call in call.reply([Value(player.engine.meters())]) },
            ],
            properties: properties.map(\.exported))
    }
}

extension Value {
    /// Levels as `a(dd)`.
    init(_ levels: [ChannelLevel]) {
        self = .array(of: "(dd)", levels.map { .structure([.double($0.peak), .double($0.average)]) })
    }
}

extension Invocation {
    func answer(_ result: Result<Void, Failure>) {
        switch result {
        case .success: reply()
        case .failure(let failure): fail(failure)
        }
    }

    func answer(_ body: () throws(Failure) -> Void) {
        do throws(Failure) {
            try body()
            reply()
        } catch {
            fail(error)
        }
    }
}
