import CPulse
import Glibc
import PluginAPI

/// Everything the server told, by its numbers; what leaves is told by names.
struct PulseModel {
    var serverName = ""
    var defaultSink = ""
    var defaultSource = ""
    var sinks: [UInt32: PulseDevice] = [:]
    var sources: [UInt32: PulseDevice] = [:]
    var cards: [UInt32: PulseCard] = [:]
    var playing: [UInt32: PulseStream] = [:]
    var recording: [UInt32: PulseStream] = [:]
    /// On PipeWire, by index: at first all of them, then those of streams.
    var clients: [UInt32: PulseClient] = [:]
    /// Modules that arbitrate; the others are nobody's business.
    var policyModules: [UInt32: ServerPolicy] = [:]

    /// Nil where none is there, or none was seen yet.
    var wirePlumber: WirePlumberVersion?

    private var order = PortOrder()
    /// When each stream was last seen without a device, which PipeWire shows while nobody has placed it.
    private var unplaced: [UInt32: UInt64] = [:]
    /// Microseconds after a stream was placed in which the session manager may still put back what it remembers.
    private static let settling: UInt64 = 1_000_000
    private var enumeration = Enumeration()

    /// Our own stream that asks something of the output, and how long its buffer is by the server; nil: none is there.
    var tuning: (index: UInt32, latency: Double)?

    /// This run of the server.
    var cookie: UInt32 = 0

    var isPipeWire: Bool { PulseModel.isPipeWire(serverName) }
    /// Nothing is held where there is nothing to let it go to: new streams would find no other place, either.
    var canHold: Bool { sinks.values.contains { !$0.isNoPort } }

    /// From 0.5 on WirePlumber takes over the volumes of notifications alone.
    var ignoresMemory: Bool { isPipeWire && wirePlumber.map { $0 >= WirePlumberVersion(0, 5) } == true }

    /// By C: `contains` of a text in a text would link the whole of regular expressions, a fifth of the daemon.
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

    /// PipeWire shows a stream while it is being made: on no device yet, and with a volume of 0 that is nobody's wish.
    mutating func add(_ stream: PulseStream) {
        if isPipeWire, stream.device == noIndex, playing[stream.index] == nil { return }
        playing[stream.index] = stream
    }

    mutating func add(_ info: pa_client_info) {
        if let version = WirePlumberVersion(info) { wirePlumber = version }
        if isPipeWire { clients[info.index] = PulseClient(info) }
    }

    /// Where a stream is moved, PipeWire says of it that it is paused until it plays on.
    private static let pauseDelay = 0.1

    private var policies: Set<ServerPolicy> {
        var result = Set(policyModules.values)
        if isPipeWire, sinks.values.contains(where: \.isRole) { result.insert(.wirePlumberRoles) }
        if isPipeWire, let wirePlumber, wirePlumber >= WirePlumberVersion(0, 5, 11) { result.insert(.wirePlumberPause) }
        return result
    }

    /// How long PipeWire's cycle is at least, by default on a virtual machine, and at most, by default on any, in seconds.
    private static let cycle = (shortest: 1_024.0 / 48_000, longest: 2_048.0 / 48_000)

    /// PipeWire computes a cycle at a time, and all of it with one volume; PulseAudio computes again what was not heard
    /// yet. The cycle is as short as the most impatient wants it of those who play or record on that device, which a
    /// sink shares with its monitor.
    private func rendering(on device: UInt32) -> AudioStream.Rendering {
        guard isPipeWire else { return .atOnce }
        let wanted = [playing, recording].flatMap(\.values).filter { $0.device == device && !$0.isCorked }
            .compactMap(\.wantedCycle).min()
        return .inCycles(seconds: min(max(wanted ?? 0, PulseModel.cycle.shortest), PulseModel.cycle.longest))
    }

    /// Where the route's output goes; while the guard is in its place, where it will go.
    var output: PulseDevice? {
        isOnGuard ? fallback?.device : sinks.values.first { $0.name == defaultSink }
    }
    /// The newest output there is; `port` is nil where its device has none.
    var fallback: (device: PulseDevice, port: String?, output: Port)? {
        guard let newest = order.sorted(sinks.values.flatMap(\.available), isInput: false).last,
            let (device, port) = find(newest.uid, isInput: false)
        else { return nil }
        return (device, port.isEmpty ? nil : port, newest)
    }
    /// Whether the server has put the guard in the place of an output that went.
    var isOnGuard: Bool { PulseGuard.isName(defaultSink) }
    var input: PulseDevice? { sources.values.first { $0.name == defaultSource } }

    /// The device that has that port, and the port's own name ("" where the device has none).
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

