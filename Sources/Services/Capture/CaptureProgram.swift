import DBus
import PluginAPI
import PluginKit

/// The program for cameras.
public enum CaptureProgram {
    public static func main() -> Never {
        PluginProgram(.capture).main { (host, _) throws(Failure) in CapturePlugin(host) }
    }
}
