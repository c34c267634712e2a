public import Foundation
import Synchronization

// AVFoundation's objects for cameras. They hold the capture session of SessionKit, which does the work: calls that block on iOS
// block here, and delegates are called on the main thread.

public typealias AVMediaType = CaptureMediaType
public typealias AVVideoCodecType = CaptureSession.Codec
/// What `AVCaptureVideoDataOutput` gives: the bytes of a picture, and when it came.
public typealias CMSampleBuffer = CaptureFrame

/// A camera or a microphone. What is set of it applies in the session that it is an input of.
public final class AVCaptureDevice: NSObject, Sendable {
    public typealias Position = CapturePosition

    public enum DeviceType: Sendable, Hashable {
        case builtInWideAngleCamera, external, microphone

        fileprivate func isLike(_ device: CaptureDevice) -> Bool {
            switch self {
            case .builtInWideAngleCamera: device.mediaType == .video && device.position != .external
            case .external: device.mediaType == .video && device.position == .external
            case .microphone: device.mediaType == .audio
            }
        }
    }

    public final class DiscoverySession: NSObject, Sendable {
        public let devices: [AVCaptureDevice]

        public init(deviceTypes: [DeviceType], mediaType: AVMediaType?, position: Position) {
            devices = AVCaptureDevice.all(mediaType).filter { device in
                deviceTypes.contains { $0.isLike(device) } && (position == .unspecified || device.position == position)
            }.map { AVCaptureDevice($0) }
        }
    }

    public let device: CaptureDevice
    private struct State {
        var session: CaptureSession?
        var isLocked = false
        /// As they were when the device was found, and as this program set them.
        var settings: [CaptureControl: CaptureDevice.Setting]
    }

    private let state: Mutex<State>

    init(_ device: CaptureDevice) {
        self.device = device
        state = Mutex(State(settings: device.controlValues))
    }

    fileprivate static func all(_ mediaType: AVMediaType?) -> [CaptureDevice] {
        trying("devices") { () async throws(SessionError) in
            try await CaptureDevice.DiscoverySession(mediaType: mediaType).devices
        } ?? []
    }

    public static func `default`(for mediaType: AVMediaType) -> AVCaptureDevice? {
        all(mediaType).first.map { AVCaptureDevice($0) }
    }

    public static func `default`(
        _ type: DeviceType, for mediaType: AVMediaType?, position: Position
    ) -> AVCaptureDevice? {
        DiscoverySession(deviceTypes: [type], mediaType: mediaType, position: position).devices.first
    }

    public var uniqueID: String { device.id }
    public var localizedName: String { device.localizedName }
    public var position: Position { device.position }
    public func hasMediaType(_ type: AVMediaType) -> Bool { device.mediaType == type }

    public enum TorchMode: String, Sendable, Hashable { case off, on, auto }
    public enum FlashMode: String, Sendable, Hashable { case off, on, auto }

    public enum FocusMode: String, Sendable, Hashable {
        case locked
        case autoFocus = "auto"
        case continuousAutoFocus = "continuous"
    }

    public enum ExposureMode: String, Sendable, Hashable {
        case locked
        case autoExpose = "auto"
        case continuousAutoExposure = "continuous"
    }

    public enum WhiteBalanceMode: String, Sendable, Hashable {
        case locked
        case autoWhiteBalance = "auto"
        case continuousAutoWhiteBalance = "continuous"
    }

    // No driver of Linux has points of interest.
    public var isFocusPointOfInterestSupported: Bool { false }
    public var isExposurePointOfInterestSupported: Bool { false }

    private func range(_ control: CaptureControl) -> ClosedRange<Double>? {
        if case .range(let range) = device.controls[control] { range } else { nil }
    }

    private func can(_ word: String, _ control: CaptureControl) -> Bool {
        if case .words(let words) = device.controls[control] { words.contains(word) } else { false }
    }

    private func number(_ control: CaptureControl) -> Double? {
        if case .number(let number) = state.withLock({ $0.settings[control] }) { number } else { nil }
    }

    private func word(_ control: CaptureControl) -> String {
        if case .word(let word) = state.withLock({ $0.settings[control] }) { word } else { "" }
    }

    private func set(_ control: CaptureControl, _ setting: CaptureDevice.Setting) throws(SessionError) {
        guard let session = state.withLock({ $0.isLocked ? $0.session : nil }) else {
            throw SessionError(.notReady, "lock the device first")
        }
        let device = device
        try waiting { () async throws(SessionError) in try await session.set(control, to: setting, of: device) }
        state.withLock { $0.settings[control] = setting }
    }

