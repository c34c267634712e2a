import Foundation
import PluginAPI
import Routing
import SessionManager
import Testing

@Suite struct RoutingTests {
    /// Transcripts of daemons in the tests of routes and unplugs: what they saw of PulseAudio 16 and PipeWire 0.3, and
    /// what they did.
    static let transcripts: [String] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Transcripts")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().map { folder.appendingPathComponent($0).path }
    }()

    @Test(arguments: transcripts)
    func transcriptOfARealServer_leadsToTheSameActions(_ path: String) throws {
        var transcript = try Transcript(contentsOf: path)
        transcript.replay()
        #expect(transcript.differences == [])
        #expect(transcript.factCount > 10)
    }

    @Test func transcripts_exist() { #expect(RoutingTests.transcripts.count >= 20) }
}

/// Rules that no transcript shows.
@Suite struct RoutingRuleTests {
    private static let speaker = port("speaker", .speaker)
    private static let phones = port("phones", .headphones)
    private static let usb = port("usb", .usbAudio)

    private static func port(_ uid: String, _ type: PortType) -> PluginAPI.Port {
        PluginAPI.Port(type: type, name: uid, uid: uid, channels: 2)
    }

    private static func view(_ route: PluginAPI.Port, of outputs: [PluginAPI.Port]) -> Routing.View {
        var view = Routing.View()
        view.isConnected = true
        view.audio = Audio(route: Route(inputs: [], outputs: [route]), inputs: [], outputs: outputs)
        return view
    }

    private static func at(_ seconds: Double) -> Instant { Instant(microseconds: UInt64(seconds * 1_000_000)) }

    /// The route is the headphones, and the sessions want the headphones.
    private static func playingOnPhones() -> Routing {
        var routing = Routing()
        let outputs = [speaker, usb, phones]
        _ = routing.handle(.wanted(RouteChoice(output: "phones"), reason: nil), view(phones, of: outputs), at: at(0)) {
            _ in nil
        }
        return routing
    }

    @Test func deviceIsRemovedAndServerSelectsAnotherOne_oneChangeIsReportedAtTheEnd() {
        var routing = Self.playingOnPhones()
        let before = Route(inputs: [], outputs: [Self.phones])
        let outputs = [Self.speaker, Self.usb]
        let onTheWay = routing.handle(
            .routeChanged(.oldDeviceUnavailable, previous: before), Self.view(Self.speaker, of: outputs), at: Self.at(1)
        ) { _ in RouteChoice(output: "usb") }
        #expect(onTheWay == [.ask(.output("usb", isTemporary: false), reason: .unknown)])
        let arrived = Self.view(Self.usb, of: outputs)
        let told = routing.handle(
            .routeChanged(.unknown, previous: Route(inputs: [], outputs: [Self.speaker])), arrived, at: Self.at(1.1)
        ) { _ in RouteChoice(output: "usb") }
        #expect(told == [.submit(.routeChanged(.oldDeviceUnavailable, arrived.audio)), .then(.inputMuteChanged)])
        #expect(routing.nextDeadline == nil)
    }

    @Test func deviceIsRemovedAndServerIgnoresTheRequest_changeIsReportedAfterASecond() {
        var routing = Self.playingOnPhones()
        let view = Self.view(Self.speaker, of: [Self.speaker, Self.usb])
        _ = routing.handle(
            .routeChanged(.oldDeviceUnavailable, previous: Route(inputs: [], outputs: [Self.phones])), view,
            at: Self.at(1)
        ) { _ in RouteChoice(output: "usb") }
        #expect(routing.nextDeadline == Self.at(2))
        #expect(routing.handle(.timePassed, view, at: Self.at(1.9)) { _ in nil } == [])
        let told = routing.handle(.timePassed, view, at: Self.at(2)) { _ in nil }
        #expect(told == [.submit(.routeChanged(.oldDeviceUnavailable, view.audio)), .then(.inputMuteChanged)])
    }

    @Test func removalPausesASession_changeIsReportedAtOnce() {
        var routing = Self.playingOnPhones()
        let view = Self.view(Self.speaker, of: [Self.speaker, Self.usb])
        let told = routing.handle(
            .routeChanged(.oldDeviceUnavailable, previous: Route(inputs: [], outputs: [Self.phones])), view,
            at: Self.at(1)
        ) { _ in nil }
        #expect(told.first == .submit(.routeChanged(.oldDeviceUnavailable, view.audio)))
    }

