package import CGStreamer
import CStreaming
package import GStreamerBackend
import GStreamerBase

/// Encoded pictures and sound, each at a tee: a connection to a server and a recording are branches of both, so that there is
/// one encoder for all.
package struct EncodedStreams {
    package let pipeline: Pipeline
    /// After h264parse and aacparse; `allow-not-linked` is set.
    package let pictures: UnsafeMutablePointer<GstElement>
    /// Nil: there is no sound.
    package let sound: UnsafeMutablePointer<GstElement>?

    /// - Parameters: names of the tees in the pipeline.
    package init?(in pipeline: Pipeline, pictures: String, sound: String?) {
        guard let tee = pipeline.child(pictures) else { return nil }
        (self.pipeline, self.pictures) = (pipeline, tee)
        self.sound = sound.flatMap { pipeline.child($0) }
        if sound != nil, self.sound == nil { return nil }
    }
}
