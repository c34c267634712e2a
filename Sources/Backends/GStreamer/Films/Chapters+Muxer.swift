import CFilms
import GStreamerBase
import PluginAPI

/// Chapters for GStreamer's muxers.
extension Chapters {
    /// Gives the chapters to a muxer that writes them: those of Matroska and WebM do.
    /// - Parameter end: the end of the last chapter, in seconds.
    static func write(_ chapters: [MediaChapter], until end: Double, to muxer: UnsafeMutablePointer<GstElement>) {
        guard !chapters.isEmpty, films_sets_contents(muxer) != 0, let contents = gst_toc_new(GST_TOC_SCOPE_GLOBAL)
        else {
            return
        }
        defer { films_contents_free(contents) }
        let edition = gst_toc_entry_new(GST_TOC_ENTRY_TYPE_EDITION, "edition")
        gst_toc_entry_set_start_stop_times(edition, 0, gint64(end * 1e9))
        for (index, chapter) in chapters.enumerated() {
            let entry = gst_toc_entry_new(GST_TOC_ENTRY_TYPE_CHAPTER, "chapter\(index + 1)")
            let stop = index + 1 < chapters.count ? chapters[index + 1].start : max(end, chapter.start)
            gst_toc_entry_set_start_stop_times(entry, gint64(chapter.start * 1e9), gint64(stop * 1e9))
            if let tags = gst_tag_list_new_empty() {
                films_add_tag(tags, "title", chapter.title)
                gst_toc_entry_set_tags(entry, tags)
            }
            gst_toc_entry_append_sub_entry(edition, entry)
        }
        gst_toc_append_entry(contents, edition)
        gst_toc_setter_set_toc(OpaquePointer(muxer), contents)
    }
}
