import DBus
import PluginKit

/// The program of the music library: the plugin and its workers.
public enum LibraryProgram {
    /// Runs what the words of the command line ask for.
    public static func main(_ words: [String]) -> Never {
        if words.count == 3, words[1] == "--worker", let socket = Int32(words[2]) {
            LibraryWorker.main(socket: socket)
        }
        PluginProgram(.library).main { (host, _) throws(Failure) in try LibraryPlugin(host) }
    }
}
