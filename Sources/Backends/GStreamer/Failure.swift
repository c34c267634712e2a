import CGStreamer
import Glibc

/// What an error on a pipeline's bus says, for a person.
struct Failure {
    /// What went wrong and what to do.
    let message: String
    /// Another chain of elements may do better: the data was not what it looked like, or a plugin is missing.
    let isAboutFormat: Bool
    /// The sound server is away or refuses: nothing is wrong with the item.
    let isAboutServer: Bool

    /// `missing` is what GStreamer said it has no plugin for, in its words.
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
            // What most often is wrong where others can use theirs.
            let named = getenv("PULSE_SERVER").map { "; PULSE_SERVER is '\(String(cString: $0))'" } ?? ""
            self.init("the sound server cannot be used: \(text)\(named)", isAboutFormat: false, isAboutServer: true)
        } else if source == "source", error.domain == gst_stream_error_quark() {
            // What a source says that finds no server, or ends in the middle, and no more than that: of the way, not of
            // the item.
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
                // The source tries to go on where a connection ended.
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

    /// Redirections are followed; one that is an error has been followed too often.
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