    /// As a property of iOS is set: a value that is not possible is logged, and changes nothing.
    private func assign(_ control: CaptureControl, _ setting: CaptureDevice.Setting) {
        do throws(SessionError) { try set(control, setting) } catch { logged(control.rawValue, error) }
    }

    public var hasTorch: Bool { device.controls[.torch] != nil }
    public var hasFlash: Bool { device.controls[.flash] != nil }
    public var torchLevel: Float { Float(number(.torch) ?? 0) }
    public var isTorchActive: Bool { torchLevel > 0 }
    public func isTorchModeSupported(_ mode: TorchMode) -> Bool { mode == .off || (mode == .on && hasTorch) }

    /// The device must be locked.
    public var torchMode: TorchMode {
        get { isTorchActive ? .on : .off }
        set {
            guard newValue != .auto else {
                return logged("torchMode", SessionError(.notSupported, "the light cannot be automatic"))
            }
            assign(.torch, .number(newValue == .on ? 1 : 0))
        }
    }

    /// - Parameter level: above 0, at most 1. The device must be locked.
    public func setTorchModeOn(level: Float) throws { try set(.torch, .number(Double(level))) }

    public func isFocusModeSupported(_ mode: FocusMode) -> Bool { can(mode.rawValue, .focus) }
    /// The device must be locked.
    public var focusMode: FocusMode {
        get { FocusMode(rawValue: word(.focus)) ?? .locked }
        set { assign(.focus, .word(newValue.rawValue)) }
    }

    public var isLockingFocusWithCustomLensPositionSupported: Bool { range(.lensPosition) != nil }
    /// 0: near; 1: far.
    public var lensPosition: Float { Float(number(.lensPosition) ?? 0) }
    public func setFocusModeLocked(lensPosition: Float) throws {
        try set(.lensPosition, .number(Double(lensPosition)))
        state.withLock { $0.settings[.focus] = .word(FocusMode.locked.rawValue) }
    }

    public func isExposureModeSupported(_ mode: ExposureMode) -> Bool { can(mode.rawValue, .exposure) }
    /// The device must be locked.
    public var exposureMode: ExposureMode {
        get { ExposureMode(rawValue: word(.exposure)) ?? .continuousAutoExposure }
        set { assign(.exposure, .word(newValue.rawValue)) }
    }

    /// In EV.
    public var minExposureTargetBias: Float { Float(range(.exposureBias)?.lowerBound ?? 0) }
    public var maxExposureTargetBias: Float { Float(range(.exposureBias)?.upperBound ?? 0) }
    public var exposureTargetBias: Float { Float(number(.exposureBias) ?? 0) }
    public func setExposureTargetBias(_ bias: Float) throws { try set(.exposureBias, .number(Double(bias))) }

    public func isWhiteBalanceModeSupported(_ mode: WhiteBalanceMode) -> Bool { can(mode.rawValue, .whiteBalance) }
    /// The device must be locked.
    public var whiteBalanceMode: WhiteBalanceMode {
        get { WhiteBalanceMode(rawValue: word(.whiteBalance)) ?? .continuousAutoWhiteBalance }
        set { assign(.whiteBalance, .word(newValue.rawValue)) }
    }

    public var minAvailableVideoZoomFactor: Double { range(.zoom)?.lowerBound ?? 1 }
    public var maxAvailableVideoZoomFactor: Double { range(.zoom)?.upperBound ?? 1 }

    /// - Throws: `NotReady` if it is no input yet, `IsBusy` while another program changes it.
    public func lockForConfiguration() throws {
        guard let session = state.withLock({ $0.session }) else {
            throw SessionError(.notReady, "add '\(localizedName)' to a session first")
        }
        let device = device
        try waiting { () async throws(SessionError) in try await session.lockForConfiguration(device) }
        state.withLock { $0.isLocked = true }
    }

    public func unlockForConfiguration() {
        guard let session = state.withLock({ $0.isLocked ? $0.session : nil }) else { return }
        let device = device
        state.withLock { $0.isLocked = false }
        trying("unlockForConfiguration") { () async throws(SessionError) in
            try await session.unlockForConfiguration(device)
        }
    }

