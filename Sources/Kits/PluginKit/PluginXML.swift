import SessionBus

/// Interface descriptions for plugins whose objects are in another module.
package enum PluginXML {
    package static let assets = InterfaceXML.fragment(PackageResources.org_sessiond1_Assets_xml)
    package static let capture = InterfaceXML.fragment(PackageResources.org_sessiond1_Capture_xml)
    package static let captureSession = InterfaceXML.fragment(PackageResources.org_sessiond1_CaptureSession_xml)
    package static let library = InterfaceXML.fragment(PackageResources.org_sessiond1_Library_xml)
    package static let assetCache = InterfaceXML.fragment(PackageResources.org_sessiond1_AssetCache_xml)
    package static let live = InterfaceXML.fragment(PackageResources.org_sessiond1_Live_xml)
    package static let liveStream = InterfaceXML.fragment(PackageResources.org_sessiond1_LiveStream_xml)
    package static let moviePlayer = InterfaceXML.fragment(PackageResources.org_sessiond1_MoviePlayer_xml)
    package static let uploads = InterfaceXML.fragment(PackageResources.org_sessiond1_Uploads_xml)
}
