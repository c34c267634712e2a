import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// A client stops in the middle of a prompt: others are not kept quiet for ever.
@Suite struct HangingClientTests {
    @Test func stoppedClient_isDeactivated_andOneThatAnswersIsNot() throws {
        let stage = try DaemonStage(settings: "[ducking]\nlongest = 0.2\n")
        let client = try stage.client()
        let music = try client.session("Music", options: ["mix-with-others"])
        client.activate(music)
        let careful = try stage.client()
        let long = try careful.session("Long prompt", options: ["duck-others"])
        careful.activate(long)
        let begun = monotonicNow()
        #expect(
            try eventually(timeout: 20) {
                _ = try careful.heard()
                return monotonicNow() - begun > 6
            })
        #expect(client.state(long) == "active")
        careful.deactivate(long)
        // This one reads from its connection only while it waits for an answer, and then answers nothing else.
        let voice = try stage.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        #expect(voice.ask("activate \(prompt)") == "ok")
        #expect(eventually(timeout: 20) { client.state(prompt) == "inactive" })
        #expect(try client.heard().last == "Music ducked 0.0")
        #expect(try stage.explanation("inactive", of: prompt).contains("did not answer"))
        #expect(voice.ask("activate \(prompt)") == "ok")
        #expect(client.state(prompt) == "active")
    }

    @Test func stoppedCall_goesOn() throws {
        let stage = try DaemonStage(settings: "[ducking]\nlongest = 0.1\n[interruption]\nlongest = 0.1\n")
        let client = try stage.client()
        let music = try client.session("Music")
        client.activate(music)
        let phone = try stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", option: "duck-others", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        phone.process.signal(SIGSTOP)
        let begun = monotonicNow()
        #expect(eventually(timeout: 20) { monotonicNow() - begun > 6 })
        #expect(client.state(call) == "active" && client.state(music) == "interrupted")
        phone.process.signal(SIGCONT)
    }
}
