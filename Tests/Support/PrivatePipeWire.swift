import Foundation

/// PipeWire, WirePlumber and pipewire-pulse for one test, without hardware. Programs find it like a ``PrivatePulse``.
public final class PrivatePipeWire: PrivateServer {
    public let folder: PrivateFolder
    private let sinks: [String]
    private let modules: [String]
    private let bus: PrivateBus
    private let radio: FakeBluetooth?
    /// The programs in the order of their start: PipeWire, its session manager, and its PulseAudio server.
    private var programs: [Child] = []

    public private(set) lazy var control = ServerControl(server: serverString)

    /// Starts the server with null sinks and modules, and waits until it answers and the first sink is the default.
    /// `modules` are lines as for `pactl load-module`. With `start: false`, the server starts only with ``restart()``. Without a
    /// `bus`, it has one of its own.
    public init(
        sinks: [String] = ["speaker"], modules: [String] = [], start: Bool = true, radio: FakeBluetooth? = nil,
        bus: PrivateBus? = nil
    ) throws {
        folder = try PrivateFolder()
        self.bus = try bus ?? PrivateBus()
        self.sinks = sinks
        self.modules = modules
        self.radio = radio
        try PrivatePipeWire.furnish(folder)
        try PrivatePipeWire.withoutHardware(folder, hasRadio: radio != nil)
        if start { try restart() }
    }

    /// The tests must not use the sound cards, cameras and radios of this machine. WirePlumber 0.4 is configured in
    /// Lua, 0.5 with a configuration fragment; each ignores the files of the other.
    private static func withoutHardware(_ folder: PrivateFolder, hasRadio: Bool) throws {
        for name in ["main.lua.d", "bluetooth.lua.d", "wireplumber.conf.d"] {
            _ = try folder.folder("config/wireplumber/" + name)
        }
        try folder.file(
            "config/wireplumber/main.lua.d/51-no-hardware.lua",
            """
            alsa_monitor.enabled = false
            v4l2_monitor.enabled = false
            libcamera_monitor.enabled = false

            """)
        try folder.file(
            "config/wireplumber/bluetooth.lua.d/51-no-hardware.lua",
            """
            bluez_monitor.enabled = \(hasRadio)
            bluez_monitor.properties["bluez5.hfphsp-backend"] = "ofono"
            bluez_monitor.properties["with-logind"] = false
            bluez_midi_monitor = { enabled = false }

            """)
        try folder.file(
            "config/wireplumber/wireplumber.conf.d/51-no-hardware.conf",
            """
            wireplumber.profiles = {
              main = {
                hardware.audio = disabled
                \(hasRadio ? "monitor.bluez.seat-monitoring" : "hardware.bluetooth") = disabled
                monitor.bluez-midi = disabled
                hardware.video-capture = disabled
              }
            }
            monitor.bluez.properties = {
              bluez5.hfphsp-backend = ofono
            }

            """)
    }

    public var processID: Int32 { programs.last?.processID ?? 0 }
    public var isRunning: Bool { programs.count == 3 && programs.allSatisfy { $0.isRunning } }
    public var log: String { programs.flatMap { $0.errors }.joined(separator: "\n") }

    public func restart() throws {
        kill()
        let environment = programEnvironment
        try run("pipewire", environment) { FileManager.default.fileExists(atPath: folder.path + "/run/pipewire-0") }
        try run("wireplumber", environment) { true }
        try run("pipewire-pulse", environment) { accepts() }
        // Before the session manager works, nothing is linked.
        guard try eventually(timeout: 15, { try control.programs().contains("wireplumber") }) else {
            throw SupportError("wireplumber did not connect: \(log)")
        }
        try radio?.wait(for: self)
        for sink in sinks { try addSink(sink) }
        for module in modules { try loadModule(module) }
        guard let first = sinks.first else { return }
        guard
            try eventually(
                timeout: 15,
                {
                    // Before the session manager works, no default can be set, and a client that came before may never
                    // be able to.
                    control.close()
                    _ = try? control.setDefaultSink(first)
                    return try control.defaults().sink == first
                })
        else {
            throw SupportError("\(first) does not become the default sink: \(log)")
        }
    }

    /// Ends only the session manager, and starts it again.
    public func restartSessionManager() throws {
        let environment = programEnvironment
        programs[1].signal(SIGTERM)
        guard programs[1].wait() != nil else { throw SupportError("wireplumber does not end: \(log)") }
        programs[1] = try Child("wireplumber", environment: environment)
    }

    private var programEnvironment: [String: String] {
        var environment = self.environment.merging(bus.environment) { $1 }
        if let radio { environment.merge(radio.environment) { $1 } }
        environment["PULSE_SERVER"] = nil
        return environment
    }

    private func run(_ program: String, _ environment: [String: String], until isReady: () -> Bool) throws {
        let child = try Child(program, environment: environment)
        programs.append(child)
        guard eventually(timeout: 15, { !child.isRunning || isReady() }), child.isRunning else {
            throw SupportError("\(program) did not start: \(log)")
        }
    }

    public func stop() {
        for program in programs.reversed() {
            program.signal(SIGTERM)
            if program.wait(timeout: 10) == nil { program.kill() }
        }
        forget()
    }

    public func kill() {
        for program in programs.reversed() { program.kill() }
        forget()
    }

    public func suspend() {
        for program in programs.reversed() { program.suspend() }
    }

    public func resume() {
        for program in programs { program.resume() }
    }

    private func forget() {
        programs = []
        control.close()
        // A socket without a listener would look like a running server.
        try? FileManager.default.removeItem(atPath: folder.path + "/run/pipewire-0")
    }
}
