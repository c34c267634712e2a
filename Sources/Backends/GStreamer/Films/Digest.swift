import CFilms

/// Checksums by GLib.
public enum Digest {
    /// The MD5 of a text, in hexadecimal. The Thumbnail Managing Standard names thumbnails by it; it is not used for
    /// security.
    public static func md5(_ text: String) -> String {
        guard let sum = g_compute_checksum_for_string(G_CHECKSUM_MD5, text, -1) else { return "" }
        defer { g_free(sum) }
        return String(cString: sum)
    }
}
