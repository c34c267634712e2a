import CPulse
import PluginAPI

/// Which devices were found when a server or PipeWire's session manager started, as opposed to plugged in
/// (docs/adr/0016).
///
/// Devices that appear within a short time after the first one belong together. Which of them is the default was chosen
/// earlier, and must not change because one of them was the last.
struct Enumeration {
    private struct Device: Hashable {
        let isInput: Bool
        let index: UInt32

        init(_ device: PulseDevice) { (isInput, index) = (device.isInput, device.index) }
    }

    private struct Window {
        let begin: UInt64
        private(set) var end: UInt64

        init(_ now: UInt64) { (begin, end) = (now, now &+ Enumeration.pause) }

        /// A device appeared that belongs to it.
        mutating func extend(_ now: UInt64) { end = min(now &+ Enumeration.pause, begin &+ Enumeration.longest) }
    }

    /// Microseconds after the last device within which another one belongs to it; and the limit for all of them.
    static let pause: UInt64 = 3_000_000
    static let longest: UInt64 = 15_000_000
    /// Microseconds after a device within which its ports may appear.
    private static let portDelay: UInt64 = 1_000_000

    private struct Arrival {
        let time: UInt64
        /// Whether it appeared together with others.
        let isEarly: Bool
    }

    private var arrivals: [Device: Arrival] = [:]
    private var isFirst = true
    /// The first devices of the server, or the first after all had gone.
    private var ofServer: Window?
    /// The devices of a session manager that has just started.
    private var ofManager: Window?

    /// The session manager: identified by the client number of its devices, which may be reused, and by the one that is
    /// never reused.
    private var managers: [String: String] = [:]
    /// Session managers that had devices.
    private var started: [String: String] = [:]
    /// Those that have lost all their devices but still exist.
    private var same: Set<String> = []
    private var others: Set<String> = []
    /// Clients that have devices, and (`steady`) clients that still have older ones.
    private var clients: Set<String> = []
    private var steady: Set<String> = []
    private var looksForMissing = false
    /// The session manager is gone, and the next one has no device yet.
    private var lacksManager = false

    /// Whether the clients must be read before these devices are processed. `isLate`: also because of removed devices,
    /// because everything that belonged to them is gone by now.
    mutating func asksForClients(of devices: [PulseDevice], isLate: Bool) -> Bool {
        let devices = devices.filter(Enumeration.counts)
        let before = clients
        clients = Set(devices.compactMap(\.client))
        steady = Set(devices.filter { arrivals[Device($0)] != nil }.compactMap(\.client))
        others.formIntersection(clients)
        // A client with new devices may be another one that reuses the number.
        same.subtract(steady)
        same.subtract(clients.subtracting(before))
        looksForMissing = missing.contains { isLate || clients.contains($0) }
        return looksForMissing || clients.contains { managers[$0] == nil && !others.contains($0) }
    }

    /// Session managers that have lost all their devices.
    private var missing: [String] { started.keys.filter { !steady.contains($0) && !same.contains($0) } }

    /// The clients were read.
    mutating func know(_ all: PulseClients, now: UInt64) {
        managers = all.managers
        others = all.others.union(clients.filter { managers[$0] == nil })
        guard looksForMissing else { return }
        looksForMissing = false
        let lost = missing
        same.formUnion(lost.filter { managers[$0] == started[$0] })
        let gone = lost.filter { !same.contains($0) }
        for client in gone { started[client] = nil }
        // Another one will start if none has.
        if !gone.isEmpty, started.isEmpty {
            ofManager = Window(now)
            lacksManager = true
        }
    }

    private static func counts(_ device: PulseDevice) -> Bool { !device.isNoPort && !device.isFilter }

    /// Processes the devices at time `now`, in microseconds. The first devices existed before, for an unknown time;
    /// but a session manager may just be creating more.
    mutating func update(_ all: [PulseDevice], now: UInt64) {
        let wasEmpty = arrivals.isEmpty
        var present: [Device: Arrival] = [:]
        for device in all where Enumeration.counts(device) {
            let key = Device(device)
            present[key] =
                arrivals[key]
                ?? Arrival(time: isFirst ? 0 : now, isEarly: !isFirst && isEarly(device, wasEmpty, now))
            if let client = device.client, let manager = managers[client], started[client] == nil {
                started[client] = manager
                ofManager = Window(now)
                lacksManager = false
            }
        }
        arrivals = present
        isFirst = false
    }

    /// Whether a new device appeared together with others.
    private mutating func isEarly(_ device: PulseDevice, _ wasEmpty: Bool, _ now: UInt64) -> Bool {
        if wasEmpty, ofServer.map({ $0.end <= now }) ?? true { ofServer = Window(now) }
        if let end = ofServer?.end, now < end {
            ofServer?.extend(now)
            return true
        }
        guard let client = device.client, managers[client] != nil else { return false }
        if started[client] == nil { return true }
        guard let end = ofManager?.end, now < end else { return false }
        ofManager?.extend(now)
        return true
    }

    /// The ports of devices that appeared together, while those devices are new.
    func ports(of devices: [PulseDevice], now: UInt64) -> Set<String> {
        let early = devices.filter { device in
            arrivals[Device(device)].map {
                $0.isEarly && now &- $0.time < Enumeration.portDelay
            } ?? false
        }
        return Set(early.flatMap(\.available).map(\.uid))
    }

    /// Whether the session manager is gone with its devices, and no other one has created any.
    func isManagerAway(_ now: UInt64) -> Bool { lacksManager && ofManager.map { now < $0.end } == true }

    /// The expected end; nil if it has ended.
    func end(_ now: UInt64) -> UInt64? {
        [ofServer, ofManager].compactMap { $0?.end }.filter { now < $0 }.max()
    }
}

/// PipeWire's clients, as far as needed to know who creates devices.
struct PulseClients {
    /// By the client number of their devices: the number that is never reused.
    private(set) var managers: [String: String] = [:]
    private(set) var others: Set<String> = []

    mutating func add(_ info: pa_client_info) {
        guard let number = pa_proplist_gets(info.proplist, "object.id").map({ String(cString: $0) }) else { return }
        if WirePlumberVersion(info) != nil {
            managers[number] = String(orEmpty: pa_proplist_gets(info.proplist, "object.serial"))
        } else {
            others.insert(number)
        }
    }
}
