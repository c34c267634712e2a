import CGStreamer
import CStreaming
import EventLoop
import FileFormats
import GStreamerBase
import PluginAPI

/// Reads a possible playlist from the network, up to the size limit of playlists, and reports what it is.
final class PlaylistFetch {
    enum Outcome {
        /// Its entries; nil if it is not a playlist.
        case entries([PlaylistEntry]?)
        case failed(Failure)
    }

    private let pipeline: Pipeline
    private let file: MemoryFile
    private let tally: UnsafeMutablePointer<shim_tally>
    private let uri: String
    private var onOutcome: ((Outcome) -> Void)?

    /// `done` is called once, from the loop, unless the object is freed before.
    init(_ uri: String, loop: EventLoop, _ done: @escaping (Outcome) -> Void) throws(PipelineError) {
        self.uri = uri
        onOutcome = done
        // The size is limited, and fdsink writes the data, so that no Swift code runs on GStreamer's thread.
        guard let file = MemoryFile() else { throw PipelineError(message: "the process may open no more files") }
        pipeline = try Pipeline("\(MediaSource.webSource(uri)) ! fdsink name=sink sync=false", on: loop)
        guard let source = pipeline.child("source"), let sink = pipeline.child("sink"),
            let pad = gst_element_get_static_pad(sink, "sink")
        else { throw PipelineError(message: "the pipeline is incomplete") }
        self.file = file
        defer { gst_object_unref(pad) }
        tally = .allocate(capacity: 1)
        tally.initialize(to: shim_tally(bytes: 0, limit: Int(Playlist.sizeLimit), pipeline: pipeline.element))
        shim_count_bytes(pad, tally)
        shim_set_string(source, "location", uri)
        shim_set_int(sink, "fd", file.descriptor)
        pipeline.onMessage = { [weak self] in self?.take($0) }
        pipeline.setState(GST_STATE_PLAYING)
    }

    deinit {
        pipeline.close()
        tally.deallocate()
    }

    private func take(_ message: UnsafeMutablePointer<GstMessage>) {
        switch Notice(message) {
        // An application message: the limit is reached.
        case .ended, .application:
            finish(.entries(Playlist.entries(file.bytes(Playlist.sizeLimit), base: uri)))
        case .failed(let fault): finish(.failed(Failure(fault, item: uri, missing: nil)))
        case .prerolled, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .element, .other: break
        }
    }

    private func finish(_ outcome: Outcome) {
        let done = onOutcome
        onOutcome = nil
        pipeline.close()
        done?(outcome)
    }
}
