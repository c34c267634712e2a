import CGStreamer
import PluginAPI

extension MediaTags {
    /// Adds what a TAG message says; false where it says nothing new.
    mutating func take(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        var list: UnsafeMutablePointer<GstTagList>?
        gst_message_parse_tag(message, &list)
        guard let list else { return false }
        defer { gst_tag_list_unref(list) }
        let before = self
        for (name, place) in MediaTags.texts {
            var text: UnsafeMutablePointer<CChar>?
            guard gst_tag_list_get_string(list, name, &text) != 0, let text else { continue }
            // A page is enough for any of them; some files carry books.
            self[keyPath: place] = String(String(cString: text).prefix(1_000))
            g_free(text)
        }
        var number: UInt32 = 0
        if gst_tag_list_get_uint(list, "track-number", &number) != 0 { trackNumber = Int(number) }
        return self != before
    }

    private static var texts: [(String, WritableKeyPath<MediaTags, String?>)] {
        [
            ("title", \.title), ("artist", \.artist), ("album", \.album), ("album-artist", \.albumArtist),
            ("genre", \.genre), ("comment", \.comment), ("organization", \.organization),
        ]
    }
}
