import CGStreamer
import CStreaming
import CVideo
import Capturing
import FileFormats
import PluginAPI

/// The format of a photo. The raw value is the name on the wire.
package enum PhotoFormat: String, Sendable, Hashable, CaseIterable {
    case jpeg, png

    /// The format that the ending of a name means; nil: none.
    package init?(path: String) {
        let name = path.lowercased()
        if name.hasSuffix(".jpg") || name.hasSuffix(".jpeg") {
            self = .jpeg
        } else if name.hasSuffix(".png") {
            self = .png
        } else {
            return nil
        }
    }
}

enum PhotoEncoder {
    /// A picture of a camera, which is owned by it.
    // SAFETY: a sample is not changed, and its references are counted atomically.
    final class Picture: @unchecked Sendable {
        let sample: OpaquePointer

        init(sample: OpaquePointer) { self.sample = sample }
        deinit { shim_sample_unref(sample) }
    }

    private static let patience: GstClockTime = 5_000_000_000

    /// Runs on a thread of its own, for some milliseconds.
    static func encode(
        _ picture: Picture, _ format: PhotoFormat, _ orientation: CaptureOrientation
    ) -> Result<[UInt8], SessionError> {
        let caps = gst_caps_from_string("image/\(format.rawValue)")
        defer { gst_caps_unref(caps) }
        var error: UnsafeMutablePointer<GError>?
        defer { if let error { g_error_free(error) } }
        guard let made = gst_video_convert_sample(picture.sample, caps, patience, &error) else {
            let reason = error.map { String(cString: $0.pointee.message) } ?? "GStreamer gave no reason"
            return .failure(
                SessionError(.encoderNotFound, "no photo can be made (\(reason)): install gstreamer1.0-plugins-good"))
        }
        defer { shim_sample_unref(made) }
        guard let buffer = gst_sample_get_buffer(made) else {
            return .failure(SessionError(.exportFailed, "the photo is empty"))
        }
        let size = gst_buffer_get_size(buffer)
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) {
            $1 = Int(gst_buffer_extract(buffer, 0, $0.baseAddress, size))
        }
        guard format == .jpeg else { return .success(bytes) }
        return .success(PhotoTurn.jpeg(bytes, degrees: orientation.degrees) ?? bytes)
    }
}
