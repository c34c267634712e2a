import CGStreamer
import Glibc

/// An error from a pipeline's bus, as text for the user.
struct Failure {
    /// The error, and what the user can do.
    let message: String
    /// Other elements may be able to play it: the data is not what its first bytes suggested, or a plugin is missing.
    let isAboutFormat: Bool
    /// The sound server is away or refuses; the item itself is fine.
    let isAboutServer: Bool

    /// `missing`: GStreamer's name of the format for which it has no plugin.
    init(_ message: UnsafeMutablePointer<GstMessage>, item: String, missing: String?) {
        var pointer: UnsafeMutablePointer<GError>?
        var detail: UnsafeMutablePointer<CChar>?
        gst_message_parse_error(message, &pointer, &detail)
        defer {
            if let pointer { g_error_free(pointer) }
            g_free(detail)
        }
        guard let error = pointer?.pointee else {
            self.init("'\(item)' cannot be played: GStreamer gave no reason", isAboutFormat: false)
            return
        }
        let text = String(cString: error.message)
        let code = UInt32(bitPattern: error.code)
        let source = message.pointee.src.map { String(cString: $0.pointee.name) } ?? ""
        // pulsesink and pulsesrc are named "sink" and "device" in our pipelines.
        let isServer = source == "sink" || source == "device"
        if let missing {
            self.init(
                "'\(item)' cannot be played: no plugin for \(missing) is installed; "
                    + "gstreamer1.0-libav and gstreamer1.0-plugins-bad have most",
                isAboutFormat: true)
        } else if isServer, error.domain == gst_resource_error_quark() {
            // The most common reason if other programs can use the server.
            let named = getenv("PULSE_SERVER").map { "; PULSE_SERVER is '\(String(cString: $0))'" } ?? ""
            self.init("the sound server cannot be used: \(text)\(named)", isAboutFormat: false, isAboutServer: true)
        } else if source == "source", error.domain == gst_stream_error_quark() {
            // A source reports this if it finds no server, or if the connection breaks: the network failed, not the
            // item.
            self.init(
                "'\(item)' cannot be read: its server cannot be reached, or stopped sending; "
                    + "check the URL and the network",
                isAboutFormat: false)
        } else if error.domain == gst_stream_error_quark() {
            let reason =
                switch code {
                case GST_STREAM_ERROR_TYPE_NOT_FOUND.rawValue, GST_STREAM_ERROR_WRONG_TYPE.rawValue:
                    "it is not audio in a known format"
                case GST_STREAM_ERROR_CODEC_NOT_FOUND.rawValue: "no decoder for it is installed"
                case GST_STREAM_ERROR_DECRYPT.rawValue, GST_STREAM_ERROR_DECRYPT_NOKEY.rawValue: "it is encrypted"
                default: "it is damaged, or its format is not what its name says"
                }
            self.init("'\(item)' cannot be played: \(reason) (\(text))", isAboutFormat: true)
        } else if error.domain == gst_resource_error_quark() {
            let reason =
                switch code {
                case GST_RESOURCE_ERROR_NO_SPACE_LEFT.rawValue: "no space is left on the disk"
                case GST_RESOURCE_ERROR_NOT_FOUND.rawValue: "it does not exist"
                case GST_RESOURCE_ERROR_NOT_AUTHORIZED.rawValue: "access to it is not allowed"
                // After a broken connection, the source tries to continue at the same place.
                case GST_RESOURCE_ERROR_SEEK.rawValue: "the connection ended too early and cannot be resumed"
                case _ where Failure.isRedirection(message): "the server redirects in a loop"
                default: text
                }
            self.init(
                source == "file" ? "'\(item)': \(reason)" : "'\(item)' cannot be read: \(reason)", isAboutFormat: false)
        } else {
            self.init("'\(item)': \(text)", isAboutFormat: error.domain == gst_core_error_quark())
        }
    }

    /// Redirections are followed; they become an error only if there are too many.
    private static func isRedirection(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        var details: UnsafePointer<GstStructure>?
        gst_message_parse_error_details(message, &details)
        var status: UInt32 = 0
        guard let details, gst_structure_get_uint(details, "http-status-code", &status) != 0 else { return false }
        return (300..<400).contains(status)
    }

    init(_ message: String, isAboutFormat: Bool, isAboutServer: Bool = false) {
        self.message = message
        self.isAboutFormat = isAboutFormat
        self.isAboutServer = isAboutServer
    }
}
