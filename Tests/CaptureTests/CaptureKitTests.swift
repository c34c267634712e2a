import DBus
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// The names of AVFoundation for cameras, in a program that uses SessionKit alone.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CaptureKitTests {
    @Test(.timeLimit(.minutes(2))) func sessionOfAnApp_takesAPhotoAndAFilmThatACallPauses() async throws {
        let stage = try CaptureStage()
        let bus = BusAddress.custom(stage.bus.address)
        let devices = try await CaptureDevice.DiscoverySession(on: bus).devices
        #expect(devices.contains { $0.mediaType == .audio && $0.id == "default" }, "\(devices)")
        let camera = try #require(try await CaptureDevice.default(for: .video, position: .front, on: bus))
        #expect(camera.formats.first?.frameRate == 30 && camera.presets.contains(.vga640x480), "\(camera)")
        #expect(try await CaptureDevice.default(for: .video, position: .back, on: bus) == nil)

        let session = CaptureSession(name: "App", on: bus)
        #expect(try await session.canAddInput(camera))
        // As a whole: the second camera makes all of it invalid.
        try await session.beginConfiguration()
        try await session.addInput(camera)
        let microphone = try #require(try await CaptureDevice.default(for: .audio, on: bus))
        try await session.addInput(microphone)
        try await session.addOutput(.photo)
        try await session.addOutput(.movieFile)
        try await session.setSessionPreset(.vga640x480)
        try await session.commitConfiguration()
        #expect(try await session.sessionPreset == .vga640x480)
        #expect(try await !session.canAddInput(camera))
        var notices = session.notices.makeAsyncIterator()
        let film = stage.path("film.mp4")
        await #expect(throws: SessionError.self) { try await session.startRecording(to: film) }
        try await session.startRunning()
        #expect(try await session.capturePhoto(to: stage.path("photo.jpg")) == stage.path("photo.jpg"))
        let refused = await #expect(throws: SessionError.self) {
            try await session.capturePhoto(to: "/nowhere/photo.jpg")
        }
        #expect(refused?.message.contains("/nowhere") == true, "\(String(describing: refused))")

        var options = CaptureSession.Film()
        options.maxRecordedDuration = 2
        try await session.startRecording(to: film, options)
        #expect(await notices.next() == .didStartRecording(path: film))
        let call = try stage.call()
        try call.begin()
        #expect(await notices.next() == .wasInterrupted(.audioDeviceInUse))
        let status = try await session.status
        #expect(status.isRecording && status.isPaused && status.interruption == .audioDeviceInUse, "\(status)")
        try call.end()
        let ended = await notices.next()
        #expect(ended == .interruptionEnded, "\(String(describing: ended))")
        let finished = await notices.next()
        #expect(
            finished == .didFinishRecording(path: film, isComplete: true, reason: .maximumDuration),
            "\(String(describing: finished)) \(stage.errors)")
        #expect(try ReadFilm(film).pictures.count == 60)
        await session.close()
        #expect(try await CaptureDevice.default(for: .video, on: bus)?.inUseBy == "")
    }

    @Test(.timeLimit(.minutes(2))) func imagePicker_takesOnePhotoAndOneFilm() async throws {
        let stage = try CaptureStage()
        let bus = BusAddress.custom(stage.bus.address)
        let picker = ImagePicker(name: "Photo booth", on: bus)
        #expect(await picker.isAvailable)
        #expect(await !ImagePicker(name: "Photo booth", cameraDevice: .back, on: bus).isAvailable)
        #expect(try await picker.takePicture(to: stage.path("photo.png")) == stage.path("photo.png"))
        let film = try await picker.recordVideo(maximumDuration: 1, to: stage.path("film.mp4"))
        let read = try ReadFilm(film)
        #expect(read.pictures.count == 30 && read.audioLength != nil)
        // A call has the microphone.
        let call = try stage.call()
        try call.begin()
        let refused = await #expect(throws: SessionError.self) {
            try await picker.recordVideo(maximumDuration: 1, to: stage.path("other.mp4"))
        }
        #expect(refused?.code == .insufficientPriority, "\(String(describing: refused))")
    }
}
