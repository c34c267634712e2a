import Capturing
import LiveStreaming
import PluginAPI
import Testing

@testable import ReferenceModel

@Suite struct CaptureConfigurationTests {
    private static func camera(_ id: String, _ width: Int = 640, _ height: Int = 480) -> CaptureSource {
        let format = CaptureFormat(width: width, height: height, rate: CaptureRate(30), pixels: "YUY2")
        return CaptureSource(id: id, name: id, media: .video, position: .front, formats: [format])
    }
    private static let front = camera("front")
    private static let back = camera("back", 1280, 720)
    private static let microphone = CaptureSource(id: "mic", name: "Mic", media: .audio)

    private func code(_ body: () throws(SessionError) -> Void) -> SessionError.Code? {
        do throws(SessionError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func changesInAPair_applyAtTheCommit() throws {
        var session = CaptureConfiguration()
        try session.begin()
        _ = try session.addInput(Self.front)
        _ = try session.addOutput(.movieFile)
        #expect(session.current.inputs.isEmpty && session.next.camera == Self.front)
        let before = try session.commit()
        #expect(before.inputs.isEmpty && session.current.camera == Self.front && session.current.has(.movieFile))
        #expect(!session.isConfiguring)
    }

    @Test func pairWithAnImpossibleResult_changesNothing() throws {
        var session = CaptureConfiguration()
        _ = try session.addInput(Self.back)
        let before = session.current
        try session.begin()
        try session.setPreset(.hd1280x720)
        _ = try session.switchCamera(to: Self.front)
        #expect(code { () throws(SessionError) in _ = try session.commit() } == .notSupported)
        #expect(session.current == before && !session.isConfiguring)
        // The other order of the same changes is possible if the result is.
        try session.begin()
        _ = try session.switchCamera(to: Self.front)
        try session.setPreset(.vga640x480)
        _ = try session.commit()
        #expect(session.current.camera == Self.front && session.current.preset == .vga640x480)
    }

    @Test func pairs_doNotNest() throws {
        var session = CaptureConfiguration()
        #expect(code { () throws(SessionError) in _ = try session.commit() } == .badParameter)
        try session.begin()
        #expect(code { () throws(SessionError) in try session.begin() } == .isBusy)
        session.cancel()
        try session.begin()
    }

    @Test func secondCameraOrMicrophone_isRefusedUntilTheFirstIsRemoved() throws {
        var session = CaptureConfiguration()
        let id = try session.addInput(Self.front)
        _ = try session.addInput(Self.microphone)
        for device in [Self.front, Self.back, Self.microphone] {
            #expect(session.refusal(ofInput: device)?.code == .isBusy)
        }
        try session.removeInput(id)
        #expect(session.refusal(ofInput: Self.back) == nil)
        #expect(code { () throws(SessionError) in try session.removeInput(id) } == .badParameter)
    }

    @Test func liveStream_keepsAFilmGoingInACall_andSharesItsEncoderUnlessItsPicturesAreChanged() throws {
        for (filters, shares) in [([], true), ([LiveFilter.mirror], false)] {
            var session = CaptureConfiguration()
            #expect(session.current.usualInterruption == .pause && !session.current.canShareEncoder)
            #expect(session.refusal(ofOutput: .live) == nil)
            var settings = LiveSettings(.camera(nil))
            settings.filters = filters
            var options = CaptureConfiguration.OutputOptions()
            options.stream = .init(try LiveTarget("rtmp://host/app/key"), settings)
            let id = try session.addOutput(.live, options)
            #expect(session.current.usualInterruption == .silence && session.current.canShareEncoder == shares)
            #expect(session.refusal(ofOutput: .live)?.code == .isBusy)
            // It may go while a film is recorded.
            _ = try session.addInput(Self.front)
            _ = try session.addOutput(.movieFile)
            session.isRecording = true
            try session.removeOutput(id)
            #expect(session.current.usualInterruption == .pause)
        }
    }

    @Test func microphone_isUsedByAFilm_aStream_andTheMeterOfAPreviewAlone() throws {
        for (kind, isUsed) in [
            (CaptureConfiguration.OutputKind.photo, false), (.movieFile, true), (.preview, true), (.live, true),
            (.frames, false),
        ] {
            var session = CaptureConfiguration()
            _ = try session.addInput(Self.microphone)
            _ = try session.addOutput(kind)
            #expect(session.current.usesSound == isUsed, "\(kind)")
        }
    }

    @Test func outputThatTheUserCloses_isGone_alsoFromAPair() throws {
        var session = CaptureConfiguration()
        _ = try session.addOutput(.preview)
        try session.begin()
        _ = try session.addOutput(.photo)
        session.lost(.preview)
        #expect(!session.current.has(.preview) && !session.next.has(.preview))
        _ = try session.commit()
        #expect(session.current.has(.photo) && !session.current.has(.preview))
    }

    @Test func whileAFilmIsRecorded_onlyItsCameraMayBeReplaced() throws {
        var session = CaptureConfiguration()
        let camera = try session.addInput(Self.back)
        let microphone = try session.addInput(Self.microphone)
        let film = try session.addOutput(.movieFile)
        try session.setPreset(.vga640x480)
        session.isRecording = true
        #expect(code { () throws(SessionError) in try session.removeInput(camera) } == .isBusy)
        #expect(code { () throws(SessionError) in try session.removeInput(microphone) } == .isBusy)
        #expect(code { () throws(SessionError) in try session.removeOutput(film) } == .isBusy)
        #expect(code { () throws(SessionError) in try session.setPreset(.hd1280x720) } == .isBusy)
        _ = try session.switchCamera(to: Self.front)
        _ = try session.addOutput(.photo)
        #expect(session.current.camera == Self.front && session.current.usesSound)
    }

    /// Random changes: the session and the second model, which replays all changes of a pair on a copy, accept the same ones.
    @Test(arguments: 0..<40) func randomChanges_agreeWithTheSecondModel(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        var session = CaptureConfiguration()
        var model = CaptureModel()
        let devices = [Self.front, Self.back, Self.microphone]
        let sizes = [(640, 480), (1280, 720), (0, 0)]
        for step in 0..<400 {
            let kind = Int(random.next() % 9)
            let pick = Int(random.next() % 3)
            let device = devices[pick]
            let wasAccepted: Bool
            let expected: Bool
            switch kind {
            case 0:
                wasAccepted = code { () throws(SessionError) in try session.begin() } == nil
                expected = model.begin()
            case 1:
                wasAccepted = code { () throws(SessionError) in _ = try session.commit() } == nil
                expected = model.commit()
            case 2:
                let can = session.refusal(ofInput: device) == nil
                wasAccepted = code { () throws(SessionError) in _ = try session.addInput(device) } == nil
                expected = model.add(device.id, isCamera: pick < 2, sizes[pick])
                #expect(can == wasAccepted)
            case 3:
                let id = session.next.inputs.first { $0.device.id == device.id }?.id ?? 0
                wasAccepted = code { () throws(SessionError) in try session.removeInput(id) } == nil
                expected = model.remove(device.id)
            case 4:
                wasAccepted =
                    code { () throws(SessionError) in _ = try session.addOutput(pick == 0 ? .photo : .movieFile) }
                    == nil
                expected = model.addOutput(pick == 0 ? "photo" : "film")
            case 5:
                let kind = pick == 0 ? CaptureConfiguration.OutputKind.photo : .movieFile
                let id = session.next.outputs.first { $0.kind == kind }?.id ?? 0
                wasAccepted = code { () throws(SessionError) in try session.removeOutput(id) } == nil
                expected = model.removeOutput(pick == 0 ? "photo" : "film")
            case 6:
                let preset = [CapturePreset.vga640x480, .hd1280x720, .high][pick]
                wasAccepted = code { () throws(SessionError) in try session.setPreset(preset) } == nil
                expected = model.setLeast([(640, 480), (1280, 720), (0, 0)][pick])
            case 7:
                let other = devices[pick % 2]
                wasAccepted = code { () throws(SessionError) in _ = try session.switchCamera(to: other) } == nil
                expected = model.replaceCamera(other.id, sizes[pick % 2])
            default:
                // A film is recorded only with a camera and an output for it.
                let records = pick == 0 && session.current.has(.movieFile) && session.current.camera != nil
                session.isRecording = records
                model.isRecording = records
                (wasAccepted, expected) = (true, true)
            }
            #expect(wasAccepted == expected, "seed \(seed), step \(step), change \(kind)")
            #expect(Set(session.current.inputs.map(\.device.id)) == model.inputs, "seed \(seed), step \(step)")
            #expect(session.current.outputs.count == model.outputs.count)
            guard wasAccepted == expected else { return }
        }
    }
}