    @Test func refusedOutput_isLoggedOnceAndRequestedAgain() {
        var routing = Self.playingOnPhones()
        let view = Self.view(Self.phones, of: [Self.speaker, Self.usb, Self.phones])
        func want(_ uid: String) -> [Routing.Effect] {
            routing.handle(.wanted(RouteChoice(output: uid), reason: nil), view, at: Self.at(1)) { _ in nil }
        }
        #expect(want("usb") == [.ask(.output("usb", isTemporary: true), reason: .categoryChange)])
        let error = SessionError(.mediaServicesFailed, "no")
        func refuse() -> [Routing.Effect] {
            routing.handle(.refused(.output("usb", isTemporary: true), error), view, at: Self.at(1)) { _ in nil }
        }
        #expect(refuse() == [.warn("cannot change the output: \(error)")])
        #expect(refuse() == [])
        #expect(want("phones") == [])
        #expect(want("usb") == [.ask(.output("usb", isTemporary: true), reason: .categoryChange)])
    }

    /// The session ended while there was no daemon, no server or no such headset.
    @Test func switchedHeadsetThatNoSessionUses_isSwitchedBackOnce() {
        for hasWanted in [false, true] {
            var routing = hasWanted ? Self.playingOnPhones() : Routing()
            var view = Self.view(Self.phones, of: [Self.speaker, Self.usb, Self.phones])
            view.switchedHeadset = "buds/hfp-input"
            func want(_ handsFree: String?) -> [Routing.Effect] {
                let choice = RouteChoice(output: "phones", handsFree: handsFree)
                return routing.handle(.wanted(choice, reason: nil), view, at: Self.at(1)) { _ in nil }
            }
            #expect(want(nil) == [.ask(.handsFree(nil), reason: .categoryChange)])
            // The backend no longer reports a headset that it was asked to switch back.
            view.switchedHeadset = nil
            #expect(want(nil) == [])
        }
    }

    @Test func switchedHeadsetThatASessionStillUses_staysUntilItsEnd() {
        var routing = Routing()
        var view = Self.view(Self.phones, of: [Self.speaker, Self.usb, Self.phones])
        func want(_ handsFree: String?) -> [Routing.Effect] {
            let choice = RouteChoice(output: "phones", handsFree: handsFree)
            return routing.handle(.wanted(choice, reason: nil), view, at: Self.at(1)) { _ in nil }
        }
        view.switchedHeadset = "buds/hfp-input"
        #expect(want("buds/hfp-input") == [])
        #expect(want("other/hfp-input") == [.ask(.handsFree("other/hfp-input"), reason: .categoryChange)])
        view.switchedHeadset = "other/hfp-input"
        #expect(want(nil) == [.ask(.handsFree(nil), reason: .categoryChange)])
    }

    // MARK: The default before

    /// A microphone and one of a headset, which is no input that nobody has asked for.
    private final class Inputs {
        static let desk = RoutingRuleTests.port("desk", .microphoneBuiltIn)
        static let buds = RoutingRuleTests.port("buds/hfp-input", .bluetoothHFP)
        static let usbMic = RoutingRuleTests.port("usb-mic", .usbAudio)
        var routing = Routing()
        var view: Routing.View

        init(_ used: PluginAPI.Port, former: String? = nil) {
            view = RoutingRuleTests.view(RoutingRuleTests.speaker, of: [RoutingRuleTests.speaker])
            view.audio.inputs = [Inputs.desk, Inputs.buds]
            view.audio.route.inputs = [used]
            view.formerInput = former
        }

        /// The server carries out what it is asked for.
        func want(_ uid: String, _ isNeeded: Bool, _ reason: RouteChangeReason? = nil) -> [Routing.Request] {
            let choice = RouteChoice(output: "speaker", input: uid, isInputNeeded: isNeeded)
            let effects = routing.handle(.wanted(choice, reason: reason), view, at: RoutingRuleTests.at(1)) { _ in nil }
            return effects.compactMap { effect in
                guard case .ask(let request, _) = effect else { return nil }
                switch request {
                case .input(let uid, let isTemporary):
                    if isTemporary { view.formerInput = view.formerInput ?? view.audio.route.inputs.first?.uid }
                    if !isTemporary { view.formerInput = nil }
                    view.audio.route.inputs = view.audio.inputs.filter { $0.uid == uid }
                case .formerInput:
                    view.audio.route.inputs = view.audio.inputs.filter { $0.uid == view.formerInput }
                    view.formerInput = nil
                case .output, .formerOutput, .handsFree: break
                }
                return request
            }
        }
    }

