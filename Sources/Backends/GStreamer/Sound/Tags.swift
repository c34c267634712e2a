import CGStreamer
import GStreamerBase
import PluginAPI

extension MediaTags {
    /// Adds the tags of a TAG message; false if none is new.
    mutating func take(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        guard let list = Notice.tags(of: message) else { return false }
        defer { gst_tag_list_unref(list) }
        let before = self
        for (name, place) in MediaTags.texts {
            var text: UnsafeMutablePointer<CChar>?
            guard gst_tag_list_get_string(list, name, &text) != 0, let text else { continue }
            // One page of text is enough for any tag; some files contain books.
            self[keyPath: place] = String(String(cString: text).prefix(1_000))
            g_free(text)
        }
        var number: UInt32 = 0
        if gst_tag_list_get_uint(list, "track-number", &number) != 0 { trackNumber = Int(number) }
        if gst_tag_list_get_uint(list, "album-disc-number", &number) != 0 { discNumber = Int(number) }
        var time: OpaquePointer?
        if gst_tag_list_get_date_time(list, "datetime", &time) != 0, let time {
            defer { gst_date_time_unref(time) }
            if let text = gst_date_time_to_iso8601_string(time) {
                date = String(cString: text)
                g_free(text)
            }
        }
        if artwork == nil { artwork = MediaTags.artwork(in: list) }
        return self != before
    }

    /// A picture larger than this is not a cover.
    private static let artworkLimit = 8 << 20

    private static func artwork(in list: UnsafeMutablePointer<GstTagList>) -> Artwork? {
        var found: OpaquePointer?
        guard
            gst_tag_list_get_sample(list, "image", &found) != 0
                || gst_tag_list_get_sample(list, "preview-image", &found) != 0,
            let sample = found
        else { return nil }
        defer { gst_sample_unref(sample) }
        guard let buffer = gst_sample_get_buffer(sample), let caps = gst_sample_get_caps(sample),
            gst_caps_get_size(caps) > 0, let name = gst_structure_get_name(gst_caps_get_structure(caps, 0))
        else { return nil }
        let size = gst_buffer_get_size(buffer)
        guard size > 0, size <= artworkLimit else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) {
            $1 = Int(gst_buffer_extract(buffer, 0, $0.baseAddress, size))
        }
        return Artwork(bytes: bytes, mimeType: String(cString: name))
    }

    private static var texts: [(String, WritableKeyPath<MediaTags, String?>)] {
        [
            ("title", \.title), ("artist", \.artist), ("album", \.album), ("album-artist", \.albumArtist),
            ("genre", \.genre), ("composer", \.composer), ("comment", \.comment), ("organization", \.organization),
        ]
    }
}
