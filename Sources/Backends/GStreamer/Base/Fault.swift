package import CGStreamer
import PluginAPI

/// Why a pipeline failed: the one table from GStreamer's errors to reasons. What people read, and which error a client gets,
/// is made from the reason.
package struct Fault: Sendable, Hashable {
    package enum Reason: Sendable, Hashable {
        /// A plugin is missing for this format, as GStreamer describes it; see ``Packages``.
        case missing(String)
        // Errors of the stream.
        case unknownFormat
        case noDecoder
        case encrypted
        /// Or the format is not what the name says.
        case damaged
        // Errors of a resource.
        case noSpaceLeft
        case notFound
        case notAuthorized
        /// After a broken connection, the source tries to continue at the same place.
        case notSeekable
        case notWritten
        /// The server redirects in a loop: other redirections are followed.
        case redirection
        case notRead
        // All others.
        /// No track was found before the end. GStreamer takes this for a missing plugin, but then it names the plugin.
        case empty
        case core
        case other
        /// GStreamer gave none.
        case none
    }

    /// Why a connection with TLS cannot be made.
    package enum Insecurity: Sendable, Hashable {
        /// GLib has no TLS.
        case unavailable
        /// The certificate of the server is signed by nobody who is known here, is for another name, or is out of date.
        case certificate

        /// For people, with what to do.
        package var text: String {
            switch self {
            case .unavailable: "GLib has no TLS: install \(Packages.tls)"
            case .certificate:
                "the certificate of the server is not valid: nobody who is known here has signed it, it is for another "
                    + "name, or it is out of date (trust one of your own: copy it to /usr/local/share/ca-certificates and run "
                    + "update-ca-certificates)"
            }
        }
    }

    package let reason: Reason
    /// GStreamer's own words, for one who mends it.
    package let text: String
    /// The name of the element that failed.
    package let origin: String
    /// Nil: it was not about TLS.
    package let insecurity: Insecurity?

    /// The data is the problem, not how it was read.
    package var isAboutStream: Bool {
        switch reason {
        case .unknownFormat, .noDecoder, .encrypted, .damaged: true
        case .missing, .noSpaceLeft, .notFound, .notAuthorized, .notSeekable, .notWritten, .redirection, .notRead,
            .empty, .core, .other, .none:
            false
        }
    }

    /// A file, a device or a server is the problem.
    package var isAboutResource: Bool {
        switch reason {
        case .noSpaceLeft, .notFound, .notAuthorized, .notSeekable, .notWritten, .redirection, .notRead: true
        case .missing, .unknownFormat, .noDecoder, .encrypted, .damaged, .empty, .core, .other, .none: false
        }
    }

    /// From a message of the type ERROR.
    package init(_ message: UnsafeMutablePointer<GstMessage>) {
        var pointer: UnsafeMutablePointer<GError>?
        var words: UnsafeMutablePointer<gchar>?
        gst_message_parse_error(message, &pointer, &words)
        defer {
            if let pointer { g_error_free(pointer) }
            g_free(words)
        }
        let origin = message.pointee.src.map { String(cString: $0.pointee.name) } ?? ""
        let fault = Fault(pointer, origin: origin)
        let code = UInt32(bitPattern: pointer?.pointee.code ?? 0)
        let isRedirection = pointer?.pointee.domain == gst_resource_error_quark() && Self.isRedirection(message, code)
        (reason, text, self.origin) = (isRedirection ? .redirection : fault.reason, fault.text, origin)
        insecurity = Self.insecurity(words.map { String(cString: $0) } ?? "") ?? fault.insecurity
    }

    /// From an error without a message.
    package init(_ pointer: UnsafeMutablePointer<GError>?, origin: String = "") {
        self.origin = origin
        guard let error = pointer?.pointee else {
            (reason, text, insecurity) = (.none, "GStreamer gave no reason", nil)
            return
        }
        text = String(cString: error.message)
        insecurity = Self.insecurity(text)
        let code = UInt32(bitPattern: error.code)
        switch error.domain {
        case gst_stream_error_quark(): reason = Self.stream(code)
        case gst_resource_error_quark(): reason = Self.resource(code)
        case gst_core_error_quark(): reason = code == GST_CORE_ERROR_MISSING_PLUGIN.rawValue ? .empty : .core
        default: reason = .other
        }
    }

    /// The same fault, if a plugin was reported as missing before it.
    package init(_ fault: Fault, missing: String?) {
        reason = missing.map { .missing($0) } ?? fault.reason
        (text, origin, insecurity) = (fault.text, fault.origin, fault.insecurity)
    }

    /// GLib's error is a part of GStreamer's one, as its number in the words for developers, or in its own words.
    private static func insecurity(_ text: String) -> Insecurity? {
        if ["g-tls-error-quark, code 2", "Unacceptable TLS certificate"].contains(where: text.includes) {
            return .certificate
        }
        if ["g-tls-error-quark, code 0", "TLS support is not available", "TLS/SSL support not available"]
            .contains(where: text.includes)
        {
            return .unavailable
        }
        return nil
    }

    private static func stream(_ code: UInt32) -> Reason {
        switch code {
        case GST_STREAM_ERROR_TYPE_NOT_FOUND.rawValue, GST_STREAM_ERROR_WRONG_TYPE.rawValue: .unknownFormat
        case GST_STREAM_ERROR_CODEC_NOT_FOUND.rawValue: .noDecoder
        case GST_STREAM_ERROR_DECRYPT.rawValue, GST_STREAM_ERROR_DECRYPT_NOKEY.rawValue: .encrypted
        default: .damaged
        }
    }

    private static func resource(_ code: UInt32) -> Reason {
        switch code {
        case GST_RESOURCE_ERROR_NO_SPACE_LEFT.rawValue: .noSpaceLeft
        case GST_RESOURCE_ERROR_NOT_FOUND.rawValue: .notFound
        case GST_RESOURCE_ERROR_NOT_AUTHORIZED.rawValue: .notAuthorized
        case GST_RESOURCE_ERROR_SEEK.rawValue: .notSeekable
        case GST_RESOURCE_ERROR_WRITE.rawValue: .notWritten
        default: .notRead
        }
    }

    /// Only errors that have no better reason carry the status of a redirection.
    private static func isRedirection(_ message: UnsafeMutablePointer<GstMessage>, _ code: UInt32) -> Bool {
        guard resource(code) == .notRead || resource(code) == .notWritten else { return false }
        var details: UnsafePointer<GstStructure>?
        gst_message_parse_error_details(message, &details)
        var status: UInt32 = 0
        guard let details, gst_structure_get_uint(details, "http-status-code", &status) != 0 else { return false }
        return (300..<400).contains(status)
    }
}
