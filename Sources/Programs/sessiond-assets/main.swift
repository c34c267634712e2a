import FilmBackend
import Glibc
import PluginKit

// Wiring: the plugin for films, its workers, and the thumbnailer for file managers, in one executable with two names
// (hard links).

let words = CommandLine.arguments
if words.count == 3, words[1] == "--worker", let socket = Int32(words[2]) { FilmWorker.main(socket: socket) }
if words.first?.split(separator: "/").last == "sessiond-thumbnailer" { Thumbnailer.main(Array(words.dropFirst())) }
PluginProgram.main([(.assets, serveAssets)])
