import CGStreamer
import CStreaming
import GStreamerBase

/// What has arrived of a live stream, until it is shown. The pipeline that receives it, and the one that shows it, share it.
final class LiveStore {
    let pull: OpaquePointer

    init() { pull = shim_pull_new() }

    deinit { shim_pull_free(UnsafeMutableRawPointer(pull)) }

    var facts: shim_pull_facts { shim_pull_read(pull) }

    /// Leaves out what is older than that many seconds. False: nothing is.
    @discardableResult
    func skip(to delay: Double) -> Bool { shim_pull_skip(pull, Times.nanoseconds(delay)) != 0 }

    func play(rate: Double) { shim_pull_set_rate(pull, rate) }
}
