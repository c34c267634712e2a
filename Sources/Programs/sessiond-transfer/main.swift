import PluginKit

// Wiring: the plugin for uploads.

PluginProgram(.uploads).main { host, _ in UploadsPlugin(host) }
