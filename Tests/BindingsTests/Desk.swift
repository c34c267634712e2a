import Foundation
import TestSupport
import Testing

/// A private bus with the daemon, and the environment of a user's shell.
final class Desk {
    let bus: PrivateBus
    let environment: [String: String]
    let daemon: Child

    init(pulse: (any PrivateServer)? = nil, more: [String: String] = [:]) throws {
        let bus = try PrivateBus()
        let program = try builtProduct(named: "sessiond")
        let programs = URL(fileURLWithPath: program).deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        var environment = ["PULSE_SERVER": "unix:\(bus.folder.path)/absent", "LC_ALL": "C.UTF-8"]
        environment.merge(pulse?.environment ?? [:]) { $1 }
        environment.merge(bus.environment) { $1 }
        environment.merge(["PATH": programs + ":" + path, "HOME": bus.folder.path]) { $1 }
        environment.merge(more) { $1 }
        self.bus = bus
        self.environment = environment
        daemon = try Child(program, environment: environment)
        guard eventually({ (try? sessionctl("status")) != nil }) else {
            throw SupportError("sessiond did not start: \(daemon.errors)")
        }
    }

    @discardableResult
    func sessionctl(_ words: String...) throws -> String {
        try Child.run(try builtProduct(named: "sessionctl"), words, environment: environment)
    }

    func start(_ command: String) throws -> Child { try Child("sh", ["-c", command], environment: environment) }

    /// Starts a call. The call ends when the test closes the child's input.
    func call() throws -> Child {
        let call = try start(
            "exec sessionctl run --name Phone --category play-and-record --class call -- sh -c 'echo calling; cat'")
        guard call.line(where: { $0 == "calling" }) != nil else { throw SupportError("no call: \(call.errors)") }
        return call
    }

    /// The radio of an example is silent during a call, and plays on afterwards.
    func expectSilentDuringACall(_ radio: Child) throws {
        #expect(radio.line { $0 == "playing" } != nil, "\(radio.errors)")
        let call = try call()
        #expect(radio.line { $0 == "silent: interrupted by Phone" } != nil, "\(radio.errors)")
        call.closeInput()
        #expect(call.wait() == .code(0))
        #expect(radio.line { $0 == "playing on" } != nil, "\(radio.errors)")
        #expect(radio.output == ["playing", "silent: interrupted by Phone", "playing on"])
    }

    func path(_ name: String) -> String { bus.folder.path + "/" + name }
}
