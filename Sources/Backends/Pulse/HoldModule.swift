/// The server module whose sink is the hold sink.
struct HoldModule {
    let name: String
    let arguments: String

    /// `folder`: where the server may create a file. `wirePlumber` nil: PulseAudio, or an unknown session manager.
    init(_ wirePlumber: WirePlumberVersion?, folder: String) {
        let isDriver = wirePlumber.map { $0 >= WirePlumberVersion(0, 5) } ?? false
        name = isDriver ? "module-pipe-sink" : "module-null-sink"
        arguments =
            "sink_name=\(PulseDevice.holdName) "
            + (isDriver ? "file=\"\(folder)/\(PulseDevice.holdName)\" " : "")
            + "sink_properties=\"\(HoldModule.common) \(isDriver ? HoldModule.driver : HoldModule.passive)\""
    }

    /// Without hardware, so that module-switch-on-connect leaves it alone, and least in rank as a default.
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
