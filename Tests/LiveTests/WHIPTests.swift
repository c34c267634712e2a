import Foundation
import LiveBackend
import LiveStreaming
import PluginAPI
import TestSupport
import Testing

/// Live streams by WebRTC to a real server of WHIP.
@Suite(.serialized) struct WHIPTests {
    private typealias Server = WHIPServer

    @Test(.enabled(if: Server.isInstalled, "gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 are not installed"))
    func film_reachesTheServer_andItsEndIsTold() throws {
        let server = try Server()
        let stage = try LiveStage(to: server.url, key: "right-token")
        try stage.start()
        #expect(stage.until { stage.push.state == .live }, "\(stage.messages)")
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended && stage.errors.isEmpty, "\(stage.errors)")
        #expect(stage.until(5) { server.has("deleted") })
        #expect(server.lines.contains(["offer", "sendonly"]))
        // It begins with a key frame, and the last pictures may still be on their way.
        let numbers = server.numbers
        #expect(
            (numbers.first ?? 999) < 60 && (numbers.last ?? 0) >= 285, "\(numbers.first ?? -1) \(numbers.last ?? -1)")
        // On a busy machine, the receiver gives up what comes too late.
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 } && numbers.count > 200, "\(numbers)")
        #expect(server.loudest > 0.05, "\(server.loudest)")
        // The recording has the same streams.
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
        #expect(try LiveStage.probe(stage.recording, "stream=codec_name", "a:0") == ["opus"])
    }

    @Test(.enabled(if: Server.isInstalled, "gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 are not installed"))
    func serverKilled_isConnectedAgain_andTheRecordingIsWhole() throws {
        let server = try Server()
        let stage = try LiveStage(to: server.url, key: "right-token")
        try stage.start()
        #expect(stage.until { stage.push.state == .live }, "\(stage.messages)")
        #expect(stage.until { server.numbers.count > 10 })
        server.kill()
        #expect(stage.until(12) { stage.push.state == .reconnecting })
        let other = try Server(port: server.port)
        #expect(stage.until(10) { stage.push.state == .live || stage.isOver }, "\(stage.messages)")
        #expect(stage.until(5) { !other.numbers.isEmpty || stage.isOver })
        stage.push.stop()
        #expect(stage.until { stage.isOver })
        #expect(stage.push.reconnects == 1)
        let recorded = try LiveStage.numbers(stage.recording)
        #expect(recorded == Array(0..<recorded.count) && recorded.count > 100)
        // After a break, too, the first picture needs no other.
        #expect(recorded.contains(other.numbers.first ?? -1), "\(other.numbers.first ?? -1)")
    }

    @Test(
        .enabled(if: Server.isInstalled, "gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 are not installed"),
        arguments: [("/whip", "wrong-token", "401"), ("/other", "right-token", "404")])
    func refusal_isTold_withoutTheToken(_ path: String, _ token: String, _ status: String) throws {
        let server = try Server()
        let stage = try LiveStage(to: "http://127.0.0.1:\(server.port)\(path)", key: token) {
            ($0.source, $0.recording) = (.test, nil)
        }
        try stage.start()
        #expect(stage.until(10) { stage.messages.contains { $0.includes(status) } }, "\(stage.messages)")
        #expect(!stage.messages.contains { $0.includes(token) })
        stage.push.stop()
        #expect(stage.until { stage.isOver })
        #expect(server.numbers.isEmpty)
    }

    @Test(
        .enabled(
            if: Server.isInstalled && Server.python == nil,
            "gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 are not installed"))
    func otherServerThatTheServerNames_doesNotGetTheToken() throws {
        let other = try Server()
        let server = try Server(naming: other)
        let stage = try LiveStage(to: server.url, key: "right-token") { ($0.source, $0.recording) = (.test, nil) }
        try stage.start()
        #expect(stage.until { stage.push.state == .live }, "\(stage.messages)")
        stage.push.stop()
        #expect(stage.until { stage.isOver })
        #expect(stage.until(5) { other.has("delete") })
        #expect(other.lines.contains(["delete", "without-token"]) && !server.has("delete"))
    }

    @Test(.enabled(if: Server.isInstalled && TLSRelay.isInstalled, "gstreamer1.0-nice or openssl is not installed"))
    func certificateThatNobodyKnows_isToldAtOnce() throws {
        let relay = try TLSRelay(to: 1, .own)
        let stage = try LiveStage(to: "https://127.0.0.1:\(relay.port)/whip") {
            ($0.source, $0.recording) = (.test, nil)
        }
        try stage.start()
        #expect(stage.until(8) { stage.isOver })
        #expect(stage.errors.first?.message.includes("securely") == true, "\(stage.errors) \(stage.messages)")
    }

    @Test func offer_onlySends_andBeginsTheEncryption() {
        let offer = "v=0\r\na=setup:actpass\r\na=sendrecv\r\na=mid:video0\r\n"
        #expect(SessionOffer.sending(offer) == "v=0\r\na=setup:active\r\na=sendonly\r\na=mid:video0\r\n")
    }
}
