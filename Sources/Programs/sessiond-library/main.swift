import DBus
import Glibc
import PluginKit

// Wiring: the plugin of the library, and its workers.

let words = CommandLine.arguments
if words.count == 3, words[1] == "--worker", let socket = Int32(words[2]) { LibraryWorker.main(socket: socket) }
PluginProgram(.library).main { (host, _) throws(Failure) in try LibraryPlugin(host) }
