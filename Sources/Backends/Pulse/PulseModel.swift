import CPulse
import PluginAPI

/// Everything the server told, by its numbers; what leaves is told by names.
struct PulseModel {
    var serverName = ""
    var defaultSink = ""
    var defaultSource = ""
    var sinks: [UInt32: PulseDevice] = [:]
    var sources: [UInt32: PulseDevice] = [:]
    var playing: [UInt32: PulseStream] = [:]
    var recording: [UInt32: PulseStream] = [:]

    /// When each port that is there now appeared, by uid.
    private var appearances: [String: (order: UInt64, time: UInt64)] = [:]
    private var nextOrder: UInt64 = 0

    var isPipeWire: Bool { serverName.contains("PipeWire") }

    var output: PulseDevice? { sinks.values.first { $0.name == defaultSink } }
    var input: PulseDevice? { sources.values.first { $0.name == defaultSource } }

    /// The device that has that port, and the port's own name ("" where the device has none).
    func find(_ uid: String, isInput: Bool) -> (device: PulseDevice, port: String)? {
        for device in (isInput ? sources : sinks).values where !device.isNoPort {
            if let port = device.portName(of: uid) { return (device, port) }
        }
        return nil
    }

    /// Ports that appeared less than that many microseconds before `now`.
    func recent(_ now: UInt64, within span: UInt64) -> Set<String> {
        Set(appearances.filter { now &- $0.value.time < span }.keys)
    }

    mutating func snapshot(now: UInt64) -> AudioSnapshot {
        let outputs = sinks.values.sorted { $0.index < $1.index }.flatMap(\.available)
        let inputs = sources.values.sorted { $0.index < $1.index }.flatMap(\.available)
        let present = Set((outputs + inputs).map(\.uid))
        appearances = appearances.filter { present.contains($0.key) }
        for port in outputs + inputs where appearances[port.uid] == nil {
            appearances[port.uid] = (nextOrder, now)
            nextOrder += 1
        }
        let order = appearances.mapValues(\.order)
        func byAppearance(_ ports: [Port]) -> [Port] {
            ports.sorted { order[$0.uid, default: 0] < order[$1.uid, default: 0] }
        }

        var result = AudioSnapshot()
        result.isConnected = true
        result.serverName = serverName
        result.availableOutputs = byAppearance(outputs)
        result.availableInputs = byAppearance(inputs)
        let (output, input) = (self.output, self.input)
        result.route = Route(
            inputs: (input?.active).map { [$0] } ?? [], outputs: (output?.active).map { [$0] } ?? [])
        result.streams =
            playing.values.sorted { $0.index < $1.index }.map { $0.stream(.playback, on: sinks[$0.device]) }
            + recording.values.sorted { $0.index < $1.index }.map { $0.stream(.record, on: sources[$0.device]) }
        result.isInputMuted = input?.active != nil && input?.isMuted == true
        result.outputVolume = output.map { $0.isMuted ? 0 : $0.volume } ?? 1
        result.outputLatency = output?.latency ?? 0
        result.inputLatency = input?.latency ?? 0
        return result
    }
}

/// A sink input or source output as the server told of it.
struct PulseStream {
    let index: UInt32
    let device: UInt32
    let isCorked: Bool
    let isMuted: Bool
    let properties: [String: String]

    init(_ info: pa_sink_input_info) {
        index = info.index
        device = info.sink
        isCorked = info.corked != 0
        isMuted = info.mute != 0
        properties = PulseDevice.read(info.proplist, prefixes: PulseStream.prefixes)
    }

    init(_ info: pa_source_output_info) {
        index = info.index
        device = info.source
        isCorked = info.corked != 0
        isMuted = info.mute != 0
        properties = PulseDevice.read(info.proplist, prefixes: PulseStream.prefixes)
    }

    func stream(_ direction: AudioStream.Direction, on device: PulseDevice?) -> AudioStream {
        AudioStream(
            id: AudioStream.ID(direction, index),
            processID: properties["application.process.id"].flatMap { UInt32($0) },
            applicationName: properties["application.name"] ?? properties["media.name"] ?? "",
            role: properties["media.role"], isCorked: isCorked, isMuted: isMuted, deviceName: device?.name ?? "",
            portUID: device?.active?.uid, properties: properties)
    }

    private static let prefixes = ["application.", "media.", "pipewire.", "module-stream-restore."]
}
