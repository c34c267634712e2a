import CGStreamer
import Glibc

/// Whether GLib finds the description (schema) of the desktop's proxy settings.
///
/// Elements that connect by GIO, such as those of RTMP and HTTP, ask it for a proxy. glib-networking then opens these settings,
/// and GLib ends a process that opens settings without a description: on a system whose descriptions were not compiled, or with
/// an `XDG_DATA_DIRS` that leaves them out. Then there is no proxy of a desktop either.
package enum DesktopProxy {
    private static let schema = "org.gnome.system.proxy"

    package static var isKnown: Bool { files.contains(where: names) }

    /// The compiled descriptions, where GLib looks for them.
    private static var files: [String] {
        let own = getenv("GSETTINGS_SCHEMA_DIR").map { String(cString: $0).split(separator: ":").map(String.init) }
        var data = [String(cString: g_get_user_data_dir())]
        if let folders = g_get_system_data_dirs() {
            var place = 0
            while let folder = folders[place] {
                data.append(String(cString: folder))
                place += 1
            }
        }
        return ((own ?? []) + data.map { $0 + "/glib-2.0/schemas" }).map { $0 + "/gschemas.compiled" }
    }

    private static func names(_ file: String) -> Bool {
        guard let mapping = g_mapped_file_new(file, 0, nil) else { return false }
        defer { g_mapped_file_unref(mapping) }
        guard let bytes = g_mapped_file_get_contents(mapping) else { return false }
        var rest = UnsafeRawBufferPointer(start: bytes, count: Int(g_mapped_file_get_length(mapping)))[...]
        while rest.count >= schema.utf8.count, let base = rest.base.baseAddress,
            let found = memchr(base + rest.startIndex, Int32(schema.utf8.first ?? 0), rest.count)
        {
            rest = rest[(UnsafeRawPointer(found) - base)...]
            if rest.starts(with: schema.utf8) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
