import AssetCache
import DBus
import Installation
import PluginAPI
import PluginKit
import Uploads

// Wiring: the plugins for uploads and for the cache.

PluginProgram.main([
    (.uploads, { host, _ in UploadsPlugin(host) }),
    (
        .cache,
        { host, _ in
            let settings = SettingsFiles(isSystem: host.bus.isSystem).read { host.complain($0) }
            return NetworkAwareCache(CachePlugin(host, settings.cache), on: host.loop)
        }
    ),
])
