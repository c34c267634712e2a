import CFilms
import FileFormats

/// Chapters as GStreamer's tables of contents.
enum Chapters {
    /// The chapters of the first edition, without those inside others, in the order of their times.
    static func read(_ contents: OpaquePointer) -> [FilmChapter] {
        var chapters: [FilmChapter] = []
        var link = gst_toc_get_entries(contents)
        while let item = link, chapters.isEmpty {
            if let entry = item.pointee.data.map({ OpaquePointer($0) }) {
                if gst_toc_entry_is_alternative(entry) != 0 {
                    each(gst_toc_entry_get_sub_entries(entry)) { chapters.append($0) }
                } else {
                    each(link) { chapters.append($0) }
                }
            }
            link = item.pointee.next
        }
        return chapters.sorted { $0.start < $1.start }
    }

    private static func each(_ entries: UnsafeMutablePointer<GList>?, _ body: (FilmChapter) -> Void) {
        var link = entries
        while let item = link {
            link = item.pointee.next
            guard let entry = item.pointee.data.map({ OpaquePointer($0) }), gst_toc_entry_is_sequence(entry) != 0 else {
                continue
            }
            var (start, stop): (gint64, gint64) = (0, 0)
            guard gst_toc_entry_get_start_stop_times(entry, &start, &stop) != 0, start >= 0 else { continue }
            var title: UnsafeMutablePointer<CChar>?
            if let tags = gst_toc_entry_get_tags(entry) { gst_tag_list_get_string(tags, "title", &title) }
            body(FilmChapter(start: Double(start) / 1e9, title: title.map { String(cString: $0) } ?? ""))
            g_free(title)
        }
    }

    /// Gives the chapters to a muxer that writes them: those of Matroska and WebM do.
    /// - Parameter end: the end of the last chapter, in seconds.
    static func write(_ chapters: [FilmChapter], until end: Double, to muxer: UnsafeMutablePointer<GstElement>) {
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
