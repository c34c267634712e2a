import CGStreamer
import EventLoop
import PluginAPI

/// How long a recorded file plays, counted in its frames, without decoding. After a full disk, the file has less than
/// was encoded, and its last frame is incomplete.
final class Inspection {
    private let pipeline: Pipeline
    private let end: UnsafeMutablePointer<GstElement>
    private let limit: Timer

    /// Longer than an hour of FLAC needs; after that, the length found so far is reported.
    private static let patience = 5.0

    /// Reports the length in seconds, once and from the loop; nil if the file could not be read to its end and no frame
    /// was found.
    init?(_ path: String, _ encoding: Encoding, on loop: EventLoop, _ tell: @escaping (Double?) -> Void) {
        guard
            let pipeline = try? Pipeline(
                "filesrc name=file ! \(encoding.parser) ! identity name=end ! fakesink sync=false", on: loop),
            let file = pipeline.child("file"), let end = pipeline.child("end")
        else { return nil }
        (self.pipeline, self.end) = (pipeline, end)
        var tell: ((Double?) -> Void)? = tell
        func found(isAll: Bool) {
            let time = shim_transform_position(end)
            let seconds = time == .max ? 0 : Double(time) / 1e9
            let told = tell
            tell = nil
            told?(isAll || seconds > 0 ? seconds : nil)
        }
        limit = Timer(on: loop) { found(isAll: false) }
        pipeline.onMessage = { message in
            // A parser that finds no frame reports an error.
            let type = message.pointee.type
            if type == GST_MESSAGE_EOS || type == GST_MESSAGE_ERROR { found(isAll: true) }
        }
        shim_set_string(file, "location", path)
        limit.arm(after: Self.patience)
        pipeline.setState(GST_STATE_PLAYING)
    }

    deinit { pipeline.close() }
}
