import CPulse
import Glibc
import PluginAPI

/// The state of the server, with its numbers. Reports use names instead.
struct PulseModel {
    var serverName = ""
    var defaultSink = ""
    var defaultSource = ""
    var sinks: [UInt32: PulseDevice] = [:]
    var sources: [UInt32: PulseDevice] = [:]
    var cards: [UInt32: PulseCard] = [:]
    var playing: [UInt32: PulseStream] = [:]
    /// New streams whose device or volume is not known yet, and since when they are shown so.
    var unfinished: [UInt32: (stream: PulseStream, since: UInt64)] = [:]
    var recording: [UInt32: PulseStream] = [:]
    /// On PipeWire, by index: at first all of them, then those of streams.
    var clients: [UInt32: PulseClient] = [:]
    /// Modules with rules of their own; others are not needed.
    var policyModules: [UInt32: ServerPolicy] = [:]

    /// Nil if none exists, or none was seen yet.
    var wirePlumber: WirePlumberVersion?

    private var order = PortOrder()
    /// When each stream was last seen without a device, which PipeWire shows until the stream is placed.
    private var unplaced: [UInt32: UInt64] = [:]
    /// Microseconds after a stream was placed in which the session manager may still restore what it remembers.
    private static let settling: UInt64 = 1_000_000
    private var enumeration = Enumeration()

    /// Our own stream that requests rate and buffer, and its buffer as reported by the server; nil: none exists.
    var tuning: (index: UInt32, latency: Double)?

    /// Our recordings that measure a stream, by the number of that stream.
    var meters: [UInt32: Meter] = [:]

    struct Meter {
        /// Nil until the server has created it.
        let index: UInt32?
        let hasSound: Bool
    }

    /// Identifies this run of the server.
    var cookie: UInt32 = 0

    var isPipeWire: Bool { PulseModel.isPipeWire(serverName) }
    /// Nothing is held if there is no other sink: new streams would have no other place, either.
    var canHold: Bool { sinks.values.contains { !$0.isNoPort } }

    var memoryAccess: MemoryAccess {
        guard isPipeWire else { return .readAndWrite }
        // WirePlumber 0.5 and later accepts only the volumes of notifications.
        return wirePlumber.map { $0 >= WirePlumberVersion(0, 5) } == true ? .streamsOnly : .writeOnly
    }

    /// In C: `contains(String)` would link the regular expression engine, a fifth of the daemon.
    static func isPipeWire(_ name: String) -> Bool { name.withCString { strstr($0, "PipeWire") != nil } }

    mutating func read(_ info: pa_server_info) {
        let name = String(orEmpty: info.server_name)
        serverName = PulseModel.isPipeWire(name) ? name : name + " " + String(orEmpty: info.server_version)
        cookie = info.cookie
        defaultSink = String(orEmpty: info.default_sink_name)
        defaultSource = String(orEmpty: info.default_source_name)
    }

    mutating func add(_ info: pa_module_info) {
        policyModules[info.index] = ServerPolicy(rawValue: String(orEmpty: info.name))
    }

    /// PipeWire shows a stream already during its creation: without a device, and with a volume of 0 that is not real. Such a
    /// volume would be taken for that of the user.
    /// - Returns: whether the stream is complete. If not, it must be read again, as the server may not report its
    ///   completion (``RepeatedReads``).
    mutating func add(playing stream: PulseStream, now: UInt64) -> Bool {
        if isPipeWire, playing[stream.index] == nil {
            if stream.device == noIndex {
                unfinished[stream.index] = (stream, now)
                return false
            }
            let before = unfinished[stream.index].flatMap { $0.stream.device == noIndex ? nil : $0.since }
            let since = before ?? now
            if !stream.volume.isEmpty, stream.volume.allSatisfy({ $0 == 0 }), now &- since < PulseModel.creationTime {
                unfinished[stream.index] = (stream, since)
                return false
            }
        }
        unfinished[stream.index] = nil
        playing[stream.index] = stream
        return isPlaced(stream)
    }

    /// - Returns: as above.
    mutating func add(recording stream: PulseStream) -> Bool {
        recording[stream.index] = stream
        return isPlaced(stream)
    }

    /// PulseAudio reports when a stream has its device.
    private func isPlaced(_ stream: PulseStream) -> Bool { !isPipeWire || stream.device != noIndex }

    /// Stores the device.
    /// - Returns: whether it is new, or has begun or ceased to run. Then its streams may be others, which PipeWire need not
    ///   report.
    mutating func add(_ device: PulseDevice) -> Bool {
        let place = device.isInput ? \PulseModel.sources : \.sinks
        let before = self[keyPath: place].updateValue(device, forKey: device.index)
        return before?.state != device.state
    }

    /// Microseconds after which a volume of 0 is that of the user.
    private static let creationTime: UInt64 = 250_000

    mutating func add(_ info: pa_client_info) {
        if let version = WirePlumberVersion(info) { wirePlumber = version }
        if isPipeWire { clients[info.index] = PulseClient(info) }
    }

    /// While a stream is moved, PipeWire shows it as paused until it plays again.
    private static let pauseDelay = 0.1