    /// Must be locked; a factor that is not possible is logged, and changes nothing.
    public var videoZoomFactor: Double {
        get { number(.zoom) ?? 1 }
        set { assign(.zoom, .number(newValue)) }
    }

    fileprivate func belongs(to session: CaptureSession?) {
        state.withLock { state in
            (state.session, state.isLocked) = (session, false)
            if session == nil { state.settings[.zoom] = nil }
        }
    }
}

public class AVCaptureInput: NSObject, @unchecked Sendable {
    fileprivate override init() {}
}

// SAFETY: nothing changes but the number, which is behind a lock.
public final class AVCaptureDeviceInput: AVCaptureInput, @unchecked Sendable {
    public let device: AVCaptureDevice
    fileprivate let added = Mutex<CaptureSession.Input?>(nil)

    /// Does not open the device: that fails when the session starts to run.
    public init(device: AVCaptureDevice) throws { self.device = device }
}

// SAFETY: what changes is behind a lock.
public class AVCaptureOutput: NSObject, @unchecked Sendable {
    fileprivate let place = Mutex<(session: AVCaptureSession?, number: UInt32)>((nil, 0))

    fileprivate override init() {}

    fileprivate var kind: CaptureSession.Output? { nil }
    fileprivate var session: CaptureSession? { place.withLock { $0.session }?.session }

    fileprivate func entered() {}
    fileprivate func left() {}
    fileprivate func heard(_ notice: CaptureSession.Notice) {}
}

/// As on iOS: an app adds inputs and outputs, and starts it, on any thread but in no task.
public final class AVCaptureSession: NSObject, Sendable {
    public typealias Preset = CapturePreset

    public static let wasInterruptedNotification = Notification.Name("AVCaptureSessionWasInterruptedNotification")
    public static let interruptionEndedNotification = Notification.Name("AVCaptureSessionInterruptionEndedNotification")
    public static let runtimeErrorNotification = Notification.Name("AVCaptureSessionRuntimeErrorNotification")

    /// The session of SessionKit.
    public let session: CaptureSession
    private let state = Mutex((inputs: [AVCaptureInput](), outputs: [AVCaptureOutput](), listens: false))

    public override convenience init() { self.init(ProcessInfo.processInfo.processName) }

    /// - Parameter name: shown to the user as who uses the camera.
    public init(_ name: String) { session = CaptureSession(name: name) }

    public var inputs: [AVCaptureInput] { state.withLock { $0.inputs } }
    public var outputs: [AVCaptureOutput] { state.withLock { $0.outputs } }

    public func canAddInput(_ input: AVCaptureInput) -> Bool {
        guard let input = input as? AVCaptureDeviceInput else { return false }
        return trying("canAddInput") { [session] () async throws(SessionError) in
            try await session.canAddInput(input.device.device)
        } ?? false
    }

    public func addInput(_ input: AVCaptureInput) {
        listen()
        guard let input = input as? AVCaptureDeviceInput else { return }
        let added = trying("addInput") { [session] () async throws(SessionError) in
            try await session.addInput(input.device.device)
        }
        guard let added else { return }
        input.added.withLock { $0 = added }
        input.device.belongs(to: session)
        state.withLock { $0.inputs.append(input) }
    }

    public func removeInput(_ input: AVCaptureInput) {
        guard let input = input as? AVCaptureDeviceInput, let added = input.added.withLock({ $0 }) else { return }
        trying("removeInput") { [session] () async throws(SessionError) in try await session.removeInput(added) }
        input.device.belongs(to: nil)
        state.withLock { $0.inputs.removeAll { $0 === input } }
    }

    public func canAddOutput(_ output: AVCaptureOutput) -> Bool {
        guard let kind = output.kind else { return true }
        return trying("canAddOutput") { [session] () async throws(SessionError) in
            try await session.canAddOutput(kind)
        } ?? false
    }

    public func addOutput(_ output: AVCaptureOutput) {
        listen()
        var number: UInt32 = 0
        if let kind = output.kind {
            let made = trying("addOutput") { [session] () async throws(SessionError) in
                try await session.addOutput(kind)
            }
            guard let made else { return }
            number = made
        }
        let own = number
        output.place.withLock { $0 = (self, own) }
        state.withLock { $0.outputs.append(output) }
        output.entered()
    }

