public import DBus
public import PluginAPI

/// One photo or one film, without more (UIImagePickerController with the camera as its source).
///
///     let picker = ImagePicker(name: "Photo booth")
///     print(try await picker.takePicture())
///     print(try await picker.recordVideo(maximumDuration: 10))
public struct ImagePicker: Sendable {
    /// Shown to the user as who uses the camera.
    public var name: String
    /// Nil: the first camera.
    public var cameraDevice: CaptureDevice.Position?
    public var videoQuality = CaptureSession.Film.Quality.medium
    /// Whether a film has sound.
    public var hasSound = true
    private let bus: BusAddress

    /// - Parameter bus: where sessiond is.
    public init(name: String, cameraDevice: CaptureDevice.Position? = nil, on bus: BusAddress = .session) {
        (self.name, self.cameraDevice, self.bus) = (name, cameraDevice, bus)
    }

    /// Whether there is such a camera.
    public var isAvailable: Bool {
        get async { (try? await CaptureDevice.default(for: .video, position: cameraDevice, on: bus)) != nil }
    }

    /// - Parameter file: ends in `.jpg` or `.png`; nil: a new file in the user's folder for pictures.
    /// - Returns: the path of the photo.
    /// - Throws: `NotFound` if there is no such camera, and why it cannot be opened.
    @discardableResult
    public func takePicture(to file: String? = nil) async throws(SessionError) -> String {
        let session = try await opened(.photo)
        do throws(SessionError) {
            try await session.startRunning()
            let path = try await session.capturePhoto(to: file)
            await session.close()
            return path
        } catch {
            await session.close()
            throw error
        }
    }

    /// Records until the time is over. A call pauses the film, and it goes on in the same file.
    /// - Parameters:
    ///   - maximumDuration: seconds, without pauses, 10 by default as in UIKit.
    ///   - file: ends in `.mp4`, `.mov`, `.mkv` or `.webm`; nil: a new file in the user's folder for videos.
    /// - Returns: the path of the film.
    /// - Throws: `NotFound` if there is no such camera, `InsufficientPriority` while a call has the microphone; why the film is
    ///   not complete.
    @discardableResult
    public func recordVideo(maximumDuration: Double = 10, to file: String? = nil) async throws(SessionError) -> String {
        let session = try await opened(.movieFile)
        let notices = session.notices
        do throws(SessionError) {
            try await session.startRunning()
            var film = CaptureSession.Film()
            film.maxRecordedDuration = maximumDuration
            film.quality = videoQuality
            try await session.startRecording(to: file, film)
            var failure = SessionError(.mediaServicesFailed, "the film has not ended")
            for await notice in notices {
                switch notice {
                case .runtimeError(let error):
                    failure = error
                    // Nobody resumes it. If the plugin is gone, this fails.
                    do throws(SessionError) { try await session.stopRecording() } catch { throw failure }
                case .interruptionEnded:
                    // Without the should-resume hint it would wait for ever.
                    if try await session.status.isPaused { try await session.stopRecording() }
                case .didStartRecording, .didFinishRecording, .wasInterrupted, .previewDidClose, .live: break
                }
                guard case .didFinishRecording(let path, let isComplete, _) = notice else { continue }
                guard isComplete else { break }
                await session.close()
                return path
            }
            throw failure
        } catch {
            await session.close()
            throw error
        }
    }

    private func opened(_ output: CaptureSession.Output) async throws(SessionError) -> CaptureSession {
        guard let camera = try await CaptureDevice.default(for: .video, position: cameraDevice, on: bus) else {
            throw SessionError(.notFound, "there is no \(cameraDevice.map { "\($0.rawValue) " } ?? "")camera")
        }
        let session = CaptureSession(name: name, on: bus)
        try await session.addInput(camera)
        if output == .movieFile, hasSound,
            let microphone = try await CaptureDevice.default(for: .audio, on: bus)
        {
            try await session.addInput(microphone)
        }
        try await session.addOutput(output)
        return session
    }
}
