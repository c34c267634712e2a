import DBus
import FilmBackend
import Glibc
import MediaValues
import PluginAPI
import PluginKit
import Workers

/// The program for films and pictures: the plugin, its workers, and the thumbnailer for file managers. They are one
/// executable with two names (hard links).
public enum AssetsProgram {
    /// Runs what the words of the command line ask for.
    public static func main(_ words: [String]) -> Never {
        if words.count == 3, words[1] == "--worker", let socket = Int32(words[2]) { FilmWorker.main(socket: socket) }
        if words.first?.split(separator: "/").last == "sessiond-thumbnailer" {
            Thumbnailer.main(Array(words.dropFirst()))
        }
        PluginProgram.main([(.assets, serve)])
    }

    /// Starts the plugin, with the file to check if there is one.
    private static func serve(_ host: PluginHost, _ arguments: PluginArguments) throws(Failure) -> any Plugin {
        let limits = WorkerPool.Limits(workers: sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let workers = Workers(
            "/proc/self/exe", ["--worker"], limits, FilmWorker.answers, on: host.loop
        ) { [unowned host] in host.complain($0) }
        let assets = AssetsPlugin(workers, md5: Digest.md5, on: host.connection, host.loop)
        assets.inhibitor = Inhibitor(
            "sleep", .block, who: "sessiond", why: "A film is being written", on: SystemBus(on: host.loop))
        assets.jobs.onBusyChanged = { host.isBusy = $0 }
        guard let item = arguments.item else { return assets }
        assets.check(FileURI.uri(item)) { message in
            if let message { host.complain(message) }
            host.quit(message == nil ? 0 : 1, ending: assets)
        }
        return assets
    }
}