    /// The session manager has chosen the microphone of the headset: it stays the default, and no default is configured.
    @Test func callUsesTheDefaultMicrophone_nothingIsRequested() {
        let inputs = Inputs(Inputs.buds)
        #expect(inputs.want("desk", false).isEmpty)
        for _ in 0..<2 {
            #expect(inputs.want("buds/hfp-input", true).isEmpty)
            #expect(inputs.want("desk", false).isEmpty, "nobody needs another one")
        }
    }

    @Test(arguments: [false, true]) func sessionNeedsAnotherMicrophone_theFormerOneIsTheDefaultAgain(isHeadset: Bool) {
        let (used, needed) = isHeadset ? (Inputs.buds, Inputs.desk) : (Inputs.desk, Inputs.buds)
        let inputs = Inputs(used)
        #expect(inputs.want("desk", false).isEmpty)
        for _ in 0..<2 {
            #expect(inputs.want(needed.uid, true) == [.input(needed.uid, isTemporary: true)])
            #expect(inputs.want(needed.uid, true).isEmpty)
            #expect(inputs.want("desk", false) == [.formerInput])
            #expect(inputs.view.audio.route.inputs == [used] && inputs.want("desk", false).isEmpty)
        }
    }

    @Test func microphoneAppearsDuringACall_itIsTheDefaultAfterwards() {
        let inputs = Inputs(Inputs.desk)
        #expect(inputs.want("desk", false).isEmpty)
        #expect(inputs.want("buds/hfp-input", true) == [.input("buds/hfp-input", isTemporary: true)])
        inputs.view.audio.inputs.append(Inputs.usbMic)
        #expect(inputs.want("usb-mic", true, .newDeviceAvailable) == [.input("usb-mic", isTemporary: false)])
        #expect(inputs.want("usb-mic", false).isEmpty)
        // The session has preferred another one.
        let other = Inputs(Inputs.desk)
        _ = (other.want("desk", false), other.want("buds/hfp-input", true))
        other.view.audio.inputs.append(Inputs.usbMic)
        #expect(other.want("buds/hfp-input", true, .newDeviceAvailable).isEmpty)
        #expect(other.want("usb-mic", false) == [.input("usb-mic", isTemporary: false)])
    }

    /// The daemon was killed during the call.
    @Test func defaultIsTemporaryAtTheStart_itIsRestoredWhenNoSessionNeedsIt() {
        let ended = Inputs(Inputs.buds, former: "desk")
        #expect(ended.want("desk", false) == [.formerInput])
        #expect(ended.want("desk", false).isEmpty)
        let on = Inputs(Inputs.buds, former: "desk")
        #expect(on.want("buds/hfp-input", true).isEmpty)
        #expect(on.want("desk", false) == [.formerInput])
    }

    @Test func outputThatOnlyASessionNeeds_isTemporary() {
        var routing = Self.playingOnPhones()
        var view = Self.view(Self.phones, of: [Self.speaker, Self.usb, Self.phones])
        func want(_ uid: String) -> [Routing.Effect] {
            routing.handle(.wanted(RouteChoice(output: uid), reason: nil), view, at: Self.at(1)) { _ in nil }
        }
        #expect(want("speaker") == [.ask(.output("speaker", isTemporary: true), reason: .categoryChange)])
        view.audio.route.outputs = [Self.speaker]
        view.formerOutput = "phones"
        #expect(want("phones") == [.ask(.formerOutput, reason: .categoryChange)])
        // The server refused the temporary one: it is restored nevertheless.
        view.audio.route.outputs = [Self.phones]
        view.formerOutput = nil
        _ = want("speaker")
        view.formerOutput = "phones"
        #expect(want("phones") == [.ask(.formerOutput, reason: .categoryChange)])
    }

