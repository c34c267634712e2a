import CFilms
import FileFormats
import Glibc
import TagFormats
import Workers

/// What GStreamer reads of a file wrongly, or not at all.
extension FilmFacts {
    /// GStreamer computes the length of an MPEG stream from its clock, which is not that of its pictures.
    mutating func correctLength() {
        guard ["video/mp2t", "video/mpeg"].contains(mimeType), let times = PresentationTimes(file.path) else { return }
        let rate = video?.rate ?? (0, 1)
        let picture = times.endsWithPictures && rate.0 > 0 ? Double(rate.1) / Double(rate.0) : 0
        let length = times.length + picture
        // A stream that was put together of several begins its times anew.
        if duration == 0 || abs(length - duration) < max(1, duration / 10) { duration = length }
    }

    /// Films whose tags GStreamer reads only in part.
    private static let poorlyRead: Set = ["video/x-ms-asf", "video/x-flv"]

    /// Adds what GStreamer does not read: the tags of Musepack (APEv2), of AIFF and AU, some of Windows Media and of Flash, and
    /// the tags and the length of Apple's CAF.
    mutating func addSoundTags() {
        guard video == nil || Self.poorlyRead.contains(mimeType) else { return }
        let descriptor = open(file.path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let source = SoundSource(size: UInt64(file.size), head: []) {
            FileContent.bytes(of: descriptor, at: Int($0), count: $1)
        }
        guard let found = SoundFile.read(source) else { return }
        let names = [
            "TITLE": "title", "ARTIST": "artist", "ALBUM": "album", "ALBUMARTIST": "album-artist", "GENRE": "genre",
            "COMPOSER": "composer",
        ]
        for (name, tag) in names where gst_tag_list_get_tag_size(tags.list, tag) == 0 {
            if let text = found.first(name) { films_add_tag(tags.list, tag, text) }
        }
        if duration == 0, video == nil, audio == nil { duration = found.duration }
    }
}

extension FilmFacts.Tags {
    /// Texts of at most 1,000 characters, and numbers. Pictures and types that only GStreamer uses are left out.
    var fields: [String: WorkerMessage.Field] {
        var fields: [String: WorkerMessage.Field] = [:]
        for index in 0..<gst_tag_list_n_tags(list) {
            guard let pointer = gst_tag_list_nth_tag_name(list, UInt32(index)) else { continue }
            let name = String(cString: pointer)
            switch films_kind_of_tag(pointer) {
            case films_tag_text:
                var text: UnsafeMutablePointer<CChar>?
                if gst_tag_list_get_string(list, pointer, &text) != 0, let text {
                    let scalars = String(cString: text).unicodeScalars.prefix(1_000)
                    fields[name] = .text(String(String.UnicodeScalarView(scalars)))
                    g_free(text)
                }
            case films_tag_whole:
                var number: UInt32 = 0
                if gst_tag_list_get_uint(list, pointer, &number) != 0 { fields[name] = .whole(Int64(number)) }
            case films_tag_number:
                var number = 0.0
                if gst_tag_list_get_double(list, pointer, &number) != 0 { fields[name] = .number(number) }
            case films_tag_time:
                var time: OpaquePointer?
                guard gst_tag_list_get_date_time(list, pointer, &time) != 0, let time else { break }
                if let iso = gst_date_time_to_iso8601_string(time) {
                    fields[name] = .text(String(cString: iso))
                    g_free(iso)
                }
                gst_date_time_unref(time)
            case films_tag_date:
                var date: UnsafeMutablePointer<GDate>?
                guard gst_tag_list_get_date(list, pointer, &date) != 0, let date else { break }
                if g_date_valid(date) != 0 {
                    // Written here, because g_date_strftime depends on the locale.
                    let parts = [Int(g_date_get_month(date).rawValue), Int(g_date_get_day(date))]
                    fields[name] = .text(
                        ([String(g_date_get_year(date))] + parts.map { ($0 < 10 ? "0" : "") + String($0) })
                            .joined(separator: "-"))
                }
                g_date_free(date)
            default: break
            }
        }
        return fields
    }

    /// The first picture in the tags; owned by the caller.
    var cover: OpaquePointer? {
        var found: OpaquePointer?
        for name in ["image", "preview-image"] where gst_tag_list_get_sample(list, name, &found) != 0 { return found }
        return nil
    }
}
