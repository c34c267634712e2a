import CFilms

/// Checksums by GLib.
public enum Digest {
    /// The MD5 of a text, in hexadecimal: the names of shared thumbnails are made of it. It protects nothing.
    public static func md5(_ text: String) -> String {
        guard let sum = g_compute_checksum_for_string(G_CHECKSUM_MD5, text, -1) else { return "" }
        defer { g_free(sum) }
        return String(cString: sum)
    }
}
