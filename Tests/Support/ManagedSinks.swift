import Foundation

extension PrivatePipeWire {
    /// Makes the session manager create these sinks one after the other whenever it starts, like those of ALSA; they
    /// end with it. The first has the highest rank, so it is the default if the user chose none. Call this before
    /// ``restart()``.
    public func addManagedSinks(_ names: [String]) throws {
        // A constructed object lives as long as something refers to it.
        let nodes = names.enumerated().map { place, name in
            """
            sinks[\(place + 1)] = LocalNode("adapter", {
              ["factory.name"] = "support.null-audio-sink", ["media.class"] = "Audio/Sink", ["node.name"] = "\(name)",
              ["node.description"] = "\(name)", ["audio.position"] = "FL,FR", ["monitor.channel-volumes"] = "true",
              ["priority.session"] = "\(1_100 - 10 * place)", ["device.api"] = "alsa", ["device.class"] = "sound",
            })
            sinks[\(place + 1)]:activate(Feature.Proxy.BOUND)
            """
        }
        let script = try folder.file("sinks.lua", (["sinks = {}"] + nodes).joined(separator: "\n") + "\n")
        _ = try folder.folder("config/wireplumber/main.lua.d")
        _ = try folder.folder("config/wireplumber/wireplumber.conf.d")
        // The first file is for WirePlumber 0.4, the second for 0.5.
        try folder.file("config/wireplumber/main.lua.d/95-sinks.lua", "load_script(\"\(script)\")\n")
        try folder.file(
            "config/wireplumber/wireplumber.conf.d/95-sinks.conf",
            """
            wireplumber.components = [
              {
                name = "\(script)", type = script/lua, provides = test.sinks
                requires = [ support.export-core, pw.node-factory.adapter ]
              }
            ]
            wireplumber.profiles = { main = { test.sinks = required } }

            """)
    }

    /// The chosen defaults that WirePlumber has written to disk, as "key=value" lines.
    public var rememberedDefaults: [String] {
        let text = try? String(contentsOfFile: folder.path + "/state/wireplumber/default-nodes", encoding: .utf8)
        return (text ?? "").split(separator: "\n").map(String.init).filter { $0.hasPrefix("default.") }
    }

    /// Writes chosen defaults to disk as WirePlumber does, the last chosen one first.
    public func remember(defaultSinks names: [String], defaultSource: String? = nil) throws {
        _ = try folder.folder("state/wireplumber")
        let lines = names.enumerated().map { place, name in
            "default.configured.audio.sink" + (place == 0 ? "" : ".\(place - 1)") + "=" + name
        }
        let source = defaultSource.map { ["default.configured.audio.source=" + $0] } ?? []
        try folder.file(
            "state/wireplumber/default-nodes", (["[default-nodes]"] + lines + source).joined(separator: "\n") + "\n")
    }
}
