package import CGStreamer
package import PluginAPI

/// The chapters in a table of contents of GStreamer, in the order of their times.
package enum Chapters {
    /// Nil: the message, which is borrowed, has no table of contents.
    package static func read(_ message: UnsafeMutablePointer<GstMessage>) -> [MediaChapter]? {
        guard message.pointee.type == GST_MESSAGE_TOC else { return nil }
        var table: OpaquePointer?
        var isUpdate: gboolean = 0
        gst_message_parse_toc(message, &table, &isUpdate)
        guard let table else { return nil }
        defer { gst_mini_object_unref(UnsafeMutableRawPointer(table).assumingMemoryBound(to: GstMiniObject.self)) }
        return read(table)
    }

    /// - Parameter table: a `GstToc`, which is borrowed.
    package static func read(_ table: OpaquePointer) -> [MediaChapter] {
        var found: [MediaChapter] = []
        collect(gst_toc_get_entries(table), into: &found)
        return found.sorted { $0.start < $1.start }
    }

    /// Of several editions the first, and of chapters in chapters the outer ones.
    private static func collect(_ list: UnsafeMutablePointer<GList>?, into found: inout [MediaChapter]) {
        var link = list
        while let entry = link?.pointee.data.map({ OpaquePointer($0) }), found.count < limit {
            link = link?.pointee.next
            switch gst_toc_entry_get_entry_type(entry) {
            case GST_TOC_ENTRY_TYPE_EDITION:
                if found.isEmpty { collect(gst_toc_entry_get_sub_entries(entry), into: &found) }
            case GST_TOC_ENTRY_TYPE_CHAPTER:
                var (start, stop): (gint64, gint64) = (0, 0)
                guard gst_toc_entry_get_start_stop_times(entry, &start, &stop) != 0, start >= 0 else { continue }
                found.append(MediaChapter(start: Times.seconds(UInt(start)), title: title(of: entry)))
            default: break
            }
        }
    }

    /// More than any film has.
    private static let limit = 10_000

    private static func title(of entry: OpaquePointer) -> String {
        guard let tags = gst_toc_entry_get_tags(entry) else { return "" }
        var text: UnsafeMutablePointer<CChar>?
        guard gst_tag_list_get_string(tags, "title", &text) != 0, let text else { return "" }
        defer { g_free(text) }
        return String(String(cString: text).prefix(1_000))
    }
}
