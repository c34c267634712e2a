import CFilms

/// The tags that say where a film was made.
enum PlaceTags {
    private static let names = [
        GST_TAG_GEO_LOCATION_LATITUDE, GST_TAG_GEO_LOCATION_LONGITUDE, GST_TAG_GEO_LOCATION_ELEVATION,
        GST_TAG_GEO_LOCATION_NAME, GST_TAG_GEO_LOCATION_COUNTRY, GST_TAG_GEO_LOCATION_CITY,
        GST_TAG_GEO_LOCATION_SUBLOCATION, GST_TAG_GEO_LOCATION_HORIZONTAL_ERROR,
        GST_TAG_GEO_LOCATION_MOVEMENT_DIRECTION, GST_TAG_GEO_LOCATION_MOVEMENT_SPEED,
        GST_TAG_GEO_LOCATION_CAPTURE_DIRECTION,
    ]

    /// Whether a field with a name of its own says it. Matroska and Vorbis have such fields: `LOCATION=…`, `geo…`.
    static func isPlace(comment: String) -> Bool {
        // Of its bytes, because a letter with an accent would be another character. The bit makes small letters.
        let start = comment.utf8.prefix(8).map { $0 | 0x20 }
        return start.elementsEqual("location".utf8) || start.starts(with: "geo".utf8)
    }

    /// A copy of the tags without them, which the caller owns; nil: no memory.
    static func removed(from tags: UnsafePointer<GstTagList>) -> UnsafeMutablePointer<GstTagList>? {
        guard let list = gst_tag_list_copy(tags) else { return nil }
        for name in names { gst_tag_list_remove_tag(list, name) }
        for index in 0..<gst_tag_list_get_tag_size(list, GST_TAG_EXTENDED_COMMENT) {
            var text: UnsafePointer<CChar>?
            guard gst_tag_list_peek_string_index(list, GST_TAG_EXTENDED_COMMENT, index, &text) != 0, let text,
                isPlace(comment: String(cString: text))
            else { continue }
            // They cannot be removed one by one.
            gst_tag_list_remove_tag(list, GST_TAG_EXTENDED_COMMENT)
            break
        }
        return list
    }
}
