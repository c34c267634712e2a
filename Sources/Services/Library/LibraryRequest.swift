import MediaLibrary
import PluginAPI
import Workers

/// The requests of the library to its workers. Paths are bytes of the file system.
enum LibraryRequest {
    /// Lists a folder.
    struct Walk: WorkerRequest {
        static let name = "walk"
        var path: [UInt8] = []
        /// The folder of the library in which it is.
        var root: [UInt8] = []
        /// Whether the folders below it are listed too.
        var isDeep = true

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            try coder.bytes("root", &root)
            try coder.flag("deep", &isDeep)
        }
    }

    /// Reads the tags of files.
    struct Tags: WorkerRequest {
        static let name = "tags"
        var files: [File] = []
        /// The encoding of texts in tags that do not state one.
        var encoding = Settings.TagEncoding.latin1

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.list("files", &files)
            try coder.word("encoding", &encoding)
        }
    }

    struct File: WorkerRequest {
        static let name = "file"
        /// The number of the request. It is not that of the file, which may have another number after an answer before.
        var id = 0
        var path: [UInt8] = []
        /// How many bytes of the path are the folder of the library; 0: it is in none any more.
        var base = 0
        /// The word of the type of everything in that folder; nil: the tags decide.
        var type: String?
        /// Whether the fingerprint of a former version is answered too: some items are still known by it.
        var wantsFormer = false

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.whole("id", &id)
            try coder.bytes("path", &path)
            try coder.whole("base", &base)
            try coder.text("type", &type)
            try coder.flag("former", &wantsFormer)
        }
    }

    /// Reads the cover of a file.
    struct Art: WorkerRequest {
        static let name = "art"
        var path: [UInt8] = []
        /// The largest width and height in pixels; 0: as it is.
        var size = 0

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.bytes("path", &path)
            try coder.whole("size", &size)
        }
    }
}
