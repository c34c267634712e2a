/// Media types by file name extension, for choosing a plugin without opening the file.
public enum MediaType {
    /// The media type of a URI or a path, in lower case; nil if the extension is unknown.
    public static func of(_ uri: String) -> String? {
        let path = uri.prefix { $0 != "?" && $0 != "#" }
        guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."), dot != name.startIndex
        else { return nil }
        return byEnding[name[name.index(after: dot)...].lowercased()]
    }

    /// As in freedesktop's shared-mime-info.
    static let byEnding: [String: String] = [
        "3g2": "video/3gpp2", "3gp": "video/3gpp", "aac": "audio/aac", "aif": "audio/x-aiff", "aifc": "audio/x-aiff",
        "aiff": "audio/x-aiff", "au": "audio/basic", "avi": "video/x-msvideo", "caf": "audio/x-caf",
        "flac": "audio/flac", "m2ts": "video/mp2t", "m2v": "video/mpeg", "m3u": "audio/x-mpegurl",
        "m3u8": "audio/x-mpegurl", "m4a": "audio/mp4", "m4b": "audio/x-m4b", "m4v": "video/x-m4v",
        "mid": "audio/midi", "midi": "audio/midi", "mka": "audio/x-matroska", "mkv": "video/x-matroska",
        "mod": "audio/x-mod",
        "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "mpg": "video/mpeg",
        "mts": "video/mp2t", "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/x-opus+ogg",
        "pls": "audio/x-scpls", "wav": "audio/x-wav", "wave": "audio/x-wav", "webm": "video/webm",
        "wma": "audio/x-ms-wma", "wv": "audio/x-wavpack",
    ]
}