    public func removeOutput(_ output: AVCaptureOutput) {
        let number = output.place.withLock { $0.number }
        if output.kind != nil {
            trying("removeOutput") { [session] () async throws(SessionError) in try await session.removeOutput(number) }
        }
        output.left()
        output.place.withLock { $0 = (nil, 0) }
        state.withLock { $0.outputs.removeAll { $0 === output } }
    }

    public func beginConfiguration() {
        trying("beginConfiguration") { [session] () async throws(SessionError) in try await session.beginConfiguration()
        }
    }

    /// What cannot apply together is refused as a whole, and logged.
    public func commitConfiguration() {
        trying("commitConfiguration") { [session] () async throws(SessionError) in
            try await session.commitConfiguration()
        }
    }

    public func canSetSessionPreset(_ preset: Preset) -> Bool {
        trying("canSetSessionPreset") { [session] () async throws(SessionError) in
            try await session.canSetSessionPreset(preset)
        } ?? false
    }

    public var sessionPreset: Preset {
        get {
            trying("sessionPreset") { [session] () async throws(SessionError) in try await session.sessionPreset }
                ?? .high
        }
        set {
            trying("sessionPreset") { [session] () async throws(SessionError) in
                try await session.setSessionPreset(newValue)
            }
        }
    }

    /// Returns with the first picture. Why it does not run is logged, and posted as a runtime error.
    public func startRunning() {
        listen()
        do throws(SessionError) {
            try waiting { [session] () async throws(SessionError) in try await session.startRunning() }
        } catch {
            logged("startRunning", error)
            post(Self.runtimeErrorNotification, [AVCaptureSessionErrorKey: error])
        }
    }

    /// Completes a film first.
    public func stopRunning() {
        trying("stopRunning") { [session] () async throws(SessionError) in try await session.stopRunning() }
    }

    public var isRunning: Bool {
        trying("isRunning") { [session] () async throws(SessionError) in try await session.status }?.isRunning ?? false
    }

    public var isInterrupted: Bool {
        trying("isInterrupted") { [session] () async throws(SessionError) in try await session.status }?.interruption
            != nil
    }

    // MARK: Notices

    private func listen() {
        let isFirst = state.withLock { state in
            defer { state.listens = true }
            return !state.listens
        }
        guard isFirst else { return }
        let notices = session.notices
        Task { [weak self] in for await notice in notices { self?.heard(notice) } }
    }

    private func heard(_ notice: CaptureSession.Notice) {
        switch notice {
        case .wasInterrupted(let reason):
            post(Self.wasInterruptedNotification, reason.map { [AVCaptureSessionInterruptionReasonKey: $0] } ?? [:])
        case .interruptionEnded: post(Self.interruptionEndedNotification, [:])
        case .runtimeError(let error): post(Self.runtimeErrorNotification, [AVCaptureSessionErrorKey: error])
        case .didStartRecording, .didFinishRecording, .previewDidClose, .live: break
        }
        for output in outputs { output.heard(notice) }
    }

    private func post(_ name: Notification.Name, _ info: [String: any Sendable]) {
        DispatchQueue.main.async { NotificationCenter.default.post(name: name, object: self, userInfo: info) }
    }
}

/// The ``SessionError`` of a runtime error.
public let AVCaptureSessionErrorKey = "AVCaptureSessionErrorKey"
/// A ``CaptureSession/InterruptionReason``.
public let AVCaptureSessionInterruptionReasonKey = "AVCaptureSessionInterruptionReasonKey"

// MARK: The preview

/// The pictures of a session in a window of X11 of its own: there are no layers here.
public final class AVCaptureVideoPreviewLayer: AVCaptureOutput, @unchecked Sendable {
    /// Adds the window to the session; it is shown while the session runs.
    public init(session: AVCaptureSession) {
        super.init()
        session.addOutput(self)
    }

    fileprivate override var kind: CaptureSession.Output? { .preview }

    public func removeFromSuperlayer() { place.withLock { $0.session }?.removeOutput(self) }
}

// MARK: Photos

// SAFETY: what changes is behind a lock.
public final class AVCapturePhotoSettings: NSObject, @unchecked Sendable {
    private let flash = Mutex(AVCaptureDevice.FlashMode.off)

    /// `auto` is off: no camera of Linux says how dark it is.
    public var flashMode: AVCaptureDevice.FlashMode {
        get { flash.withLock { $0 } }
        set { flash.withLock { $0 = newValue } }
    }
}

/// A photo in JPEG.
public final class AVCapturePhoto: NSObject, Sendable {
    private let data: Data

