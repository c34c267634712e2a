import GStreamerBase
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

    /// `missing`: the plugin that GStreamer reported as missing before.
    init(_ fault: Fault, missing: String?) {
        let text = fault.text
        switch Fault(fault, missing: missing).reason {
        case .missing(let plugin):
            self = FilmError.lacking([plugin])
            self.missing = plugin
        case .unknownFormat: self.init(.formatNotSupported, "it is no film or sound in a known format (\(text))")
        case .noDecoder: self.init(.decoderNotFound, text)
        case .encrypted: self = .encrypted
        case .damaged: self.init(.decodeFailed, "it is damaged, or its format is not what its name says (\(text))")
        case .noSpaceLeft: self.init(.diskFull, "no space is left on the disk")
        case .notFound: self.init(.notFound, "it does not exist")
        case .notWritten: self.init(.exportFailed, text)
        case .notAuthorized, .notSeekable, .redirection, .notRead:
            self.init(.decodeFailed, "it cannot be read: \(text)")
        case .empty:
            self.init(.decodeFailed, "it has no sound and no pictures that can be read; it may be cut off or damaged")
        case .core, .other, .none: self.init(.decodeFailed, text)
        }
    }

    private static let encrypted = FilmError(.notSupported, "it is encrypted")

    /// The plugins that GStreamer describes are missing.
    static func lacking(_ names: [String]) -> FilmError {
        // GStreamer looks for a plugin that decrypts: `application/x-cenc decoder`.
        if names.contains(where: { $0.includes("x-cenc") }) { return encrypted }
        let list = names.map(FilmRuntime.advice).joined(separator: ", ")
        return FilmError(.decoderNotFound, "nothing that is installed reads it; missing: \(list)")
    }
}
