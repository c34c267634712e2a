import CPulse
import PluginAPI

/// A sink input or source output of the server.
struct PulseStream {
    let index: UInt32
    /// `noIndex` for streams of the server itself.
    let client: UInt32
    let device: UInt32
    let isCorked: Bool
    /// The module that created it; `noIndex`: none.
    let module: UInt32
    /// Whether PipeWire's server reports in `pulse.corked` that its program has paused it. It does so since 1.4, for streams
    /// of PulseAudio's protocol.
    private let hasPauseProperty: Bool
    /// Resampled to peaks, as level meters do.
    let isPeakMeter: Bool
    let isMuted: Bool
    let volume: [UInt32]
    private let channels: [Int32]
    let properties: [String: String]
    /// PipeWire's `node.latency`, in seconds.
    let wantedCycle: Double?
    /// Whether its format is not PCM.
    let isEncoded: Bool
    /// PipeWire's `node.link-group`: it is linked internally to another node; nil: it is not.
    private let linkGroup: String?

    init(_ info: pa_sink_input_info) { self.init(info, device: info.sink) }

    init(_ info: pa_source_output_info) { self.init(info, device: info.source) }

    private init(_ info: some StreamInfo, device: UInt32) {
        index = info.index
        client = info.client
        module = info.owner_module
        isPeakMeter = PulseStream.isPeakMeter(info.resample_method, info.proplist)
        self.device = device
        isCorked = info.corked != 0
        hasPauseProperty = pa_proplist_contains(info.proplist, "pulse.corked") > 0
        isMuted = info.mute != 0
        volume = info.volume_writable != 0 ? PulseStream.read(info.volume) : []
        channels = PulseStream.read(info.channel_map)
        properties = PulseDevice.read(info.proplist, prefixes: PulseStream.prefixes)
        isEncoded = PulseStream.isEncoded(info.format)
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

    private static func isEncoded(_ format: UnsafePointer<pa_format_info>?) -> Bool {
        switch format?.pointee.encoding {
        case nil, PA_ENCODING_ANY, PA_ENCODING_PCM, PA_ENCODING_INVALID: false
        default: true
        }
    }

    /// PipeWire's name for its PulseAudio server (`client.api`).
    static let pulseProtocol = "pipewire-pulse"

    /// Reads a fraction: "1024/48000".
    static func seconds(_ fraction: UnsafePointer<CChar>?) -> Double? {
        let parts = String(orEmpty: fraction).split(separator: "/").compactMap { UInt32($0) }
        return parts.count == 2 && parts[1] > 0 ? Double(parts[0]) / Double(parts[1]) : nil
    }

    /// Whether a filter plays by this stream: the same module, or the same group of nodes.
    func isOwn(of filter: PulseDevice) -> Bool {
        if module != noIndex, module == filter.module { return true }
        return linkGroup != nil && linkGroup == filter.properties["node.link-group"]
    }
    /// Whether both are ends of the same loopback.
    func isOtherEnd(of other: PulseStream) -> Bool {
        if module != noIndex, module == other.module { return true }
        return linkGroup != nil && linkGroup == other.linkGroup
    }

    /// Whether its role does not say that it is something else than music: PulseAudio gives the role `music` to what it plays
    /// from a phone, and `abstract` to other loopbacks.
    var mayBeMusic: Bool { properties["media.role"].map { ["music", "abstract"].contains($0.lowercased()) } ?? true }

    /// The program's name, else the stream's title; empty if neither is known.
    var label: String { properties["application.name"] ?? properties["media.name"] ?? "" }

    /// The channels, under the name by which it is remembered; nil: it is not.
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
        // Nodes that are linked internally are one end of a loopback or a filter, in any program.
        let isProgram = client != noIndex && linkGroup == nil && owner?.isSessionManager != true
        let properties = properties.merging(owner?.properties ?? [:]) { own, _ in own }
        let port = device?.active
        let isPauseInferred = isPipeWire && !hasPauseProperty
        // A passive hold sink does not run a stream, so PipeWire shows it as paused, whether its program paused it or not.
        let isPauseUnknown = isHeld && isPauseInferred && device?.isPassive == true
        var result = AudioStream(
            id: AudioStream.ID(direction, index),
            processID: isProgram
                ? owner?.processID ?? properties["application.process.id"].flatMap { UInt32($0) } : nil,
            isProcessVouched: isProgram && owner?.processID != nil, isProgram: isProgram, isPeakMeter: isPeakMeter,
            applicationName: properties["application.name"] ?? properties["media.name"] ?? "",
            role: properties["media.role"],
            isCorked: isCorked && !isPauseUnknown, isMuted: isMuted, deviceName: device?.name ?? "",
            portUID: port?.uid, portName: port?.name ?? "", properties: properties, volume: volume, isHeld: isHeld,
            isStopping: isHeld && isPipeWire && !isCorked, rendering: rendering, isEncoded: isEncoded)
        result.isPauseInferred = isPauseInferred
        return result
    }

    /// None of `pipewire.`: a sandbox is a property of PipeWire's clients. A stream can only claim one, as can a client of
    /// PulseAudio.
    private static let prefixes = ["application.", "event.", "media.", "module-stream-restore."]
}

/// What libpulse's structures of sink inputs and source outputs have in common.
private protocol StreamInfo {
    var index: UInt32 { get }
    var client: UInt32 { get }
    var owner_module: UInt32 { get }
    var resample_method: UnsafePointer<CChar>! { get }
    var proplist: OpaquePointer! { get }
    var corked: Int32 { get }
    var mute: Int32 { get }
    var volume_writable: Int32 { get }
    var volume: pa_cvolume { get }
    var channel_map: pa_channel_map { get }
    var format: UnsafeMutablePointer<pa_format_info>! { get }
}

extension pa_sink_input_info: StreamInfo {}
extension pa_source_output_info: StreamInfo {}