    fileprivate init(_ data: Data) { self.data = data }

    public func fileDataRepresentation() -> Data? { data }
}

/// As on iOS. Called on the main thread.
public protocol AVCapturePhotoCaptureDelegate: AnyObject {
    func photoOutput(
        _ output: AVCapturePhotoOutput, didFinishProcessingPhoto photo: AVCapturePhoto, error: (any Error)?)
}

public final class AVCapturePhotoOutput: AVCaptureOutput, @unchecked Sendable {
    public override init() { super.init() }

    fileprivate override var kind: CaptureSession.Output? { .photo }

    /// The delegate is kept until it was called, as on iOS.
    public func capturePhoto(with settings: AVCapturePhotoSettings, delegate: any AVCapturePhotoCaptureDelegate) {
        let told = Told(delegate)
        let session = session
        let flash = settings.flashMode == .on
        Task {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).jpg")
            defer { try? FileManager.default.removeItem(at: file) }
            var data = Data()
            var problem: (any Error)?
            do {
                guard let session else { throw SessionError(.notReady, "add the output to a session first") }
                try await session.capturePhoto(to: file.path, flash: flash)
                data = try Data(contentsOf: file)
            } catch {
                problem = error
            }
            let (photo, error) = (AVCapturePhoto(data), problem)
            await told.tell { $0.photoOutput(self, didFinishProcessingPhoto: photo, error: error) }
        }
    }
}

// MARK: Films

/// As on iOS. Called on the main thread.
public protocol AVCaptureFileOutputRecordingDelegate: AnyObject {
    func fileOutput(
        _ output: AVCaptureFileOutput, didStartRecordingTo fileURL: URL, from connections: [AVCaptureConnection])
    /// With an error, what was recorded plays.
    func fileOutput(
        _ output: AVCaptureFileOutput, didFinishRecordingTo outputFileURL: URL, from connections: [AVCaptureConnection],
        error: (any Error)?)
}

extension AVCaptureFileOutputRecordingDelegate {
    public func fileOutput(
        _ output: AVCaptureFileOutput, didStartRecordingTo fileURL: URL, from connections: [AVCaptureConnection]
    ) {}
}

/// Which input an output gets: always the ones of the session.
public final class AVCaptureConnection: NSObject, Sendable {}

public class AVCaptureFileOutput: AVCaptureOutput, @unchecked Sendable {}

public final class AVCaptureMovieFileOutput: AVCaptureFileOutput, @unchecked Sendable {
    private let film = Mutex(
        (told: Told<any AVCaptureFileOutputRecordingDelegate>?.none, options: CaptureSession.Film()))
    private let lastError = Mutex<SessionError?>(nil)

    public override init() { super.init() }

    fileprivate override var kind: CaptureSession.Output? { .movieFile }

    /// ``CMTime/invalid`` is no limit; so is 0.
    public var maxRecordedDuration: CMTime {
        get { CMTime(seconds: film.withLock { $0.options.maxRecordedDuration } ?? 0) }
        set { film.withLock { $0.options.maxRecordedDuration = newValue.seconds > 0 ? newValue.seconds : nil } }
    }

    public var maxRecordedFileSize: Int64 {
        get { Int64(clamping: film.withLock { $0.options.maxRecordedFileSize } ?? 0) }
        set { film.withLock { $0.options.maxRecordedFileSize = newValue > 0 ? UInt64(newValue) : nil } }
    }

    public var isRecording: Bool { status?.isRecording ?? false }
    public var isRecordingPaused: Bool { status?.isPaused ?? false }
    public var recordedDuration: CMTime { CMTime(seconds: status?.recordedDuration ?? 0) }
    public var recordedFileSize: Int64 { Int64(clamping: status?.recordedFileSize ?? 0) }

    private var status: CaptureSession.Status? {
        session.flatMap { session in
            trying("status") { () async throws(SessionError) in try await session.status }
        }
    }

    /// Existing files are an error, as on iOS. The delegate is kept until the film has ended.
    public func startRecording(to url: URL, recordingDelegate: any AVCaptureFileOutputRecordingDelegate) {
        let told = Told(recordingDelegate)
        let options = film.withLock { film in
            film.told = told
            return film.options
        }
        lastError.withLock { $0 = nil }
        let session = session
        Task {
            do throws(SessionError) {
                guard let session else { throw SessionError(.notReady, "add the output to a session first") }
                try await session.startRecording(to: url.path, options)
            } catch {
                film.withLock { $0.told = nil }
                await told.tell { $0.fileOutput(self, didFinishRecordingTo: url, from: [], error: error) }
            }
        }
    }

