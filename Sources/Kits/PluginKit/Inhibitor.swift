import DBus
import SessionBus

/// Prevents or delays sleep while a task runs (`org.freedesktop.login1.Manager.Inhibit`).
///
/// login1 returns a file descriptor. The lock lasts until it is closed, also when this process is killed. Without
/// login1, this has no effect.
public final class Inhibitor {
    public enum Mode: String, Sendable {
        /// The machine cannot go to sleep.
        case block
        /// The machine waits a few seconds, in which tasks can reach a safe state. Release the lock then.
        case delay
    }

    /// The inhibited actions: one or more of `sleep`, `shutdown` and `idle`, separated by colons.
    private let what: String
    private let mode: Mode
    private let who: String
    private let why: String
    private let system: SystemBus
    private var lock: FileDescriptor?
    private var isAsking = false

    /// - Parameters:
    ///   - who: the name of the program; `why`: its reason. Tools show both to users.
    ///   - system: the bus of login1. The lock is requested as soon as that bus has answered.
    public init(_ what: String = "sleep", _ mode: Mode, who: String, why: String, on system: SystemBus) {
        (self.what, self.mode, self.who, self.why, self.system) = (what, mode, who, why, system)
    }

    /// Whether the lock is wanted.
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
            // If the lock is not wanted any more, the descriptor is closed with the answer.
            guard isHeld, case .success(let values) = answer else { return }
            lock = values.first?.fileDescriptorValue
        }
    }
}
