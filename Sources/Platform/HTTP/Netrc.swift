import Glibc

/// The file with users and passwords that libcurl reads by itself (``HTTPRequest/usesNetrc``).
public enum Netrc {
    /// Whether the file exists: a request may then have used a password from it.
    public static var isThere: Bool {
        var home = getenv("HOME").map { String(cString: $0) } ?? ""
        if home.isEmpty, let user = getpwuid(geteuid()) { home = String(cString: user.pointee.pw_dir) }
        return access(home + "/.netrc", F_OK) == 0
    }
}