    public func pauseRecording() {
        call("pauseRecording") { session throws(SessionError) in try await session.pauseRecording() }
    }
    public func resumeRecording() {
        call("resumeRecording") { session throws(SessionError) in try await session.resumeRecording() }
    }
    /// The delegate is told when the file is complete.
    public func stopRecording() {
        call("stopRecording") { session throws(SessionError) in try await session.stopRecording() }
    }

    private func call(
        _ name: String, _ body: @escaping @Sendable (CaptureSession) async throws(SessionError) -> Void
    ) {
        guard let session else { return }
        trying(name) { () async throws(SessionError) in try await body(session) }
    }

    fileprivate override func heard(_ notice: CaptureSession.Notice) {
        switch notice {
        case .didStartRecording(let path):
            guard let told = film.withLock({ $0.told }) else { return }
            Task {
                await told.tell {
                    $0.fileOutput(self, didStartRecordingTo: URL(fileURLWithPath: path), from: [])
                }
            }
        case .didFinishRecording(let path, let isComplete, _):
            let told = film.withLock { film in
                defer { film.told = nil }
                return film.told
            }
            let reason = lastError.withLock { $0 }
            let error = isComplete ? nil : reason ?? SessionError(.exportFailed, "the end of the film is missing")
            Task {
                await told?.tell {
                    $0.fileOutput(self, didFinishRecordingTo: URL(fileURLWithPath: path), from: [], error: error)
                }
            }
        case .runtimeError(let error): lastError.withLock { $0 = error }
        case .wasInterrupted, .interruptionEnded, .previewDidClose, .live: break
        }
    }
}

// MARK: Pictures

/// As on iOS. Called on the queue of ``AVCaptureVideoDataOutput/setSampleBufferDelegate(_:queue:)``.
public protocol AVCaptureVideoDataOutputSampleBufferDelegate: AnyObject {
    func captureOutput(
        _ output: AVCaptureOutput, didOutput sampleBuffer: CMSampleBuffer, from connection: AVCaptureConnection)
}

public final class AVCaptureVideoDataOutput: AVCaptureOutput, @unchecked Sendable {
    private let receiver = Mutex(
        (told: Told<any AVCaptureVideoDataOutputSampleBufferDelegate>?.none, queue: DispatchQueue?.none))
    private let reading = Mutex<Task<Void, Never>?>(nil)
    private let format = Mutex(CapturePixels.bgrx)

    public override init() { super.init() }

    /// Always: a delegate that is slow loses pictures.
    public var alwaysDiscardsLateVideoFrames: Bool { true }

    /// Before it is added to a session. iOS has a dictionary here.
    public var pixels: CapturePixels {
        get { format.withLock { $0 } }
        set { format.withLock { $0 = newValue } }
    }

    /// - Parameter queue: nil: the main thread.
    public func setSampleBufferDelegate(
        _ delegate: (any AVCaptureVideoDataOutputSampleBufferDelegate)?, queue: DispatchQueue?
    ) {
        let told = delegate.map { Told($0) }
        receiver.withLock { $0 = (told, queue) }
    }

    fileprivate override func entered() {
        guard let session else { return }
        let pixels = pixels
        let frames = trying("addOutput") { () async throws(SessionError) in try await session.frames(pixels) }
        guard let frames else { return }
        let connection = AVCaptureConnection()
        let task = Task { [weak self] in
            for await frame in frames {
                guard let self, let told = receiver.withLock({ $0.told }) else { continue }
                let queue = receiver.withLock { $0.queue } ?? .main
                await withCheckedContinuation { done in
                    queue.async {
                        told.delegate.captureOutput(self, didOutput: frame, from: connection)
                        done.resume()
                    }
                }
            }
        }
        reading.withLock { $0 = task }
    }

    fileprivate override func left() { reading.withLock { $0?.cancel() } }
}

/// A delegate that is kept until it was told.
// SAFETY: the delegate is called on the main thread, or on the queue that the app gave for it.
private final class Told<Delegate>: @unchecked Sendable {
    let delegate: Delegate

    init(_ delegate: Delegate) { self.delegate = delegate }

    @MainActor
    func tell(_ event: @MainActor (Delegate) -> Void) { event(delegate) }
}
