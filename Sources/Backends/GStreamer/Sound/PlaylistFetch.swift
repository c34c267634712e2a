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
        /// It is a live stream of HLS, whose longest segment has that many seconds.
        case liveStream(segment: Double)
        case failed(Failure)
    }

    private let pipeline: Pipeline
    private let file: MemoryFile
    private let tally: UnsafeMutablePointer<shim_tally>
    private let uri: String
    /// What is read.
    private let place: String
    private let loop: EventLoop
    private var next: PlaylistFetch?
    private var onOutcome: ((Outcome) -> Void)?

    /// `done` is called once, from the loop, unless the object is freed before.
    convenience init(_ uri: String, loop: EventLoop, _ done: @escaping (Outcome) -> Void) throws(PipelineError) {
        try self.init(uri, of: uri, loop: loop, done)
    }

    /// - Parameter owner: the address of the list that names this one; or the same address.
    private init(
        _ place: String, of owner: String, loop: EventLoop, _ done: @escaping (Outcome) -> Void
    ) throws(PipelineError) {
        (uri, self.place, self.loop) = (owner, place, loop)
        onOutcome = done
        // The size is limited, and fdsink writes the data, so that no Swift code runs on GStreamer's thread.
        guard let file = MemoryFile() else { throw PipelineError(message: "the process may open no more files") }
        pipeline = try Pipeline("\(MediaSource.webSource(place)) ! fdsink name=sink sync=false", on: loop)
        guard let source = pipeline.child("source"), let sink = pipeline.child("sink"),
            let pad = gst_element_get_static_pad(sink, "sink")
        else { throw PipelineError(message: "the pipeline is incomplete") }
        self.file = file
        defer { gst_object_unref(pad) }
        tally = .allocate(capacity: 1)
        tally.initialize(to: shim_tally(bytes: 0, limit: Int(Playlist.sizeLimit), pipeline: pipeline.element))
        shim_count_bytes(pad, tally)
        shim_set_string(source, "location", place)
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
            take(file.bytes(Playlist.sizeLimit))
        case .failed(let fault): finish(.failed(Failure(fault, item: uri, missing: nil)))
        case .prerolled, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .element, .other: break
        }
    }

    private func take(_ bytes: [UInt8]) {
        switch SegmentList(bytes, base: place) {
        case .live(let segment): finish(.liveStream(segment: segment))
        case .variants(let first) where place == uri: follow(first)
        case .variants, .whole: finish(.entries(nil))
        case nil: finish(.entries(Playlist.entries(bytes, base: uri)))
        }
    }

    /// Whether a stream of several bit rates is live is said in the list of each of them.
    private func follow(_ first: String) {
        let done = onOutcome
        onOutcome = nil
        pipeline.close()
        do throws(PipelineError) {
            next = try PlaylistFetch(first, of: uri, loop: loop) { done?($0) }
        } catch {
            done?(.entries(nil))
        }
    }

    private func finish(_ outcome: Outcome) {
        let done = onOutcome
        onOutcome = nil
        pipeline.close()
        done?(outcome)
    }
}