    /// Whether the clients must be asked for before the next snapshot: without them it is not known which devices came
    /// together. `isLate`: what goes with a device that went has gone by now.
    mutating func asksForClients(isLate: Bool) -> Bool {
        isPipeWire && enumeration.asksForClients(of: Array(sinks.values) + Array(sources.values), isLate: isLate)
    }

    mutating func know(_ clients: PulseClients, now: UInt64) {
        enumeration.know(clients, now: now)
    }

    /// When the devices there are have all been enumerated; nil where they have.
    func enumerationEnd(_ now: UInt64) -> UInt64? { enumeration.end(now) }

    /// Those of the ports that have yet to be chosen to win.
    func losers(_ ports: [Port], isInput: Bool) -> [Port] { order.losers(ports, isInput: isInput) }

    /// Somebody chose that port: it counts as the newest from the next snapshot on.
    mutating func prefer(_ port: Port, isInput: Bool) { order.prefer(port, isInput: isInput) }

    mutating func snapshot(now: UInt64) -> AudioSnapshot {
        let devices = (sinks.values.sorted { $0.index < $1.index }, sources.values.sorted { $0.index < $1.index })
        let outputs = devices.0.flatMap(\.available)
        let inputs =
            devices.1.flatMap(\.available)
            + cards.values.sorted { $0.index < $1.index }.compactMap(\.handsFreeInput)
        let filters = (devices.0 + devices.1).filter(\.isFilter).flatMap(\.available).map(\.uid)
        enumeration.update(devices.0 + devices.1, now: now)
        let early = enumeration.ports(of: devices.0 + devices.1, now: now)
        order.update(inputs, outputs, filters: Set(filters), early: early, now: now)
        noteUnplaced(now)

        var result = AudioSnapshot()
        result.isConnected = true
        result.isEnumerating = enumeration.end(now) != nil
        result.serverName = serverName
        result.policies = policies
        result.instance = cookie
        result.canHold = canHold
        result.hidesMemory = isPipeWire
        result.ignoresMemory = ignoresMemory
        result.pauseDelay = isPipeWire ? PulseModel.pauseDelay : 0
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
        // The port that was pulled may be the active one still.
        let outlet = isOnGuard ? fallback?.output : output?.active
        result.route = Route(inputs: (input?.active).map { [$0] } ?? [], outputs: outlet.map { [$0] } ?? [])
        result.streams =
            playing.values.filter { $0.index != tuning?.index }.sorted { $0.index < $1.index }
            .map { describe($0, .playback, on: sinks[$0.device], now) }
            + recording.values.sorted { $0.index < $1.index }
            .map { describe($0, .record, on: sources[$0.device], now) }
        result.isInputMuted = input?.active != nil && input?.isMuted == true
        result.outputVolume = output.map { $0.isMuted ? 0 : $0.volume } ?? 1
        // PipeWire says it of streams alone.
        result.outputLatency = output.map { $0.latency > 0 ? $0.latency : tuning?.latency ?? 0 } ?? 0
        // A sink's monitor is no input.
        result.inputLatency = input?.active == nil ? 0 : input?.latency ?? 0
        return result
    }

    private func describe(
        _ stream: PulseStream, _ direction: AudioStream.Direction, on device: PulseDevice?, _ now: UInt64
    ) -> AudioStream {
        var result = stream.stream(
            direction, on: device, of: clients[stream.client], isPipeWire, rendering(on: stream.device))
        result.isSettling =
            direction == .playback && unplaced[stream.index].map { now &- $0 < PulseModel.settling } ?? false
        return result
    }

    private mutating func noteUnplaced(_ now: UInt64) {
        guard isPipeWire else { return }
        unplaced = unplaced.filter { playing[$0.key] != nil && now &- $0.value < PulseModel.settling }
        for stream in playing.values where stream.device == noIndex { unplaced[stream.index] = now }
    }

    /// Drops what is known of clients whose streams have gone. No index is used twice.
    mutating func forgetClients() {
        guard !clients.isEmpty else { return }
        let needed = Set((playing.values.map(\.client) + recording.values.map(\.client)))
        clients = clients.filter { needed.contains($0.key) }
    }
}

/// A sink input or source output as the server told of it.
struct PulseStream {
    let index: UInt32
    /// `noIndex` where it is the server's own.
    let client: UInt32
    let device: UInt32
    let isCorked: Bool
    /// Resampled to peaks, as level meters have it.
    let isPeakMeter: Bool
    let isMuted: Bool
    let volume: [UInt32]
    private let channels: [Int32]
    let properties: [String: String]
    /// PipeWire's `node.latency`, in seconds.
    let wantedCycle: Double?
    /// PipeWire's `node.link-group`: what is linked inside to another node; nil: it is not.
    private let linkGroup: String?