    private var policies: Set<ServerPolicy> {
        var result = Set(policyModules.values)
        if isPipeWire, sinks.values.contains(where: \.isRole) { result.insert(.wirePlumberRoles) }
        if isPipeWire, let wirePlumber, wirePlumber >= WirePlumberVersion(0, 5, 11) { result.insert(.wirePlumberPause) }
        return result
    }

    /// The shortest cycle of PipeWire by default on a virtual machine, and the longest on any machine, in seconds.
    private static let cycle = (shortest: 1_024.0 / 48_000, longest: 2_048.0 / 48_000)

    /// PipeWire renders a whole cycle with one volume. PulseAudio renders the data again that were not played yet. The
    /// cycle is the shortest one that streams of this device request, playing or recording; a sink and its monitor
    /// count as one device.
    private func rendering(on device: UInt32) -> AudioStream.Rendering {
        guard isPipeWire else { return .atOnce }
        let wanted = [playing, recording].flatMap(\.values).filter { $0.device == device && !$0.isCorked }
            .compactMap(\.wantedCycle).min()
        return .inCycles(seconds: min(max(wanted ?? 0, PulseModel.cycle.shortest), PulseModel.cycle.longest))
    }

    /// The device of the route's output; while the guard replaces it, the next one.
    var output: PulseDevice? {
        isOnGuard ? fallback?.device : sinks.values.first { $0.name == defaultSink }
    }
    /// The newest output; `port` is nil if its device has none.
    var fallback: (device: PulseDevice, port: String?, output: Port)? {
        guard let newest = order.sorted(sinks.values.flatMap(\.available), isInput: false).last,
            let (device, port) = find(newest.uid, isInput: false)
        else { return nil }
        return (device, port.isEmpty ? nil : port, newest)
    }
    /// Whether the server has replaced an unplugged output by the guard.
    var isOnGuard: Bool { PulseGuard.isName(defaultSink) }
    var input: PulseDevice? { sources.values.first { $0.name == defaultSource } }

    /// Whether the card is that of a headset whose profile has an output that is not there: not yet, or no longer.
    func lacksOutput(of card: PulseCard) -> Bool {
        guard let uid = card.output else { return false }
        return !sinks.values.contains { $0.card == card.index && $0.portName(of: uid) != nil }
    }

    private var isHeadsetHandsFree: Bool {
        cards.values.contains { card in
            card.musicProfile != nil && (lacksOutput(of: card) || card.isHandsFree && output?.card == card.index)
        }
    }

    /// Whether the server shows a default device that it has not reported yet. A default of PipeWire may be missing for
    /// longer (docs/adr/0012).
    var isDefaultUnknown: Bool {
        func isUnknown(_ name: String, _ devices: [UInt32: PulseDevice]) -> Bool {
            !name.isEmpty && !devices.values.contains { $0.name == name }
        }
        return !isPipeWire && (isUnknown(defaultSink, sinks) || isUnknown(defaultSource, sources))
    }

    /// The device that has that port, and the port's own name ("" if the device has none).
    func find(_ uid: String, isInput: Bool) -> (device: PulseDevice, port: String)? {
        for device in (isInput ? sources : sinks).values where !device.isNoPort {
            if let port = device.portName(of: uid) { return (device, port) }
        }
        return nil
    }

    /// Ports of the snapshot that appeared less than that many microseconds before `now`.
    func recent(_ snapshot: AudioSnapshot, _ now: UInt64, within span: UInt64) -> Set<String> {
        Set(
            order.recent(snapshot.availableOutputs, isInput: false, now, within: span)
                + order.recent(snapshot.availableInputs, isInput: true, now, within: span))
    }

    /// Whether the clients must be read before the next snapshot: they show which devices were found together.
    /// `isLate`: everything that belonged to a removed device is gone by now.
    mutating func asksForClients(isLate: Bool) -> Bool {
        isPipeWire && enumeration.asksForClients(of: Array(sinks.values) + Array(sources.values), isLate: isLate)
    }

    mutating func know(_ clients: PulseClients, now: UInt64) {
        enumeration.know(clients, now: now)
    }

    /// When all current devices will have been enumerated; nil: they have.
    func enumerationEnd(_ now: UInt64) -> UInt64? { enumeration.end(now) }

    /// The ports that win only when they are chosen.
    func losers(_ ports: [Port], isInput: Bool) -> [Port] { order.losers(ports, isInput: isInput) }

    /// The user chose that port: it is the newest from the next snapshot on.
    mutating func prefer(_ port: Port, isInput: Bool) { order.prefer(port, isInput: isInput) }

