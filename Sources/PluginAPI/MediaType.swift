/// Media types by file name extension, for choosing a plugin without opening the file.
public enum MediaType {
    /// The media type of a URI, in lower case; nil if the extension is unknown.
    public static func of(_ uri: String) -> String? { ofFile(String(uri.prefix { $0 != "?" && $0 != "#" })) }

    /// The same of a path, or of the name of a file: both may have all characters.
    public static func ofFile(_ path: String) -> String? {
        guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."), dot != name.startIndex
        else { return nil }
        return byEnding[name[name.index(after: dot)...].lowercased()]
    }

    /// As in freedesktop's shared-mime-info.
    static let byEnding: [String: String] = [
        "3g2": "video/3gpp2", "3gp": "video/3gpp", "aac": "audio/aac", "aif": "audio/x-aiff", "aifc": "audio/x-aiff",
        "aiff": "audio/x-aiff", "asf": "video/x-ms-asf", "au": "audio/basic", "avi": "video/x-msvideo",
        "caf": "audio/x-caf", "divx": "video/x-msvideo", "dv": "video/dv", "f4v": "video/mp4", "flac": "audio/flac",
        "flv": "video/x-flv", "m2t": "video/mp2t", "m2ts": "video/mp2t", "m2v": "video/mpeg", "m3u": "audio/x-mpegurl",
        "m3u8": "audio/x-mpegurl", "m4a": "audio/mp4", "m4b": "audio/x-m4b", "m4v": "video/x-m4v", "mid": "audio/midi",
        "midi": "audio/midi", "mk3d": "video/x-matroska", "mka": "audio/x-matroska", "mkv": "video/x-matroska",
        "mod": "audio/x-mod", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpe": "video/mpeg",
        "mpeg": "video/mpeg", "mpg": "video/mpeg", "mts": "video/mp2t", "oga": "audio/ogg", "ogg": "audio/ogg",
        "ogm": "video/x-ogm+ogg", "ogv": "video/ogg", "opus": "audio/x-opus+ogg", "pls": "audio/x-scpls",
        "qt": "video/quicktime", "ts": "video/mp2t", "vob": "video/mpeg", "wav": "audio/x-wav", "wave": "audio/x-wav",
        "webm": "video/webm", "wma": "audio/x-ms-wma", "wmv": "video/x-ms-wmv", "wv": "audio/x-wavpack",
    ]
}
