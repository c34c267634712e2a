import CGStreamer
import GStreamerBackend
import GStreamerBase
import Glibc
import PluginAPI

/// The elements of the filters of a live stream. They come behind the scaling: texts and logos have the same size in every
/// stream of a size.
enum LiveFilters {
    /// An element with its name, for the description of a pipeline. Texts and paths are set by ``set(_:in:)``: they may contain
    /// anything.
    private static func element(_ filter: LiveFilter, _ number: Int) -> String {
        let name = "name=filter\(number)"
        return switch filter {
        case .mirror: "videoflip \(name) video-direction=horiz"
        case .smooth: "smooth \(name)"
        case .brightness(let value): "videobalance \(name) brightness=\(value)"
        case .contrast(let value): "videobalance \(name) contrast=\(value)"
        case .saturation(let value): "videobalance \(name) saturation=\(value)"
        case .text: "textoverlay \(name) valignment=bottom halignment=center wait-text=false"
        case .interruptionText:
            "textoverlay \(name) valignment=center halignment=center shaded-background=true wait-text=false silent=true"
        case .logo: "gdkpixbufoverlay \(name) offset-x=-16 offset-y=16"
        }
    }

    /// Empty: no filter.
    static func chain(_ filters: [LiveFilter]) -> String {
        filters.enumerated().map { element($1, $0) }.joined(separator: " ! ")
    }

    /// - Throws: `ResourceNotAvailable` with the package, `BadParameter` for a logo that is not there.
    static func require(_ filters: [LiveFilter]) throws(SessionError) {
        for filter in filters {
            let (element, package) =
                switch filter {
                case .mirror: ("videoflip", "gstreamer1.0-plugins-good")
                case .smooth: ("smooth", Packages.others)
                case .brightness, .contrast, .saturation: ("videobalance", "gstreamer1.0-plugins-good")
                case .text, .interruptionText: ("textoverlay", "gstreamer1.0-x")
                case .logo: ("gdkpixbufoverlay", "gstreamer1.0-plugins-good")
                }
            guard Runtime.find([element]) != nil else {
                throw SessionError(
                    .resourceNotAvailable,
                    "the filter '\(filter.word)' needs \(element) of GStreamer: install \(package)")
            }
            if case .logo(let path) = filter, access(path, R_OK) != 0 {
                throw .badParameter("the logo '\(path)' cannot be read: \(String(cString: strerror(errno)))")
            }
        }
    }

    /// Sets the texts and the paths.
    static func set(_ filters: [LiveFilter], in pipeline: Pipeline) {
        for (number, filter) in filters.enumerated() {
            guard let element = pipeline.child("filter\(number)") else { continue }
            switch filter {
            case .text(let text), .interruptionText(let text): shim_set_string(element, "text", escaped(text))
            case .logo(let path): shim_set_string(element, "location", path)
            case .mirror, .smooth, .brightness, .contrast, .saturation: break
            }
        }
    }

    /// Shows or hides the texts about an interruption.
    static func tell(_ isInterrupted: Bool, _ filters: [LiveFilter], in pipeline: Pipeline) {
        for (number, filter) in filters.enumerated() {
            guard case .interruptionText = filter, let element = pipeline.child("filter\(number)") else { continue }
            shim_set_bool(element, "silent", isInterrupted ? 0 : 1)
        }
    }

    /// The element reads markup.
    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.append(character)
            }
        }
    }
}
