package import CGStreamer

/// A message of a pipeline's bus, read in one place for both drivers: the one on a loop, and the one that waits in a worker.
package enum Notice: Sendable, Hashable {
    /// All sinks have their first data, or have it again after a seek.
    case prerolled
    case ended
    case segmentDone
    case durationChanged
    case failed(Fault)
    /// GStreamer has no plugin for a format; in its words.
    case lacksPlugin(String)
    /// See ``tags(of:)``.
    case tags
    /// How full the buffer of a stream is, in percent.
    case buffered(Int)
    /// From a probe of ours.
    case application
    /// From an element, such as its levels.
    case element
    case other

    package init(_ message: UnsafeMutablePointer<GstMessage>) {
        switch message.pointee.type {
        case GST_MESSAGE_ASYNC_DONE: self = .prerolled
        case GST_MESSAGE_EOS: self = .ended
        case GST_MESSAGE_SEGMENT_DONE: self = .segmentDone
        case GST_MESSAGE_DURATION_CHANGED: self = .durationChanged
        case GST_MESSAGE_ERROR: self = .failed(Fault(message))
        case GST_MESSAGE_TAG: self = .tags
        case GST_MESSAGE_BUFFERING:
            var percent: gint = 0
            gst_message_parse_buffering(message, &percent)
            self = .buffered(Int(percent))
        case GST_MESSAGE_APPLICATION: self = .application
        case GST_MESSAGE_ELEMENT:
            guard let structure = gst_message_get_structure(message),
                gst_structure_has_name(structure, "missing-plugin") != 0
            else {
                self = .element
                return
            }
            self = gst_structure_get_string(structure, "name").map { .lacksPlugin(String(cString: $0)) } ?? .other
        default: self = .other
        }
    }

    /// The tags of a message of that kind, which the caller owns.
    package static func tags(of message: UnsafeMutablePointer<GstMessage>) -> UnsafeMutablePointer<GstTagList>? {
        var list: UnsafeMutablePointer<GstTagList>?
        gst_message_parse_tag(message, &list)
        return list
    }
}