    /// WirePlumber has made the headset hands-free for another recording before the call, so it was the default as that.
    @Test func headsetIsTheDefaultInAnotherProfile_itIsTheSameOutput() {
        let (talk, music) = (Self.port("buds/hfp", .bluetoothHFP), Self.port("buds/a2dp", .bluetoothA2DP))
        var routing = Routing()
        var view = Self.view(talk, of: [Self.speaker, talk])
        func want(_ uid: String) -> [Routing.Effect] {
            routing.handle(.wanted(RouteChoice(output: uid), reason: nil), view, at: Self.at(1)) { _ in nil }
        }
        #expect(want("buds/hfp") == [])
        view = Self.view(music, of: [Self.speaker, music])
        view.formerOutput = "buds/hfp"
        #expect(want("buds/a2dp") == [.ask(.formerOutput, reason: .categoryChange)])
        // Two ports of a card are two outputs.
        let (one, two) = (Self.port("card/one", .speaker), Self.port("card/two", .headphones))
        var other = Routing()
        var card = Self.view(one, of: [one])
        _ = other.handle(.wanted(RouteChoice(output: "card/one"), reason: nil), card, at: Self.at(1)) { _ in nil }
        card = Self.view(one, of: [one, two])
        card.formerOutput = "card/one"
        let effects = other.handle(.wanted(RouteChoice(output: "card/two"), reason: nil), card, at: Self.at(2)) { _ in
            nil
        }
        #expect(effects == [.ask(.output("card/two", isTemporary: false), reason: .categoryChange)])
    }

    @Test func userChoosesAnotherOutput_isAccepted() {
        var routing = Self.playingOnPhones()
        let view = Self.view(Self.speaker, of: [Self.speaker, Self.usb, Self.phones])
        let again = routing.handle(.wanted(RouteChoice(output: "phones"), reason: .unknown), view, at: Self.at(1)) {
            _ in nil
        }
        #expect(again == [])
    }

    @Test func heldOutput_isReleasedWhenPausedSessionsAreSilent_orAfterTwoSeconds() {
        var view = Self.view(Self.speaker, of: [Self.speaker])
        view.isOutputHeld = true
        view.pauseDelay = 0.1
        for silentAt in [0.5, 5] {
            var routing = Self.playingOnPhones()
            #expect(
                routing.handle(.guarded(true, isSilent: false), view, at: Self.at(0)) { _ in nil } == [
                    .guardOutput(true)
                ])
            #expect(routing.nextDeadline == Self.at(2))
            guard silentAt < 2 else {
                #expect(routing.handle(.timePassed, view, at: Self.at(2)) { _ in nil } == [.releaseOutput])
                #expect(routing.nextDeadline == nil)
                continue
            }
            #expect(routing.handle(.guarded(true, isSilent: true), view, at: Self.at(silentAt)) { _ in nil } == [])
            #expect(routing.nextDeadline == Self.at(silentAt + 0.1))
            #expect(routing.handle(.timePassed, view, at: Self.at(silentAt + 0.1)) { _ in nil } == [.releaseOutput])
        }
    }
}

@Suite struct RecordingPlacementTests {
    private static func recording(_ number: UInt32, on uid: String) -> AudioStream {
        AudioStream(id: .init(.record, number), portUID: uid)
    }

    private static let inputs = ["desk", "usb"].map {
        PluginAPI.Port(type: .microphoneBuiltIn, name: $0, uid: $0, channels: 1)
    }
    private static let route = Route(inputs: [inputs[0]], outputs: [])

    @Test func preferredInput_movesRecordingsOnce_andBackWhenItIsCleared() {
        var placement = RecordingPlacement()
        let session = SessionID(1)
        func moves(_ uid: String) -> [String] {
            placement.moves([Self.recording(7, on: uid)], route: Self.route, inputs: Self.inputs) { _ in [session] }
                .map(\.input)
        }
        #expect(moves("desk") == [])
        placement.prefer("usb", of: session)
        #expect(moves("desk") == ["usb"])
        #expect(moves("desk") == [])
        #expect(moves("usb") == [])
        placement.prefer(nil, of: session)
        #expect(moves("usb") == ["desk"])
        #expect(moves("desk") == [])
    }

    @Test func refusedMove_isTriedAgainOnlyIfSomethingHasChanged() {
        var placement = RecordingPlacement()
        placement.prefer("usb", of: SessionID(1))
        func moves(_ uid: String, _ inputs: [PluginAPI.Port] = Self.inputs) -> [RecordingPlacement.Move] {
            placement.moves([Self.recording(7, on: uid)], route: Self.route, inputs: inputs) { _ in [SessionID(1)] }
        }
        let first = moves("desk")
        #expect(first.map(\.input) == ["usb"])
        placement.refused(first[0])
        #expect(moves("desk") == [], "not at every fact about streams")
        // It was moved; the input is unplugged, and plugged in again.
        #expect(moves("line") == first)
        placement.refused(first[0])
        #expect(moves("line", []) == first)
        placement.refused(first[0])
        #expect(moves("line", []) == [])
        #expect(moves("line") == first)
        // A recording that was not moved is not moved back.
        placement.refused(first[0])
        placement.prefer(nil, of: SessionID(1))
        #expect(moves("line") == [])
    }
}
