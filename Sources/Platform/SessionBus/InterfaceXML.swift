/// The daemon's interface descriptions of data/dbus, for introspection. Those of the plugins are embedded in PluginKit.
public enum InterfaceXML {
    public static let manager = fragment(PackageResources.org_sessiond1_Manager_xml)
    public static let session = fragment(PackageResources.org_sessiond1_Session_xml)
    public static let plugins = fragment(PackageResources.org_sessiond1_Plugins_xml)

    /// Only the `<interface>` element, without the comments, which are for readers of the file.
    package static func fragment(_ bytes: [UInt8]) -> String {
        var lines: [Substring] = []
        var isInside = false
        var isComment = false
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("<interface") { isInside = true }
            if text.hasPrefix("<!--") { isComment = true }
            if isInside, !isComment { lines.append(line) }
            if isComment, text.hasSuffix("-->") { isComment = false }
            if text.hasPrefix("</interface") { isInside = false }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
