import Foundation
import TestSupport
import Testing

/// The radio in Rust (`Examples/Rust`). It only runs if `Scripts/check rust` has built it and passes its path.
@Suite(.serialized) struct RustTests {
    @Test func radioInRust_isSilentDuringACall_andResumes_ifItIsBuilt() throws {
        guard let program = ProcessInfo.processInfo.environment["SESSIOND_EXAMPLE_RUST"] else { return }
        let desk = try Desk()
        let radio = try Child(program, environment: desk.environment)
        try desk.expectSilentDuringACall(radio)
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
