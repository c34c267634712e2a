import GStreamerBase
import Glibc

/// A fault of a pipeline, as text for the user.
struct Failure {
    /// The error, and what the user can do.
    let message: String
    /// Other elements may be able to play it: the data is not what its first bytes suggested, or a plugin is missing.
    let isAboutFormat: Bool
    /// The sound server is away or refuses; the item itself is fine.
    let isAboutServer: Bool

    /// `missing`: GStreamer's name of the format for which it has no plugin.
    init(_ fault: Fault, item: String, missing: String?) {
        // pulsesink and pulsesrc are named "sink" and "device" in our pipelines.
        let isServer = fault.origin == "sink" || fault.origin == "device"
        let isStreamOfSource = fault.origin == "source" && fault.isAboutStream
        let reason = Fault(fault, missing: missing).reason
        switch reason {
        case .none: self.init("'\(item)' cannot be played: GStreamer gave no reason", isAboutFormat: false)
        case .missing(let plugin): self.init(lacking: plugin, item: item)
        case _ where isServer && fault.isAboutResource:
            // The most common reason if other programs can use the server.
            let named = getenv("PULSE_SERVER").map { "; PULSE_SERVER is '\(String(cString: $0))'" } ?? ""
            self.init(
                "the sound server cannot be used: \(fault.text)\(named)", isAboutFormat: false, isAboutServer: true)
        case _ where isStreamOfSource:
            // A source reports this if it finds no server, or if the connection breaks: the network failed, not the
            // item.
            self.init(
                "'\(item)' cannot be read: its server cannot be reached, or stopped sending; "
                    + "check the URL and the network",
                isAboutFormat: false)
        case .unknownFormat: self.init(item, "it is not audio in a known format", fault)
        case .noDecoder: self.init(item, "no decoder for it is installed", fault)
        case .encrypted: self.init(item, "it is encrypted", fault)
        case .damaged: self.init(item, "it is damaged, or its format is not what its name says", fault)
        case .noSpaceLeft: self.init(item, unread: "no space is left on the disk", fault)
        case .notFound: self.init(item, unread: "it does not exist", fault)
        case .notAuthorized: self.init(item, unread: "access to it is not allowed", fault)
        case .notSeekable:
            self.init(
                item,
                unread: "its server cannot send a part of it, which is needed for an index at its end, and to go on "
                    + "after the connection has ended; download it first", fault)
        case .redirection: self.init(item, unread: "the server redirects in a loop", fault)
        case .notWritten, .notRead: self.init(item, unread: fault.text, fault)
        case .empty: self.init("'\(item)' cannot be played: nothing in it can be heard", isAboutFormat: true)
        case .core: self.init("'\(item)': \(fault.text)", isAboutFormat: true)
        case .other: self.init("'\(item)': \(fault.text)", isAboutFormat: false)
        }
    }

    /// GStreamer has no plugin for a format, as it describes it.
    init(lacking plugin: String, item: String) {
        self.init(
            "'\(item)' cannot be played: no plugin for \(plugin) is installed; "
                + "\(Packages.decoders) and \(Packages.others) have most",
            isAboutFormat: true)
    }

    /// A picture was loaded as a film.
    init(picture item: String, _ isAnimation: Bool) {
        self.init(
            isAnimation
                ? "'\(item)' cannot be played: it is a GIF animation; 'sessionctl export' makes a film of it"
                : "'\(item)' cannot be played: it is a picture, not a film",
            isAboutFormat: false)
    }

    private init(_ item: String, _ reason: String, _ fault: Fault) {
        self.init("'\(item)' cannot be played: \(reason) (\(fault.text))", isAboutFormat: true)
    }

    private init(_ item: String, unread reason: String, _ fault: Fault) {
        self.init(
            fault.origin == "file" ? "'\(item)': \(reason)" : "'\(item)' cannot be read: \(reason)",
            isAboutFormat: false)
    }

    init(_ message: String, isAboutFormat: Bool, isAboutServer: Bool = false) {
        self.message = message
        self.isAboutFormat = isAboutFormat
        self.isAboutServer = isAboutServer
    }
}
