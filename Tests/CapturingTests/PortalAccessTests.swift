import PluginAPI
import Testing

@testable import Capturing

/// What the camera portal is asked, and who is told what.
struct PortalAccessTests {
    typealias Event = PortalAccess.Event
    typealias Act = PortalAccess.Act

    static let broken = SessionError(.resourceNotAvailable, "broken")

    /// Events, the acts of each, and whether there is a connection at the end.
    static let table: [(name: String, steps: [(Event, [Act])], isOpen: Bool)] = [
        ("whoOnlyLooks_isNotAReasonToAsk", [(.looked, [.open]), (.notPermitted, [.tell(PortalAccess.denied)])], false),
        (
            "whoOnlyLooks_seesWhatIsAllowed", [(.looked, [.open]), (.opened, [.tell(nil)]), (.looked, [.tell(nil)])],
            true
        ),
        ("user_agrees", [(.wanted, [.ask]), (.answered(0), [.open]), (.opened, [.tell(nil)])], true),
        ("user_refuses", [(.wanted, [.ask]), (.answered(1), [.tell(PortalAccess.denied)])], false),
        ("dialog_isClosed", [(.wanted, [.ask]), (.answered(2), [.tell(PortalAccess.ended)])], false),
        ("whoWaits_leaves_andTheAnswerCounts", [(.wanted, [.ask]), (.left, []), (.answered(0), [.open])], false),
        ("nobody_answersForLong_nextOneIsNotAskedTwice", [(.wanted, [.ask]), (.left, []), (.wanted, [])], false),
        (
            "several_wait_forOneQuestion", [(.wanted, [.ask]), (.wanted, []), (.looked, []), (.answered(0), [.open])],
            false
        ),
        ("desktop_hasNoCamerasForAnybody", [(.wanted, [.ask]), (.notPermitted, [.tell(PortalAccess.denied)])], false),
        ("portal_isMissing", [(.wanted, [.ask]), (.failed(broken), [.tell(broken)])], false),
        ("portal_endsDuringTheQuestion", [(.wanted, [.ask]), (.portalGone, [.tell(PortalAccess.gone)])], false),
        ("portal_endsLater_connectionStays", [(.looked, [.open]), (.opened, [.tell(nil)]), (.portalGone, [])], true),
        (
            "whoWants_duringALook_isAskedIfNeeded",
            [
                (.looked, [.open]), (.wanted, []), (.notPermitted, [.ask]), (.answered(0), [.open]),
                (.opened, [.tell(nil)]),
            ],
            true
        ),
        (
            "permissionIsTakenBack_betweenAnswerAndConnection",
            [(.wanted, [.ask]), (.answered(0), [.open]), (.notPermitted, [.tell(PortalAccess.denied)])], false
        ),
        (
            "pipeWire_ends_andIsAskedForAgain",
            [
                (.looked, [.open]), (.opened, [.tell(nil)]), (.lost, [.close]), (.looked, [.open]),
                (.opened, [.tell(nil)]),
            ],
            true
        ),
        (
            "pipeWire_endsBeforeItsCamerasAreKnown",
            [(.looked, [.open]), (.lost, [.close, .tell(PortalAccess.cut)])], false
        ),
        (
            "permissionsMayHaveChanged_connectionIsMadeAnew",
            [(.looked, [.open]), (.opened, [.tell(nil)]), (.wantedAnew, [.close, .ask]), (.answered(0), [.open])], false
        ),
        (
            "everyUse_isAskedFor_andARefusalEndsTheConnection",
            [
                (.looked, [.open]), (.opened, [.tell(nil)]), (.wanted, [.ask]), (.answered(0), [.tell(nil)]),
                (.wanted, [.ask]),
                (.answered(1), [.close, .tell(PortalAccess.denied)]),
            ], false
        ),
        (
            "whatWasAllowed_staysSoWithoutAPortal",
            [(.looked, [.open]), (.opened, [.tell(nil)]), (.wanted, [.ask]), (.failed(broken), [.tell(nil)])], true
        ),
        (
            "pipeWire_endsDuringTheQuestion",
            [
                (.looked, [.open]), (.opened, [.tell(nil)]), (.wanted, [.ask]), (.lost, [.close]),
                (.answered(0), [.open]),
                (.opened, [.tell(nil)]),
            ], true
        ),
        ("nothing_isDoneForLateEvents", [(.answered(0), []), (.opened, []), (.lost, []), (.left, [])], false),
        (
            "whoLeaves_duringALook_isNotAsked",
            [(.looked, [.open]), (.wanted, []), (.left, []), (.notPermitted, [.tell(PortalAccess.denied)])], false
        ),
    ]

    @Test(arguments: table.map(\.name)) func portal_isAskedInOrder(_ name: String) throws {
        let row = try #require(Self.table.first { $0.name == name })
        var access = PortalAccess()
        for (event, acts) in row.steps { #expect(access.handle(event) == acts, "\(event)") }
        #expect(access.isOpen == row.isOpen)
    }

    /// Whatever happens, somebody who waits is told when there is nothing to wait for any more.
    @Test func everyEndOfWaiting_isTold() {
        let events: [Event] = [
            .looked, .wanted, .wantedAnew, .left, .answered(0), .answered(1), .opened, .notPermitted,
            .failed(Self.broken), .lost,
            .portalGone,
        ]
        var seen: Set<PortalAccess> = [PortalAccess()]
        var next = Array(seen)
        while let access = next.popLast() {
            for event in events {
                var after = access
                let acts = after.handle(event)
                let isWaiting = access.state != .closed && access.state != .open
                if isWaiting, after.state == .closed || after.state == .open {
                    #expect(acts.contains { if case .tell = $0 { true } else { false } }, "\(access) \(event)")
                }
                if seen.insert(after).inserted { next.append(after) }
            }
        }
        #expect(seen.count == 8)
    }

    @Test func setting_automatic_isForSandboxesOnly() {
        typealias Portal = Settings.Camera.Portal
        for (portal, inSandbox, outside) in [
            (Portal.automatic, true, false), (.always, true, true), (.never, false, false),
        ] {
            #expect(portal.isUsed(isSandboxed: true) == inSandbox && portal.isUsed(isSandboxed: false) == outside)
        }
        #expect(Settings().camera.portal == .automatic)
    }

    @Test func hiddenCamera_takesAnyPreset_untilItIsKnown() throws {
        var configuration = CaptureConfiguration()
        let hidden = CaptureSource(id: "portal", name: "Camera", media: .video, isHidden: true)
        #expect(hidden.presets == CapturePreset.allCases)
        let input = try configuration.addInput(hidden)
        try configuration.setPreset(.hd1920x1080)
        let small = CaptureSource(
            id: "front", name: "Front", media: .video,
            formats: [CaptureFormat(width: 640, height: 480, rate: CaptureRate(30), pixels: "I420")])
        do throws(SessionError) {
            try configuration.reveal(small)
            Issue.record("a camera without that size must be refused")
        } catch {
            #expect(error.code == .notSupported)
        }
        #expect(configuration.current.camera == hidden)
        try configuration.setPreset(.high)
        try configuration.reveal(small)
        #expect(configuration.current.camera == small && configuration.current.inputs.first?.id == input)
        // Another one is not replaced.
        try configuration.reveal(CaptureSource(id: "back", name: "Back", media: .video, formats: small.formats))
        #expect(configuration.current.camera == small)
    }
}
