/// The module of the server whose sink is the place for held streams.
struct HoldModule {
    let name: String
    let arguments: String

    /// `folder`: where the server may make a file. `wirePlumber` nil: PulseAudio, or a session manager nobody knows.
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

    /// WirePlumber 0.4 makes a link to a passive sink passive, which wakes nobody: the stream is not asked for anything.
    private static let passive = "node.passive=true"

    /// WirePlumber 0.5 does not, and the sink would run and swallow the stream. What is linked to a driver runs when the
    /// driver says so. A pipe's sink expects another node to drive it, and never does: as a driver it stops, without a
    /// single cycle, all that is linked to it, also what wants to run always. With the least rank it is never chosen to
    /// drive others. WirePlumber would remember its volume under a name that all pipes' sinks share.
    private static let driver =
        "node.driver=true priority.driver=0 media.name=\(PulseDevice.holdName) state.restore-props=false"
}
