/// The server module whose sink is the hold sink.
struct HoldModule {
    let name: String
    let arguments: String

    private init(_ name: String, pipe: String? = nil, _ properties: String) {
        self.name = name
        let file = pipe.map { "file=\"\($0)\" " } ?? ""
        arguments =
            "sink_name=\(PulseDevice.holdName) " + file + "sink_properties=\"\(HoldModule.common) \(properties)\""
    }

    /// For PulseAudio: writes to a pipe at that path, which is full (``FullPipe``), so it never requests data.
    ///
    /// A suspended sink does not either, but every program on it is notified, and MPD stops for good when it is about to
    /// write then. So this one must not be suspended by module-suspend-on-idle.
    static func full(pipe: String) -> HoldModule {
        HoldModule("module-pipe-sink", pipe: pipe, "module-suspend-on-idle.timeout=-1")
    }

    /// For PipeWire; and for PulseAudio where no pipe can be shared with it: then it is suspended before each use.
    /// `folder`: where the server may create a file. `wirePlumber` nil: PulseAudio, or an unknown session manager.
    static func plain(_ wirePlumber: WirePlumberVersion?, folder: String) -> HoldModule {
        let isDriver = wirePlumber.map { $0 >= WirePlumberVersion(0, 5) } ?? false
        return isDriver
            ? HoldModule("module-pipe-sink", pipe: path(in: folder), driver) : HoldModule("module-null-sink", passive)
    }

    static func path(in folder: String) -> String { folder + "/" + PulseDevice.holdName }

    /// Without hardware, so that module-switch-on-connect ignores it, and with the lowest rank as a default.
    private static let common = "device.description='Held by sessiond' device.class=filter sessiond.hold=1"

    /// WirePlumber 0.4 makes a link to a passive sink passive, which wakes nothing: no data is requested from the
    /// stream.
    private static let passive = "node.passive=true"

    /// WirePlumber 0.5 does not, and the sink would run and consume the stream. A node runs when the driver of its
    /// group runs. A pipe sink expects another node as driver and never starts a cycle: as a driver itself, it stops
    /// everything that is linked to it, also nodes that ask to run always. With the lowest priority it is never chosen
    /// to drive others. Otherwise WirePlumber would store its volume under a name that all pipe sinks share.
    private static let driver =
        "node.driver=true priority.driver=0 media.name=\(PulseDevice.holdName) state.restore-props=false"
}
