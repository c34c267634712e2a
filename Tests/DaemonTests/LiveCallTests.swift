import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import ReferenceModel

/// Calls at random moments while a live stream is sent and while one is watched, with the real programs and servers.
@Suite(.serialized) struct LiveCallTests {
    private static let hasServer = RTMPServer.isInstalled
    private static let registry = ["GST_REGISTRY": TestMedia.registry]
    private static let count = 10

    /// Each call is a silence in the recording, and the pictures miss nothing.
    @Test(arguments: ServerKind.allCases)
    func tenCalls_areTenSilencesInTheStream(_ kind: ServerKind) throws {
        let reporter = try ReporterStage(kind, recording: "copy.mkv")
        let (stage, push, file) = (reporter.stage, reporter.push, reporter.file)
        let client = try stage.daemon.client()
        var random = SplitMix64(seed: kind == .standard ? 1 : 2)
        var call: String?
        var silent = 0.0
        for _ in 0..<Self.count {
            // The moments; nothing has to be ready.
            Thread.sleep(forTimeInterval: Double.random(in: 1.2...2.2, using: &random))
            if let call { #expect(client.activate(call) == nil) } else { call = try client.beginCall("Phone") }
            #expect(push.line(timeout: 5) { $0 == "interrupted: viewers hear nothing" } != nil)
            #expect(try stage.session("Reporter")?["State"]?.stringValue == "interrupted")
            let length = Double.random(in: 0.8...1.8, using: &random)
            Thread.sleep(forTimeInterval: length)
            silent += length
            client.deactivate(call ?? "")
            #expect(push.line(timeout: 5) { $0 == "the microphone is heard again" } != nil)
        }
        Thread.sleep(forTimeInterval: 1.5)
        push.signal(SIGINT)
        let outcome = try SessionctlStage.outcome(of: push, ["live"], 20)
        #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome)")
        withExtendedLifetime(reporter) {}
        let listener = try Child(
            "ffmpeg", ["-nostdin", "-i", file, "-af", "silencedetect=noise=-50dB:d=0.6", "-f", "null", "-"])
        #expect(listener.wait(timeout: 60) == .code(0))
        let silences = listener.errors.compactMap { line in
            line.range(of: "silence_duration: ").flatMap { Double(line[$0.upperBound...]) }
        }
        // On a busy machine the sound server may be late, too. The microphone is opened again after each call.
        #expect(silences.count >= Self.count, "\(silences)")
        let all = silences.reduce(0, +)
        #expect(all > silent * 0.9 && all < silent + Double(Self.count), "\(all) s of \(silent) s")
        let times = try Child.run(
            "ffprobe",
            ["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", file]
        ).split(separator: "\n").compactMap { Double($0.filter { $0 != "," }) }.sorted()
        // 30 each second; a busy machine may leave one out, a call must not.
        let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(times.count > 600 && (gaps.max() ?? 9) < 0.5, "\(times.count) pictures, \(gaps.max() ?? 9) s")
    }

    /// Some of the calls come while the stream is being joined again after the one before.
    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"), arguments: ServerKind.allCases)
    func tenCalls_pauseWhatIsWatched_andItGoesOnAtTheEdge(_ kind: ServerKind) throws {
        let server = try RTMPServer()
        let pulse = try kind.server(sinks: ["speaker"])
        let stage = try SessionctlStage(on: pulse)
        let ear = try Ear(pulse, sink: "speaker")
        let push = try stage.start(
            ["live", "push", server.url("name"), "--test", "--size", "320x180"], more: Self.registry)
        #expect(push.line(timeout: 20) { $0 == "live" } != nil, "\(push.output) \(push.errors)")
        let watch = try stage.start(
            ["live", "watch", server.url("name"), "--output", "none", "--name", "Viewer"], more: Self.registry)
        #expect(ear.waitUntil(440, above: -40, timeout: 20), "\(watch.output) \(watch.errors)")
        let client = try stage.daemon.client()
        var random = SplitMix64(seed: kind == .standard ? 3 : 4)
        var call: String?
        for _ in 0..<Self.count {
            Thread.sleep(forTimeInterval: Double.random(in: 0...2.5, using: &random))
            if let call { #expect(client.activate(call) == nil) } else { call = try client.beginCall("Phone") }
            #expect(try eventually { try stage.session("Viewer")?["State"]?.stringValue != "active" })
            Thread.sleep(forTimeInterval: 0.6)
            let length = Double.random(in: 0.1...1.2, using: &random)
            Thread.sleep(forTimeInterval: length)
            #expect(ear.level(of: 440, last: length) < -60)
            client.deactivate(call ?? "")
        }
        #expect(ear.waitUntil(440, above: -40, window: 0.2, timeout: 15), "\(watch.output) \(watch.errors)")
        #expect(watch.isRunning && watch.errors.isEmpty, "\(watch.errors)")
        #expect(try eventually { try stage.session("Viewer")?["State"]?.stringValue == "active" })
        // It is not later than before the calls.
        let name = try stage.daemon.observer.askBusAndWait("ListNames", [], timeout: 5).first?.stringsValue?
            .first { $0.hasPrefix(PluginKind.moviePlayer.busName + ".instance") }
        let late = { () -> Double in
            let fields = try? stage.daemon.observer.callAndWait(
                name ?? "", PluginKind.moviePlayer.objectPath, StandardName.properties, "GetAll",
                [.string(PluginKind.moviePlayer.interface)], timeout: 5
            ).first?.asProperties
            return fields?["Latency"]?.doubleValue ?? 9
        }
        #expect(eventually(timeout: 15) { (0.001..<2).contains(late()) }, "\(late()) s late")
        for child in [watch, push] {
            child.signal(SIGINT)
            #expect(child.wait(timeout: 10) == .code(child === watch ? 130 : 0), "\(child.errors)")
        }
    }
}
