import Foundation

/// NetworkManager and login1 as mocks on a bus that stands for the system bus.
public final class FakeMachine {
    private let mock: Child

    public init(on bus: PrivateBus, metered: Int? = nil) throws {
        let script = URL(fileURLWithPath: #filePath).deletingPathExtension().appendingPathExtension("py").path
        // Debian's own Python, whatever else is first in PATH.
        mock = try Child(
            "/usr/bin/python3", [script], environment: ["PATH": searchPath].merging(bus.environment) { $1 })
        guard mock.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the mock of NetworkManager did not start: \(mock.errors)")
        }
        if let metered { try tell("metered \(metered)") }
    }

    /// Sends a command; FakeMachine.py lists them.
    public func tell(_ command: String) throws {
        func count() -> Int { mock.text.split(separator: "\n").filter { $0 == "done " + command }.count }
        let before = count()
        mock.send(command)
        guard eventually({ count() > before }) else { throw SupportError("\(command): \(mock.errors)") }
    }

    /// Who took and released locks against sleep, in order.
    public var locks: [String] {
        mock.text.split(separator: "\n").filter { $0.hasPrefix("lock") || $0 == "unlock" }.map(String.init)
    }
}
