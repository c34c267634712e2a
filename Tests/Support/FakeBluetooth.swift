import Foundation

/// A Bluetooth headset for a private PulseAudio or PipeWire: mocks of BlueZ and oFono on a system bus of their own, and
/// the server's real Bluetooth modules.
public final class FakeBluetooth {
    public enum Profile: String, Sendable {
        /// Music: a sink.
        case a2dp
        /// Telephony: a sink and a microphone, 8 kHz. The microphone records a tone of 500 Hz.
        case hfp
    }

    /// The name of the headset's card at the server.
    public let card = "bluez_card.02_00_00_00_00_02"
    private let bus: PrivateBus
    private let mock: Child

    /// Whether PipeWire's Bluetooth plugin is installed (Debian's libspa-0.2-bluetooth).
    public static let isKnownToPipeWire: Bool = {
        let folders = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? []
        return folders.contains {
            FileManager.default.fileExists(atPath: "/usr/lib/\($0)/spa-0.2/bluez5/libspa-bluez5.so")
        }
    }()

    /// Starts the mocks. Start PulseAudio with ``environment``, then call ``attach(to:)``; or give it to a
    /// ``PrivatePipeWire``.
    public init() throws {
        bus = try PrivateBus()
        let script = URL(fileURLWithPath: #filePath).deletingPathExtension().appendingPathExtension("py").path
        // Debian's Python, because another one in PATH may lack the D-Bus module.
        mock = try Child(
            "/usr/bin/python3", [script], environment: ["PATH": searchPath].merging(bus.environment) { $1 })
        guard mock.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the mock of BlueZ did not start: \(mock.errors)")
        }
    }

    /// Environment variables for the server.
    public var environment: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": bus.address] }

    /// Loads the server's Bluetooth modules and waits until they have found the mocks.
    public func attach(to pulse: PrivatePulse) throws {
        try pulse.loadModule("module-bluez5-discover headset=ofono")
        guard mock.line(where: { $0 == "registered" }) != nil,
            mock.line(where: { $0 == "agent registered" }) != nil
        else { throw SupportError("PulseAudio does not find the mock of BlueZ: \(pulse.log) \(mock.errors)") }
    }

    /// Waits until PipeWire has found the mocks.
    func wait(for pipeWire: PrivatePipeWire) throws {
        guard mock.line(where: { $0 == "registered" }) != nil else {
            throw SupportError("PipeWire does not find the mock of BlueZ: \(pipeWire.log) \(mock.errors)")
        }
    }

    /// The card appears when both profiles are connected, or some seconds after the first one.
    public func connect(_ profile: Profile) throws { try tell("connect \(profile.rawValue)") }
    public func disconnect(_ profile: Profile) throws { try tell("disconnect \(profile.rawValue)") }

    private func tell(_ command: String) throws {
        let before = mock.text.split(separator: "\n").filter { $0 == "done " + command }.count
        mock.send(command)
        let isDone = eventually {
            mock.text.split(separator: "\n").filter { $0 == "done " + command }.count > before
        }
        guard isDone else { throw SupportError("\(command): \(mock.output.last ?? "") \(mock.errors)") }
    }
}
