import GStreamerBase
import LiveStreaming

/// Where a live stream is received, and how.
struct LiveSource: Sendable, Hashable {
    enum Method: Sendable, Hashable {
        case rtmp, srt, rtsp
        /// The longest segment of the list, in seconds.
        case hls(segment: Double)
    }

    let uri: String
    let method: Method

    /// The schemes of streams that are always live.
    static let schemes = ["rtmp", "rtmps", "srt", "rtsp", "rtsps"]

    init(_ uri: String, _ method: Method) { (self.uri, self.method) = (uri, method) }

    /// Nil: the address is of another kind.
    init?(_ uri: String) {
        self.uri = uri
        switch uri.split(separator: ":", maxSplits: 1).first?.lowercased() {
        case "rtmp", "rtmps": method = .rtmp
        case "srt": method = .srt
        case "rtsp", "rtsps": method = .rtsp
        default: return nil
        }
    }

    /// The pipeline that receives it, in gst-launch words: the element "source", whose address is set, and mostly "parser".
    var description: String {
        switch method {
        case .rtmp: "rtmp2src name=source timeout=5 idle-timeout=0 ! parsebin name=parser"
        case .srt: "srtsrc name=source auto-reconnect=false ! parsebin name=parser"
        // Lost packets are waited for that long, in milliseconds.
        case .rtsp: "rtspsrc name=source latency=100 tcp-timeout=5000000"
        case .hls: MediaSource.webSource(uri) + " ! parsebin name=parser"
        }
    }

    /// The name of the property with the address.
    var property: String { method == .srt ? "uri" : "location" }

    /// What else may be wrong if it cannot be opened: rtspsrc does not say it.
    var hint: String {
        guard uri.lowercased().hasPrefix("rtsps:") else { return "" }
        let reason = Fault.Insecurity.certificate.text
        return "; if it can be reached, then \(reason), or \(Packages.tls) is not installed here"
    }

    /// Seconds that what is shown is behind what is sent, if nobody says another number.
    var usualDelay: Double {
        switch method {
        // As much as the sound's buffer. A network that needs more gets it.
        case .rtmp, .srt: 0.06
        case .rtsp: 0.1
        // A segment comes as a whole, and the next one as much later.
        case .hls(let segment): 2 * segment
        }
    }

    /// Seconds without anything after which the connection is lost.
    var patience: Double {
        switch method {
        case .rtmp, .srt, .rtsp: 6
        case .hls(let segment): 6 + 2 * segment
        }
    }

    /// Seconds of silence after which all that a server keeps for those who join has arrived.
    var pause: Double {
        switch method {
        case .rtmp, .srt, .rtsp: 0
        case .hls: 0.3
        }
    }
}
