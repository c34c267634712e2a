import CGStreamer
import CStreaming
import GStreamerBackend
import GStreamerBase
import Glibc
import PluginAPI

/// The file that gets the same stream as the server, from the same encoders.
///
/// It can be played at every moment, also after a crash: an MP4 is written in fragments, and becomes an ordinary one at its
/// end.
final class LiveRecording {
    enum Event {
        case ended
        case failed(SessionError)
    }

    let path: String
    private let branch: StreamBranch
    /// Above the numbers of connections.
    private static let id = UInt32.max
    /// A disk may be busy for so long before pictures are lost, in seconds.
    private static let patience = 20.0
    private(set) var isOpen = true
    /// The file, which is locked as long as it is open.
    private let descriptor: Int32
    private let streams: EncodedStreams

    /// Creates the file.
    init(_ path: String, overwrites: Bool, on streams: EncodedStreams) throws(SessionError) {
        (self.path, self.streams) = (path, streams)
        let muxer = try Self.muxer(path)
        if overwrites { try GrowingFile.clear(path) }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST {
                throw SessionError(
                    .fileAlreadyExists, "'\(path)' exists already: choose another name, or let it be replaced")
            }
            throw .badParameter("'\(path)' cannot be written: \(String(cString: strerror(errno)))")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, GrowingFile.take(descriptor) else {
            close(descriptor)
            throw .badParameter("'\(path)' is not an ordinary file")
        }
        self.descriptor = descriptor
        do throws(Elements.Missing) {
            branch = try StreamBranch(
                Self.id,
                "\(muxer) ! filesink name=file sync=false async=false \(StreamBranch.pictures) ! mux.video_0"
                    + (streams.sound == nil ? "" : " \(StreamBranch.sound) ! mux.audio_0"),
                on: streams, limit: Self.patience, needed: 0, sender: "file")
        } catch {
            unlink(path)
            close(descriptor)
            throw SessionError(.encoderNotFound, "GStreamer cannot write '\(path)': \(error.message)")
        }
        // It writes to the opened file, even if another file has its name by now.
        if let file = branch.child("file") { shim_set_string(file, "location", "/proc/self/fd/\(descriptor)") }
    }

    /// The element that writes opens the file by the number of its descriptor, maybe late: that must not be another file by then.
    deinit { streams.pipeline.perform { [descriptor] in close(descriptor) } }

    /// What became of the name of the file; nil: it still leads to it.
    var loss: String? { GrowingFile.loss(of: path, descriptor) }

    /// - Throws: `FormatNotSupported` for an unknown ending.
    static func muxer(_ path: String) throws(SessionError) -> String {
        let name = path.split(separator: "/").last ?? ""
        switch name.split(separator: ".").count > 1 ? name.split(separator: ".").last?.lowercased() : nil {
        case "mp4", "m4v": return fragmented("mp4mux")
        case "mov": return fragmented("qtmux")
        case "mkv": return "matroskamux name=mux"
        case _:
            throw SessionError(
                .formatNotSupported, "the name of the recording must end in .mp4, .mov or .mkv, not '\(String(name))'")
        }
    }

    private static func fragmented(_ muxer: String) -> String {
        "\(muxer) name=mux fragment-duration=500 fragment-mode=first-moov-then-finalise"
    }

    func attach() { branch.attach() }

    /// Completes the file; ``take(_:)`` reports its end.
    func finish() { branch.finish() }

    func remove() {
        isOpen = false
        branch.remove()
    }

    /// The pictures that a slow disk has cost.
    var lostPictures: UInt64 { branch.facts.dropped }
    var isEmpty: Bool { branch.facts.passed == 0 }

    /// Looks at a message of the pipeline's bus; nil: it was not about the file.
    func take(_ message: UnsafeMutablePointer<GstMessage>) -> Event? {
        guard isOpen else { return nil }
        switch Notice(message) {
        case .failed(let fault):
            guard branch.owns(message) else { return nil }
            let reason = fault.reason == .noSpaceLeft ? "no space is left on the disk" : fault.text
            return .failed(
                SessionError(
                    fault.reason == .noSpaceLeft ? .diskFull : .exportFailed,
                    "'\(path)' cannot be written any more: \(reason)"))
        case .element: return shim_ended_bin(message) == branch.bin ? .ended : nil
        case .prerolled, .ended, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .application, .other:
            return nil
        }
    }
}
