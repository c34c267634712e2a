import Foundation
import TestSupport
import Testing

/// The radio in Rust (`Examples/Rust`). It runs where `Scripts/check rust` has built it and names it.
@Suite(.serialized) struct RustTests {
    @Test func radioInRust_isSilentDuringACallAndPlaysOn_whereItWasBuilt() throws {
        guard let program = ProcessInfo.processInfo.environment["SESSIOND_EXAMPLE_RUST"] else { return }
        let desk = try Desk()
        let radio = try Child(program, environment: desk.environment)
        #expect(radio.line { $0 == "playing" } != nil, "\(radio.errors)")
        let call = try desk.call()
        #expect(radio.line { $0 == "silent: interrupted by Phone" } != nil, "\(radio.errors)")
        call.closeInput()
        #expect(call.wait() == .code(0))
        #expect(radio.line { $0 == "playing on" } != nil, "\(radio.errors)")
        #expect(radio.output == ["playing", "silent: interrupted by Phone", "playing on"])
    }

    /// What is written there of the interfaces is what they are.
    @Test func proxies_areThoseOfTheInterfaces() throws {
        let source = try String(contentsOfFile: repository.path + "/Examples/Rust/src/main.rs", encoding: .utf8)
        for (interface, member) in [("Manager", "CreateSession"), ("Session", "Activate")] {
            #expect(source.contains("interface = \"org.sessiond1.\(interface)\""))
            let text = try String(
                contentsOfFile: repository.path + "/data/dbus/org.sessiond1.\(interface).xml", encoding: .utf8)
            #expect(text.contains("<method name=\"\(member)\">"))
        }
        #expect(source.contains("fn create_session(") && source.contains("fn activate("))
    }
}
