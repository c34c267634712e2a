import Foundation
import TestSupport
import Testing

/// The radio in Rust (`Examples/Rust`). It only runs if `Scripts/check rust` has built it and passes its path.
@Suite(.serialized) struct RustTests {
    @Test func radioInRust_isSilentDuringACall_andResumes_ifItIsBuilt() throws {
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

    /// The proxies in the example agree with the interface descriptions.
    @Test func proxies_matchTheInterfaces() throws {
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
