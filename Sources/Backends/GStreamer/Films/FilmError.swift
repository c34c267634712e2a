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
            self.init(.decoderNotFound, FilmError.isMissing([plugin]))
            self.missing = plugin
        case .unknownFormat: self.init(.formatNotSupported, "it is no film or sound in a known format (\(text))")
        case .noDecoder: self.init(.decoderNotFound, text)
        case .encrypted: self.init(.notSupported, "it is encrypted")
        case .damaged: self.init(.decodeFailed, "it is damaged, or its format is not what its name says (\(text))")
        case .noSpaceLeft: self.init(.diskFull, "no space is left on the disk")
        case .notFound: self.init(.notFound, "it does not exist")
        case .notWritten: self.init(.exportFailed, text)
        case .notAuthorized, .notSeekable, .redirection, .notRead:
            self.init(.decodeFailed, "it cannot be read: \(text)")
        case .core, .other, .none: self.init(.decodeFailed, text)
        }
    }

    /// A message that names the packages to install for the plugins that GStreamer describes.
    static func isMissing(_ names: [String]) -> String {
        let list = names.map { "\($0) (\(Packages.package(for: $0)))" }.joined(separator: ", ")
        return "nothing that is installed reads it: \(list) is missing"
    }
}
