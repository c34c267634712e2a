import CFilms
import PluginAPI

/// Why an operation on a film failed.
struct FilmError: Error {
    let code: SessionError.Code
    let message: String
    /// The missing plugins, as GStreamer describes them.
    var missing: String?

    init(_ code: SessionError.Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// From an error on the bus of a pipeline. `missing`: the plugin that GStreamer reported as missing before.
    init(_ message: UnsafeMutablePointer<GstMessage>, missing: String?) {
        var pointer: UnsafeMutablePointer<GError>?
        gst_message_parse_error(message, &pointer, nil)
        defer { if let pointer { g_error_free(pointer) } }
        guard let error = pointer?.pointee else {
            self.init(.decodeFailed, "GStreamer gave no reason")
            return
        }
        let text = String(cString: error.message)
        let code = UInt32(bitPattern: error.code)
        if let missing {
            self.init(.decoderNotFound, FilmError.isMissing([missing]))
            self.missing = missing
        } else if error.domain == gst_stream_error_quark() {
            switch code {
            case GST_STREAM_ERROR_TYPE_NOT_FOUND.rawValue, GST_STREAM_ERROR_WRONG_TYPE.rawValue:
                self.init(.formatNotSupported, "it is no film or sound in a known format (\(text))")
            case GST_STREAM_ERROR_CODEC_NOT_FOUND.rawValue: self.init(.decoderNotFound, text)
            case GST_STREAM_ERROR_DECRYPT.rawValue, GST_STREAM_ERROR_DECRYPT_NOKEY.rawValue:
                self.init(.notSupported, "it is encrypted")
            default: self.init(.decodeFailed, "it is damaged, or its format is not what its name says (\(text))")
            }
        } else if error.domain == gst_resource_error_quark() {
            switch code {
            case GST_RESOURCE_ERROR_NO_SPACE_LEFT.rawValue: self.init(.diskFull, "no space is left on the disk")
            case GST_RESOURCE_ERROR_NOT_FOUND.rawValue: self.init(.notFound, "it does not exist")
            case GST_RESOURCE_ERROR_WRITE.rawValue: self.init(.exportFailed, text)
            default: self.init(.decodeFailed, "it cannot be read: \(text)")
            }
        } else {
            self.init(.decodeFailed, text)
        }
    }

    /// A message that names the packages to install for the plugins that GStreamer describes.
    static func isMissing(_ names: [String]) -> String {
        let list = names.map { "\($0) (\(package(for: $0)))" }.joined(separator: ", ")
        return "nothing that is installed reads it: \(list) is missing"
    }

    /// The Debian package that most likely contains the plugin.
    static func package(for name: String) -> String {
        name.hasSuffix("decoder") ? "gstreamer1.0-libav" : "gstreamer1.0-plugins-bad"
    }
}
