import Glibc

/// The file with users and passwords that libcurl reads by itself (``HTTPRequest/usesNetrc``).
public enum Netrc {
    /// Whether there is one: a request may have had a password of it.
    public static var isThere: Bool {
        var home = getenv("HOME").map { String(cString: $0) } ?? ""
        if home.isEmpty, let user = getpwuid(geteuid()) { home = String(cString: user.pointee.pw_dir) }
        return access(home + "/.netrc", F_OK) == 0
    }
}
