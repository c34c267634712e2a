import PluginKit
import Uploads

// Wiring: the plugin for uploads.

PluginProgram(.uploads).main { host, _ in UploadsPlugin(host) }
