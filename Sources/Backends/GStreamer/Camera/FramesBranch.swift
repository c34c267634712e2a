import CGStreamer
import CStreaming
import Capturing
import GStreamerBackend
import GStreamerBase
import Glibc
package import PluginAPI

/// The pictures of a camera for another program, in a FIFO. A reader that is slow loses whole pictures; a film does not notice.
package final class FramesBranch {
    let branch: PictureBranch
    private let frames: OpaquePointer

    init(
        to path: String, _ pixels: CapturePixels, hasHeader: Bool, _ choice: CapturePreset.Choice, in pipeline: Pipeline
    ) throws(SessionError) {
        branch = try PictureBranch(
            "queue name=entry leaky=downstream max-size-buffers=4 max-size-bytes=0 max-size-time=0 ! videoconvert "
                + "! capsfilter caps=\"video/x-raw,format=\(pixels.rawValue)\" "
                + "! fakesink name=end sync=false async=false enable-last-sample=false", in: pipeline)
        guard let end = Elements.child("end", of: branch.bin), let pad = gst_element_get_static_pad(end, "sink") else {
            throw SessionError(.notSupported, "GStreamer cannot give the pictures: the branch has no end")
        }
        defer { gst_object_unref(pad) }
        var format = shim_frames_format()
        (format.width, format.height) = (gint(choice.width), gint(choice.height))
        (format.numerator, format.denominator) = (gint(choice.rate.numerator), gint(choice.rate.denominator))
        format.has_header = hasHeader ? 1 : 0
        let planes = pixels.planes(width: choice.width, height: choice.height)
        withUnsafeMutableBytes(of: &format.bytes) { Self.fill($0, planes.map(\.bytes)) }
        withUnsafeMutableBytes(of: &format.rows) { Self.fill($0, planes.map(\.rows)) }
        withUnsafeMutableBytes(of: &format.stride) { Self.fill($0, planes.map(\.stride)) }
        let pipelineElement = pipeline.element
        let made = path.withCString { path in
            format.path = path
            return shim_frames_new(&format, pad, pipelineElement)
        }
        guard let made else { throw SessionError(.resourceNotAvailable, "no thread can be started") }
        frames = made
        branch.attach()
    }

    private static func fill(_ bytes: UnsafeMutableRawBufferPointer, _ numbers: [Int]) {
        let places = bytes.bindMemory(to: gint.self)
        for (place, number) in zip(places.indices, numbers) { places[place] = gint(number) }
    }

    deinit {
        remove()
        shim_frames_free(UnsafeMutableRawPointer(frames))
    }

    func remove() {
        // First, because its thread may wait for the reader.
        shim_frames_end(frames)
        branch.remove()
    }

    /// Pictures that a reader got, and those that one which was there did not get.
    package var facts: (written: UInt64, lost: UInt64) {
        let facts = shim_frames_read(frames)
        return (UInt64(facts.written), UInt64(facts.lost))
    }

    /// - Throws: `BadParameter` if the path is no FIFO.
    package static func check(_ path: String) throws(SessionError) {
        var status = stat()
        guard path.hasPrefix("/"), !path.utf8.contains(0), lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO
        else {
            throw .badParameter("'path' of an output 'frames' must be the absolute path of a FIFO: make it with mkfifo")
        }
    }
}
