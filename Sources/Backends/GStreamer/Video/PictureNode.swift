import CGStreamer
import CStreaming
import EventLoop
import GStreamerBackend
import GStreamerBase
import Glibc
import PluginAPI

/// The pictures of films as a node of PipeWire, from which other programs read them.
///
/// It has pipelines of its own, which never wait and are made again after an error, and when a reader hangs (``NodeWatch``). The film
/// does not notice. The node has one size until it is hidden, so that its readers stay with it for the next film.
final class PictureNode {
    private let name: String
    private let loop: EventLoop
    /// Owned here, together with the sinks.
    private let relay: OpaquePointer
    /// The connection to the server; −1: none.
    private var server: Int32 = -1
    /// Tells its end: GStreamer's sink takes pictures for a server that is gone, and says nothing.
    private var ending: IOWatch?
    private var sender: FarPipeline?
    /// It is always there; see ``NodeWatch``.
    private var reader: FarPipeline?
    private var rate: (numerator: Int32, denominator: Int32) = (30, 1)
    /// Errors of the last seconds.
    private var failures = 0
    private var watch = NodeWatch()
    private lazy var restart = Timer(on: loop) { [unowned self] in start() }
    private lazy var calm = Timer(on: loop) { [unowned self] in failures = 0 }
    private lazy var beat = Timer(on: loop) { [unowned self] in look() }

    /// Of its pictures; unknown while there is no node.
    private(set) var size = PictureSize.unknown

    /// The larger sides of larger films are made this long.
    private static let largest = PictureSize(width: 3_840, height: 2_160)
    /// How often a picture that stands is sent, in seconds: a reader that comes while a film is paused sees it.
    private static let beatTime = 0.2

    init(named name: String, on loop: EventLoop) throws(SessionError) {
        guard Runtime.find(["pipewiresink"]) != nil else {
            throw SessionError(
                .notSupported, "GStreamer cannot give pictures to PipeWire: install gstreamer1.0-pipewire")
        }
        guard PipeWireSocket.answers else {
            throw SessionError(
                .notSupported, "no PipeWire server can be reached: start pipewire, or choose another output")
        }
        (self.name, self.loop, relay) = (name, loop, shim_relay_new())
    }

    deinit {
        close()
        shim_relay_free(UnsafeMutableRawPointer(relay))
    }

    /// What the sink gets is in it, as the pictures of a new film.
    func draw(from sink: Elements.Element) { shim_relay_take_from(relay, sink) }

    /// Adds the node, for films like this one, if it is not there.
    func show(for picture: PictureSize, rate: (numerator: Int32, denominator: Int32)?) {
        guard size == .unknown else { return }
        size = Self.even(Placement.window(for: picture, on: Self.largest))
        self.rate = rate ?? (30, 1)
        shim_relay_set_size(relay, gint(size.width), gint(size.height))
        start()
    }

    func hide() {
        guard size != .unknown else { return }
        for timer in [restart, calm, beat] { timer.disarm() }
        size = .unknown
        close()
        shim_relay_set_size(relay, 0, 0)
    }

    /// The format of what ``draw(from:)`` takes, for a film in its place.
    func format(of picture: PictureSize, _ scaling: MovieScaling) -> String {
        let place = Placement(of: picture, in: size, scaling)
        let wanted = Self.even(PictureSize(width: place.width, height: place.height))
        return "\(Self.pixels),width=\(wanted.width),height=\(wanted.height),pixel-aspect-ratio=1/1"
    }

    /// The pixels that all readers know, and that need one plane.
    static let pixels = "video/x-raw,format=YUY2"

    /// Pixels come in pairs.
    private static func even(_ size: PictureSize) -> PictureSize {
        PictureSize(width: max(2, (size.width + 1) / 2 * 2), height: max(2, (size.height + 1) / 2 * 2))
    }

    private func start() {
        close()
        server = PipeWireSocket.connect() ?? -1
        guard server >= 0, let made = makeSender() else { return fail() }
        // Without an event to wait for, it gets the end alone.
        ending = IOWatch(on: loop, descriptor: server, events: []) { [unowned self] _ in fail() }
        made.onFailed = { [unowned self] in fail() }
        sender = made
        watch = NodeWatch()
        beat.arm(after: Self.beatTime)
    }

    private func makeSender() -> FarPipeline? {
        let format =
            "\(Self.pixels),width=\(size.width),height=\(size.height),framerate=\(rate.numerator)/\(rate.denominator),"
            + "pixel-aspect-ratio=1/1"
        // Without drop-allocation, the node crashes with PipeWire 0.3 and gives nothing with 1.4.
        return FarPipeline(
            "appsrc name=entry is-live=true do-timestamp=true format=time leaky-type=downstream max-buffers=2 max-bytes=0 "
                + "! identity drop-allocation=true ! pipewiresink name=end mode=provide", on: loop
        ) { [name, relay, server] bin in
            guard let entry = Elements.child("entry", of: bin), let end = Elements.child("end", of: bin),
                let caps = gst_caps_from_string(format), let properties = gst_structure_new_empty("properties")
            else { return false }
            shim_set_caps(entry, caps)
            gst_caps_unref(caps)
            for (key, value) in [
                ("media.class", "Video/Source"), ("media.role", "Camera"), ("node.name", name),
                ("node.description", name),
                // Programs that want a camera take a real one first.
                ("priority.session", "1"),
            ] {
                shim_structure_set_string(properties, key, value)
            }
            shim_set_int(end, "fd", server)
            shim_set_string(end, "client-name", name)
            shim_set_structure(end, "stream-properties", properties)
            gst_structure_free(properties)
            shim_relay_give_to(relay, entry)
            return true
        }
    }

    private func makeReader() -> FarPipeline? {
        FarPipeline(
            "pipewiresrc name=entry do-timestamp=true ! \(Self.pixels) ! fakesink name=end sync=false async=false "
                + "enable-last-sample=false", on: loop
        ) { [name, server] bin in
            guard let entry = Elements.child("entry", of: bin) else { return false }
            shim_set_int(entry, "fd", server)
            shim_set_string(entry, "target-object", name)
            // It becomes the name of a node, and must be another one.
            shim_set_string(entry, "client-name", "sessiond-movie reads " + name)
            return true
        }
    }

    private func close() {
        shim_relay_give_to(relay, nil)
        (sender, reader, ending) = (nil, nil, nil)
        if server >= 0 { Glibc.close(server) }
        server = -1
    }

    /// A reader hangs, or the server is gone.
    private func fail() {
        beat.disarm()
        close()
        failures += 1
        calm.arm(after: 5)
        restart.arm(after: failures <= 5 ? 0.01 : 1)
    }

    private func look() {
        guard let sender else { return }
        beat.arm(after: Self.beatTime)
        // It is there with its first picture.
        if reader == nil, sender.count > 0 { readAgain() }
        switch watch.beat(sent: sender.count, read: reader?.count ?? 0) {
        case .well: shim_relay_repeat(relay, gint64(Self.beatTime * 0.9 * 1e6))
        case .readAgain: readAgain()
        case .makeAgain: fail()
        }
    }

    private func readAgain() {
        reader = makeReader()
        reader?.onFailed = { [unowned self] in reader = nil }
    }
}
