import PluginAPI
import PluginKit

/// The program of live streams.
public enum LiveProgram {
    public static func main() -> Never {
        PluginProgram(.live).main { host, _ in LivePlugin(host) }
    }
}
