import FilmBackend
import Glibc
import MediaValues
import PluginAPI
import Workers

/// `sessiond-thumbnailer`: makes thumbnails for file managers (`/usr/share/thumbnailers`). It needs no bus and no
/// daemon, because some file managers run it in a sandbox.
enum Thumbnailer {
    /// The kernel ends the process, and so its child, after this many seconds.
    private static let patience: UInt32 = 20
    private static let usage = """
        Usage: sessiond-thumbnailer FILE|URI OUTPUT [SIZE]

        Writes a PNG picture of a film, or of the cover of a sound, into OUTPUT; SIZE is the longer side in pixels, 1 to
        4096 (default: 256).


        """

    static func main(_ words: [String]) -> Never {
        if ["--help", "-h"].contains(words.first) {
            print(usage, terminator: "")
            exit(0)
        }
        let side = words.count == 3 ? Int(words[2]) ?? 0 : 256
        guard words.count == 2 || words.count == 3, (1...4096).contains(side) else { fail(usage, 64) }
        // The argument must not be read as an option by another program, and it may be a URI.
        guard let bytes = words[0].hasPrefix("/") ? Array(words[0].utf8) : FileURI.path(of: FileURI.uri(words[0]))
        else {
            fail("'\(words[0])' is no file on this machine", 1)
        }
        // The output is opened first: afterwards the process can no longer open files for writing.
        let output = open(words[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard output >= 0 else { fail("'\(words[1])' cannot be written: \(String(cString: strerror(errno)))", 1) }
        alarm(patience)
        WorkerProcess.continueInChild()
        switch FilmWorker.thumbnail(path: bytes, side: side) {
        case .failure(let error): fail("'\(words[0])': \(error.reason)", 1)
        case .success(let picture):
            var rest = picture[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(output, $0.baseAddress, $0.count) }
                guard count > 0 else { fail("'\(words[1])' cannot be written: \(String(cString: strerror(errno)))", 1) }
                rest = rest.dropFirst(count)
            }
            _exit(0)
        }
    }

    private static func fail(_ text: String, _ code: Int32) -> Never {
        let bytes = Array("sessiond-thumbnailer: \(printable(text))\n".utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
        _exit(code)
    }
}
