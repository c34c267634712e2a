import DBus
import Foundation
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `SessionKit.AudioSession` as an app uses it, on the real daemon.
@Suite(.serialized) struct AudioSessionTests {
    private func session(
        _ stage: DaemonStage, _ name: String = "app", _ category: AudioSession.Category = .playback
    ) async throws -> AudioSession {
        try await AudioSession(name: name, category: category, bus: .custom(stage.bus.address))
    }

    private func listed(_ stage: DaemonStage, _ name: String) throws -> [String: Value]? {
        try stage.sessions().values.first { $0["Name"]?.stringValue == name }
    }

    /// Returns the next matching element of a sequence, or nil if none comes within ten seconds.
    private func next<Element: Sendable>(
        _ stream: AsyncStream<Element>, where test: @escaping @Sendable (Element) -> Bool = { _ in true }
    ) async -> Element? {
        await withTaskGroup(of: Element?.self) { group in
            group.addTask { await stream.first(where: test) }
            group.addTask {
                try? await Task.sleep(for: .seconds(10))
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    @Test func exampleRadio_isSilentDuringACallAndPlaysOn() throws {
        let stage = try DaemonStage()
        let radio = try Child(try builtProduct(named: "example-radio"), environment: stage.bus.environment)
        #expect(radio.line { $0 == "playing" } != nil, "\(radio.errors)")
        #expect(try listed(stage, "Radio")?["State"]?.stringValue == "active")
        let client = try stage.client()
        let call = try client.beginCall("Phone")
        #expect(radio.line { $0 == "silent: Phone has the sound" } != nil)
        client.deactivate(call)
        #expect(radio.line { $0 == "playing on" } != nil)
        #expect(try listed(stage, "Radio")?["State"]?.stringValue == "active")
        radio.kill()
        #expect(eventually { (try? listed(stage, "Radio")) == .some(nil) })
    }

    @Test func interruptionBeginsAndEnds_sequencesReportBothAndTheStateFollows() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage)
        let began = session.interruptions
        let all = session.interruptions
        try await session.setActive(true)
        #expect(await session.state == .active)
        let client = try stage.client()
        let other = try client.session("other")
        client.activate(other)
        #expect(await next(began) == .began(reason: .default, by: "other"))
        #expect(await session.state == .interrupted)
        client.deactivate(other, notify: true)
        var seen: [AudioSession.Interruption] = []
        for await interruption in all {
            seen.append(interruption)
            if seen.count == 2 { break }
        }
        #expect(seen == [.began(reason: .default, by: "other"), .ended(options: .shouldResume)])
        #expect(seen.last.map { "\($0)" } == "ended(options: [shouldResume])")
        try await session.setActive(true)
        try await session.setActive(false, options: .notifyOthersOnDeactivation)
        #expect(await session.state == .inactive)
        await session.close()
        #expect(try listed(stage, "app") == nil)
        await #expect(throws: SessionError.self) { try await session.setActive(true) }
        #expect(await next(session.interruptions) == nil)
    }

    @Test func refusedRequest_throwsTheDaemonsReason() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage)
        do {
            try await session.setCategory(.ambient, options: .defaultToSpeaker)
            Issue.record("ambient with default-to-speaker was taken")
        } catch {
            #expect(error.code == .badParameter)
            #expect(error.message.components(separatedBy: "(-50)").count == 2, "\(error.message)")
        }
        #expect(await session.category == .playback)
        let client = try stage.client()
        let call = try client.beginCall("Phone")
        try await session.setCategory(.soloAmbient)
        do {
            try await session.setActive(true)
            Issue.record("active during a call")
        } catch {
            #expect(error.code == .insufficientPriority)
        }
        client.deactivate(call)
        await #expect(throws: SessionError.self) { _ = try await self.session(stage, "") }
        await #expect(throws: SessionError.self) {
            _ = try await AudioSession(name: "x", bus: .custom("unix:path=/nowhere"))
        }
    }

    @Test func musicStartsDuringAGame_gameGetsTheHintAndSeesOtherAudio() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage, "game", .ambient)
        let hints = session.silenceSecondaryAudioHints
        try await session.setActive(true)
        #expect(try await session.isOtherAudioPlaying == false)
        let client = try stage.client()
        let music = try client.session("music")
        client.activate(music)
        #expect(await next(hints) == .begin)
        #expect(try await session.isOtherAudioPlaying)
        #expect(try await session.secondaryAudioShouldBeSilencedHint)
        let after = session.silenceSecondaryAudioHints
        client.deactivate(music)
        #expect(await next(after) == .end)
    }

    @Test func silentSwitchAndPrompt_loudnessChangesReportBoth() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage, "game", .ambient)
        let changes = session.loudnessChanges
        try await session.setActive(true)
        try stage.manager("SetSilentMode", [.bool(true)])
        #expect(await next(changes)?.isMuted == true)
        try stage.manager("SetSilentMode", [.bool(false)])
        let lowered = session.loudnessChanges
        let client = try stage.client()
        let prompt = try client.session("prompt", options: ["duck-others"])
        client.activate(prompt)
        #expect(await next(lowered) { $0.gain == -12 } != nil)
    }

    @Test func refusedPreference_isNotSentAgain() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage)
        for rate in [12, Double.nan] {
            await #expect(throws: SessionError.self) { try await session.setPreferredSampleRate(rate) }
        }
        try await session.setPreferredIOBufferDuration(0.01)
        try await session.setPrefersNoInterruptionsFromSystemAlerts(true)
        #expect(try listed(stage, "app")?["IOBufferDuration"]?.doubleValue == 0.01)
    }

    @Test func daemonRestartsWithoutItsState_sessionIsCreatedAgainAsItWas() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage, "app", .soloAmbient)
        try await session.setCategory(.playback, mode: .spokenAudio)
        try await session.setPreferredIOBufferDuration(0.01)
        try await session.setActive(true)
        let events = session.mediaServicesEvents
        stage.daemon.kill()
        try FileManager.default.removeItem(atPath: stage.stateFolder)
        try stage.restart()
        var seen: [AudioSession.MediaServicesEvent] = []
        for await event in events {
            seen.append(event)
            if event == .reset { break }
        }
        #expect(seen == [.lost, .reset])
        #expect(try eventually { try listed(stage, "app")?["State"]?.stringValue == "active" })
        let again = try listed(stage, "app")
        #expect(again?["Category"]?.stringValue == "playback" && again?["Mode"]?.stringValue == "spoken-audio")
        #expect(again?["IOBufferDuration"]?.doubleValue == 0.01)
        #expect(await session.state == .active)
    }

    @Test func daemonRestartsWithItsState_sessionContinues() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage)
        try await session.setActive(true)
        stage.daemon.kill()
        try stage.restart()
        try await session.setActive(true)
        #expect(try listed(stage, "app")?["State"]?.stringValue == "active")
        #expect(try stage.sessions().count == 1)
    }

    @Test func manyTasksAtOnce_eachIsAnswered() async throws {
        let stage = try DaemonStage()
        let session = try await session(stage)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    if number % 3 == 0 { _ = session.interruptions }
                    try? await session.setActive(number % 2 == 0)
                }
            }
        }
        try await session.setActive(true)
        #expect(try listed(stage, "app")?["State"]?.stringValue == "active")
    }

    @Test func objectIsReleased_sessionCloses() async throws {
        let stage = try DaemonStage()
        do {
            let session = try await session(stage)
            try await session.setActive(true)
        }
        #expect(try eventually { try stage.sessions().isEmpty })
    }

    @Test func outputIsUnplugged_routeChangeHasTheReasonAndThePreviousRoute() async throws {
        let pulse = try ServerKind.standard.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let headphones = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        try pulse.control.setDefaultSink("phones")
        #expect(
            try eventually {
                try stage.property("CurrentRoute").route?.outputs.first?.uid.hasPrefix("phones") == true
            })
        let session = try await session(stage)
        let changes = session.routeChanges
        try await session.setActive(true)
        #expect(try await session.currentRoute.outputs.first?.type == .headphones)
        try pulse.unloadModule(headphones)
        let change = await next(changes)
        #expect(change?.reason == .oldDeviceUnavailable)
        #expect(change?.previousRoute.outputs.first?.type == .headphones)
        #expect(try await session.currentRoute.outputs.first?.uid.hasPrefix("speaker") == true)
        #expect(try await session.sampleRate == 48_000)
    }
}
