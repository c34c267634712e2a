/// The Debian packages that have what GStreamer lacks, for messages.
package enum Packages {
    package static let decoders = "gstreamer1.0-libav"
    package static let others = "gstreamer1.0-plugins-bad"
    package static let tls = "glib-networking"

    /// The package that most likely has a plugin, from GStreamer's description of it, such as `H.265 decoder`.
    package static func package(for plugin: String) -> String { plugin.hasSuffix("decoder") ? decoders : others }
}
