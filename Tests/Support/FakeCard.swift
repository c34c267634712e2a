import Foundation

/// A card with jacks for a private PulseAudio: a sink with speaker, earpiece and headphones, and a source with a
/// built-in microphone and a headset's microphone. Its module is in Tests/FakeCard.
public final class FakeCard {
    /// A jack; the raw value is the name of its port at the server. The jacks are empty at first. Speaker, earpiece and
    /// built-in microphone have no jack ("availability unknown").
    public enum Jack: String, Sendable {
        case headphones = "analog-output-headphones"
        case headsetMicrophone = "analog-input-headset-mic"
    }

    public let name: String
    public let sink: String
    public let source: String
    private let pulse: PrivatePulse
    private let modules: [UInt32]

    /// The daemon's uid of each port.
    public var speaker: String { sink + "/analog-output-speaker" }
    public var headphones: String { sink + "/analog-output-headphones" }
    public var earpiece: String { sink + "/output-earpiece" }
    public var builtInMicrophone: String { source + "/analog-input-internal-mic" }
    public var headsetMicrophone: String { source + "/analog-input-headset-mic" }

    /// Adds the card to the server. Its microphone records what plays on the sink `NAME_room`. The server switches
    /// ports by itself if it has module-switch-on-port-available, as desktops do.
    public init(_ pulse: PrivatePulse, name: String = "card") throws {
        (self.pulse, self.name) = (pulse, name)
        sink = name + "_output"
        source = name + "_input"
        let module = pulse.moduleFolder + "/FakeCard.so"
        if !FileManager.default.fileExists(atPath: module) {
            _ = try pulse.folder.folder("modules")
            try FileManager.default.copyItem(atPath: FakeCard.module.get(), toPath: module)
        }
        var modules: [UInt32] = []
        modules.append(
            try pulse.addSink(sink, properties: ["device.class": "sound", "device.api": "alsa", "device.bus": "pci"]))
        modules.append(try pulse.addSink(name + "_room", properties: ["device.class": "filter"]))
        modules.append(
            try pulse.loadModule(
                "module-remap-source source_name=\(source) master=\(name)_room.monitor "
                    + "source_properties=\"device.class='sound' device.api='alsa' device.bus='pci'\""))
        modules.append(try pulse.loadModule("FakeCard name=\(name) sink=\(sink) source=\(source)"))
        self.modules = modules
    }

    public func plug(_ jack: Jack) throws { try tell("plug " + jack.rawValue) }
    public func unplug(_ jack: Jack) throws { try tell("unplug " + jack.rawValue) }

    /// Removes the card.
    public func remove() throws {
        for module in modules.reversed() { try pulse.unloadModule(module) }
    }

    private func tell(_ message: String) throws { try pulse.pactl(["send-message", "/" + name, message]) }

    /// Compiled once for all tests.
    private static let module = Result { () throws -> String in
        try CompilerOfC.build("FakeCard.c", into: "FakeCard.so", ["-shared", "-fPIC"])
    }
}
