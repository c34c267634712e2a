import ArgumentParser
import DBus
import EventLoop
import Glibc
import MediaShare
import PluginAPI

/// `sessionctl library share`.
struct LibraryShareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Show the library to televisions and speakers, through Rygel.",
        discussion: """
            Offers the library on the bus as org.gnome.UPnP.MediaServer2.sessiond, until ctrl-C. Rygel, with its plug-in \
            External, shows it on the network by UPnP and DLNA: every device on the network can play the music.
            """)

    @Option(help: "The name that televisions and speakers show.")
    var name = "Music"
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try LibraryPlace(bus)
        let server: MediaServer
        do throws(Failure) {
            server = try MediaServer(place.place, on: place.service.connection, name: name, suffix: "sessiond")
        } catch {
            throw place.service.complaint(error)
        }
        let loop = place.service.loop
        var complaint: Complaint?
        func end(_ reason: Complaint) {
            complaint = reason
            loop.quit(reason.code)
        }
        let gone = place.service.connection.watchName(place.place) {
            end(Complaint.refused("the music library has ended"))
        }
        place.service.connection.onDisconnect = { end(Complaint.unreachable("the bus connection was lost")) }
        let signals = [SIGINT, SIGTERM, SIGHUP].map { number in loop.watch(signal: number) { loop.quit(128 + number) } }
        Output.line("the library is shared as \(name.escaped); ctrl-C ends it")
        let code = loop.run()
        if let complaint { Output.complain(complaint.message) }
        Output.end(code, keeping: (server, gone, signals))
    }
}