    init(_ info: pa_sink_input_info) {
        index = info.index
        client = info.client
        isPeakMeter = PulseStream.isPeakMeter(info.resample_method, info.proplist)
        device = info.sink
        isCorked = info.corked != 0
        isMuted = info.mute != 0
        volume = info.volume_writable != 0 ? PulseStream.read(info.volume) : []
        channels = PulseStream.read(info.channel_map)
        properties = PulseDevice.read(info.proplist, prefixes: PulseStream.prefixes)
        wantedCycle = PulseStream.seconds(pa_proplist_gets(info.proplist, "node.latency"))
        linkGroup = pa_proplist_gets(info.proplist, "node.link-group").map { String(cString: $0) }
    }

    init(_ info: pa_source_output_info) {
        index = info.index
        client = info.client
        isPeakMeter = PulseStream.isPeakMeter(info.resample_method, info.proplist)
        device = info.source
        isCorked = info.corked != 0
        isMuted = info.mute != 0
        volume = info.volume_writable != 0 ? PulseStream.read(info.volume) : []
        channels = PulseStream.read(info.channel_map)
        properties = PulseDevice.read(info.proplist, prefixes: PulseStream.prefixes)
        wantedCycle = PulseStream.seconds(pa_proplist_gets(info.proplist, "node.latency"))
        linkGroup = pa_proplist_gets(info.proplist, "node.link-group").map { String(cString: $0) }
    }

    /// PulseAudio names the resampler `peaks`; PipeWire has properties instead.
    private static func isPeakMeter(_ method: UnsafePointer<CChar>?, _ properties: OpaquePointer?) -> Bool {
        func isSet(_ name: String) -> Bool {
            pa_proplist_gets(properties, name).map { String(cString: $0) == "true" } ?? false
        }
        return String(orEmpty: method) == "peaks" || isSet("stream.monitor") || isSet("resample.peaks")
    }

    /// What PipeWire calls its PulseAudio server, as which a stream's client speaks to it (`client.api`).
    static let pulseProtocol = "pipewire-pulse"

    /// Of a fraction: "1024/48000".
    static func seconds(_ fraction: UnsafePointer<CChar>?) -> Double? {
        let parts = String(orEmpty: fraction).split(separator: "/").compactMap { UInt32($0) }
        return parts.count == 2 && parts[1] > 0 ? Double(parts[0]) / Double(parts[1]) : nil
    }

    /// The channels under the name that it is remembered by; nil: it is not.
    var memory: StreamMemory? {
        properties["module-stream-restore.id"].map { StreamMemory(name: $0, channels: channels) }
    }

    /// The positions' numbers.
    static func read(_ map: pa_channel_map) -> [Int32] {
        withUnsafeBytes(of: map.map) { bytes in
            bytes.bindMemory(to: pa_channel_position_t.self).prefix(Int(map.channels)).map(\.rawValue)
        }
    }

    static func read(_ volume: pa_cvolume) -> [UInt32] {
        withUnsafeBytes(of: volume.values) { bytes in
            Array(bytes.bindMemory(to: pa_volume_t.self).prefix(Int(volume.channels)))
        }
    }

    func stream(
        _ direction: AudioStream.Direction, on device: PulseDevice?, of owner: PulseClient?, _ isPipeWire: Bool,
        _ rendering: AudioStream.Rendering
    ) -> AudioStream {
        let isHeld = device?.isHold == true
        // Nodes that are linked inside are one end of a loopback or a filter, whoever runs it.
        let isProgram = client != noIndex && linkGroup == nil && owner?.isSessionManager != true
        let properties = properties.merging(owner?.properties ?? [:]) { own, _ in own }
        let port = device?.active
        return AudioStream(
            id: AudioStream.ID(direction, index),
            processID: isProgram
                ? owner?.processID ?? properties["application.process.id"].flatMap { UInt32($0) } : nil,
            isProcessVouched: isProgram && owner?.processID != nil, isProgram: isProgram, isPeakMeter: isPeakMeter,
            applicationName: properties["application.name"] ?? properties["media.name"] ?? "",
            role: properties["media.role"],
            // PipeWire calls paused what is not asked for anything; whether its program paused it is not known then.
            isCorked: isCorked && !(isHeld && isPipeWire), isMuted: isMuted, deviceName: device?.name ?? "",
            portUID: port?.uid, portName: port?.name ?? "", properties: properties, volume: volume, isHeld: isHeld,
            isStopping: isHeld && isPipeWire && !isCorked, rendering: rendering)
    }

    private static let prefixes = ["application.", "media.", "pipewire.", "module-stream-restore."]
}
