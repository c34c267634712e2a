import CGStreamer
import CStreaming
import FileFormats
import GStreamerBase
import PluginAPI

/// The elements from a source to raw sound, in a separate bin of a pipeline.
final class Chain {
    let source: MediaSource
    /// The chain's output, valid as long as the chain.
    let pad: UnsafeMutablePointer<GstPad>
    /// The streams of a film, and the output of its pictures; nil: the source is played for its sound alone. Valid as long
    /// as the chain.
    let film: (tracks: FilmTracks, pictures: UnsafeMutablePointer<GstPad>)?
    var tags = MediaTags()

    private let pipeline: Pipeline
    private let bin: UnsafeMutablePointer<GstElement>
    private let origin: UnsafeMutablePointer<GstElement>

    /// Adds it to the pipeline, not linked, in the state NULL.
    /// - Parameter heard: which sound of a film.
    init(_ source: MediaSource, hearing heard: Int = 0, in pipeline: Pipeline) throws(PipelineError) {
        let description = source.description + " ! identity name=end silent=true"
        // No table names what a film needs, and one in this process may have loaded a part of it for a sound.
        if source.isFilm { Runtime.prepare() }
        Runtime.provide(description)
        switch Elements.bin(description) {
        case .success(let made): bin = made
        case .failure(let missing): throw PipelineError(message: missing.message)
        }
        (self.source, self.pipeline) = (source, pipeline)
        // The parser could do this, but it would also expose the pads that a demultiplexer links later.
        guard let origin = Pipeline.child("source", of: bin), let end = Pipeline.child("end", of: bin),
            let inner = gst_element_get_static_pad(end, "src")
        else {
            gst_object_unref(gst_object_ref_sink(bin))
            throw PipelineError(message: "the pipeline has no end")
        }
        defer { gst_object_unref(inner) }
        guard let pad = gst_ghost_pad_new("src", inner) else {
            gst_object_unref(gst_object_ref_sink(bin))
            throw PipelineError(message: "the pipeline has no end")
        }
        gst_object_ref(pad)
        gst_element_add_pad(bin, pad)
        (self.pad, self.origin) = (pad, origin)
        film = source.isFilm ? Chain.route(origin, hearing: heard, in: bin) : nil
        source.apply(to: origin)
        if let store = source.store, let sound = Elements.child("sound", of: bin),
            let pictures = Elements.child("pictures", of: bin),
            shim_pull_show(store.pull, origin, sound, pictures, Times.nanoseconds(source.live?.usualDelay ?? 0)) == 0
        {
            gst_object_unref(gst_object_ref_sink(bin))
            throw PipelineError(message: "GStreamer lacks appsrc or decodebin: install gstreamer1.0-plugins-base")
        }
        if !source.traits.isFile, let way = gst_element_get_static_pad(origin, "src") {
            shim_limit_supply(way, inner, Preamble.limit)
            gst_object_unref(way)
        }
        if let sound = source.sound, let entry = gst_element_get_static_pad(end, "sink") {
            shim_trim_pad(entry, guint64(sound.skip), guint64(sound.length), gint(sound.rate))
            gst_object_unref(entry)
        }
        pipeline.add(bin)
    }

    deinit {
        gst_object_unref(pad)
        if let film { gst_object_unref(film.pictures) }
    }

    /// Leads the sound and the pictures of a film to their queues, and gives the bin an output for the pictures.
    private static func route(
        _ origin: UnsafeMutablePointer<GstElement>, hearing heard: Int, in bin: UnsafeMutablePointer<GstElement>
    ) -> (tracks: FilmTracks, pictures: UnsafeMutablePointer<GstPad>)? {
        guard let sound = Elements.child("sound", of: bin), let pictures = Elements.child("pictures", of: bin),
            let inner = gst_element_get_static_pad(pictures, "src")
        else { return nil }
        defer { gst_object_unref(inner) }
        let tracks = FilmTracks(of: origin, sound: sound, pictures: pictures, heard: heard)
        guard let pad = gst_ghost_pad_new("pictures", inner) else { return nil }
        gst_object_ref(pad)
        gst_element_add_pad(bin, pad)
        return (tracks, pad)
    }

    /// Sets it to the pipeline's state: playing or paused.
    func start() { gst_element_sync_state_with_parent(bin) }

    /// Stops it and removes it from the pipeline.
    func remove() {
        gst_element_set_locked_state(bin, 1)
        gst_element_set_state(bin, GST_STATE_NULL)
        pipeline.remove(bin)
    }

    /// Whether the message came from one of its elements.
    func isOrigin(of message: UnsafeMutablePointer<GstMessage>) -> Bool {
        Elements.owns(bin, message)
    }

    /// Whether both have the same output format, so that one can follow the other on the same stream.
    func hasSameFormat(as other: Chain) -> Bool {
        guard let mine = gst_pad_get_current_caps(pad) else { return false }
        defer { gst_caps_unref(mine) }
        guard let theirs = gst_pad_get_current_caps(other.pad) else { return false }
        defer { gst_caps_unref(theirs) }
        return gst_caps_is_equal(mine, theirs) != 0
    }

    /// How much of the source was read, and its size, in bytes; nil if unknown.
    var bytesRead: (done: Int, whole: Int)? {
        var (done, whole) = (0, 0)
        guard gst_element_query_position(origin, GST_FORMAT_BYTES, &done) != 0,
            gst_element_query_duration(origin, GST_FORMAT_BYTES, &whole) != 0, whole > 0, done >= 0
        else { return nil }
        return (min(done, whole), whole)
    }
}