    mutating func snapshot(now: UInt64) -> AudioSnapshot {
        let devices = (sinks.values.sorted { $0.index < $1.index }, sources.values.sorted { $0.index < $1.index })
        let outputs = devices.0.flatMap(\.available)
        var inputs = devices.1.flatMap(\.available)
        // WirePlumber 0.5 has a source for the headset in every profile.
        for input in cards.values.sorted(by: { $0.index < $1.index }).compactMap(\.handsFreeInput)
        where !inputs.contains(where: { $0.uid == input.uid }) {
            inputs.append(input)
        }
        let filters = (devices.0 + devices.1).filter(\.isFilter).flatMap(\.available).map(\.uid)
        enumeration.update(devices.0 + devices.1, now: now)
        let early = enumeration.ports(of: devices.0 + devices.1, now: now)
        let changing = cards.values.filter(lacksOutput).compactMap(\.address)
        order.update(inputs, outputs, filters: Set(filters), early: early, changing: changing, now: now)
        noteUnplaced(now)

        var result = AudioSnapshot()
        result.isConnected = true
        result.isEnumerating = enumeration.end(now) != nil
        result.serverName = serverName
        result.policies = policies
        result.instance = cookie
        result.canHold = canHold
        result.hasHold = sinks.values.contains(where: \.isHold)
        result.memoryAccess = memoryAccess
        result.pauseDelay = isPipeWire ? PulseModel.pauseDelay : 0
        result.isHeadsetHandsFree = isHeadsetHandsFree
        result.defaultDevice = output.flatMap { $0.isHold ? nil : $0.name }
        result.availableOutputs = order.sorted(outputs, isInput: false)
        result.availableInputs = order.sorted(inputs, isInput: true)
        if result.isEnumerating {
            let together =
                enumeration.isManagerAway(now)
                ? outputs + inputs : losers(outputs, isInput: false) + losers(inputs, isInput: true)
            result.enumerated = Set(together.map(\.uid))
        }
        let (output, input) = (self.output, self.input)
        // The unplugged port may still be the active one.
        let outlet = isOnGuard ? fallback?.output : output?.active
        result.route = Route(inputs: (input?.active).map { [$0] } ?? [], outputs: outlet.map { [$0] } ?? [])
        result.streams =
            playing.values.filter { $0.index != tuning?.index }.sorted { $0.index < $1.index }
            .map { describe($0, .playback, on: sinks[$0.device], now) }
            + recording.values.filter { recording in !meters.values.contains { $0.index == recording.index } }.sorted {
                $0.index < $1.index
            }
            .map { describe($0, .record, on: sources[$0.device], now) }
        result.unplaced = unfinished.values.map(\.stream).sorted { $0.index < $1.index }
            .map { describe($0, .playback, on: sinks[$0.device], now) }
        result.isInputMuted = input?.active != nil && input?.isMuted == true
        result.outputVolume = output.map { $0.isMuted ? 0 : $0.volume } ?? 1
        // PipeWire reports it for streams only.
        result.outputLatency = output.map { $0.latency > 0 ? $0.latency : tuning?.latency ?? 0 } ?? 0
        // A sink's monitor is not an input.
        result.inputLatency = input?.active == nil ? 0 : input?.latency ?? 0
        return result
    }

    private func describe(
        _ stream: PulseStream, _ direction: AudioStream.Direction, on device: PulseDevice?, _ now: UInt64
    ) -> AudioStream {
        var result = stream.stream(
            direction, on: device, of: clients[stream.client], isPipeWire, rendering(on: stream.device))
        if let device, device.isFilter { result.outputUID = output(behind: device) }
        if direction == .playback, !result.isProgram { result.inputName = input(behind: stream)?.label }
        result.isSettling =
            direction == .playback && unplaced[stream.index].map { now &- $0 < PulseModel.settling } ?? false
        result.hasSound = direction == .playback && meters[stream.index]?.hasSound == true
        return result
    }

    /// The input for music whose sound the server itself plays by that stream: a phone over Bluetooth, or a line input.
    /// Telephone calls have a role, and are no music.
    private func input(behind stream: PulseStream) -> PulseDevice? {
        guard stream.mayBeMusic else { return nil }
        let device = recording.values.first { $0.isOtherEnd(of: stream) }.flatMap { sources[$0.device] }
        return device.flatMap { $0.isInput && $0.active?.type == .lineIn ? $0 : nil }
    }

    /// The port on which a filter plays by a stream of its own; nil if it has none, or it is held or guarded.
    private func output(behind filter: PulseDevice) -> String? {
        var device = filter
        // Filters may be in front of filters. A circle is impossible, but a wrong answer of the server must not hang.
        for _ in 0..<8 {
            guard device.isFilter else { return device.active?.uid }
            guard let next = playing.values.first(where: { $0.isOwn(of: device) }).flatMap({ sinks[$0.device] }) else {
                return nil
            }
            device = next
        }
        return nil
    }

    private mutating func noteUnplaced(_ now: UInt64) {
        guard isPipeWire else { return }
        unplaced = unplaced.filter { playing[$0.key] != nil && now &- $0.value < PulseModel.settling }
        for stream in playing.values where stream.device == noIndex { unplaced[stream.index] = now }
    }

    /// Removes clients whose streams have gone. No index is used twice.
    mutating func forgetClients() {
        guard !clients.isEmpty else { return }
        let new = unfinished.values.map(\.stream)
        let needed = Set([Array(playing.values), Array(recording.values), new].joined().map(\.client))
        clients = clients.filter { needed.contains($0.key) }
    }
}
