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
        wirePlumber != nil
            ? HoldModule("module-pipe-sink", pipe: path(in: folder), driver) : HoldModule("module-null-sink", passive)
    }

    static func path(in folder: String) -> String { folder + "/" + PulseDevice.holdName }

    /// Without hardware, so that module-switch-on-connect ignores it, and with the lowest rank as a default. The
    /// description is for people who see it in a list of outputs; desktops such as KDE's do not list virtual devices.
    private static let common =
        "device.description='Sound on hold (not an output)' device.class=filter sessiond.hold=1 node.virtual=true "
        + "priority.session=-1000"

    /// A session manager may make the link to a passive sink passive, as WirePlumber 0.4 does. This wakes nothing: no data is
    /// requested from the stream.
    private static let passive = "node.passive=true"

    /// WirePlumber 0.5 does not make such a link passive: a null sink would run and consume the stream. And with 0.4 the
    /// server shows every stream on it as paused, so nothing shows that its program pauses it. A node runs only while the
    /// driver of its group runs. A pipe sink never starts a cycle. With `node.driver=true` it is the driver, so everything
    /// that is linked to it stops, also nodes that ask to run always. `priority.driver=0`: it never drives other nodes.
    /// `media.name` and `state.restore-props=false`: WirePlumber stores no volume for it, which would be under the name that
    /// all pipe sinks share.
    private static let driver =
        "node.driver=true priority.driver=0 media.name=\(PulseDevice.holdName) state.restore-props=false"
}
