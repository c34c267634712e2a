import DBus
import SessionBus

/// Keeps the machine awake while work is under way (`org.freedesktop.login1.Manager.Inhibit`).
///
/// login1 hands over a file descriptor, and the lock lasts as long as that is open: also if this process is killed, nothing
/// stays behind. Without login1 nothing happens.
public final class Inhibitor {
    public enum Mode: String, Sendable {
        /// The machine does not fall asleep.
        case block
        /// It waits a few seconds, in which what is under way can be brought to a safe state. Release the lock then.
        case delay
    }

    /// What is kept from happening: one or more of `sleep`, `shutdown` and `idle`, with colons between.
    private let what: String
    private let mode: Mode
    private let who: String
    private let why: String
    private let system: SystemBus
    private var lock: FileDescriptor?
    private var isAsking = false

    /// - Parameters:
    ///   - who: the name of the program, and `why`: its reason, for people who ask what keeps their machine awake.
    ///   - system: where login1 is. The lock is asked for as soon as that bus has answered.
    public init(_ what: String = "sleep", _ mode: Mode, who: String, why: String, on system: SystemBus) {
        (self.what, self.mode, self.who, self.why, self.system) = (what, mode, who, why, system)
    }

    /// Whether the machine shall be kept from it.
    public var isHeld = false {
        didSet {
            if !isHeld { lock = nil } else if lock == nil { ask() }
        }
    }

    private func ask() {
        guard !isAsking else { return }
        isAsking = true
        system.whenKnown { [weak self] in self?.ask($0) }
    }

    private func ask(_ bus: Connection?) {
        guard let bus, isHeld else {
            isAsking = false
            return
        }
        bus.call(
            "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "Inhibit",
            [.string(what), .string(who), .string(why), .string(mode.rawValue)]
        ) { [weak self] answer in
            guard let self else { return }
            isAsking = false
            // Where it is not wanted any more, the descriptor is closed with the answer.
            guard isHeld, case .success(let values) = answer else { return }
            lock = values.first?.fileDescriptorValue
        }
    }
}
