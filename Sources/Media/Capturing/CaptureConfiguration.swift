package import LiveStreaming
package import PluginAPI

/// The inputs, the outputs and the preset of a capture session, and their changes: what is between `begin` and `commit` is
/// applied as a whole or not at all (AVCaptureSession.beginConfiguration).
///
/// It is a value without a camera. `canAdd…` and the changes ask the same rules.
package struct CaptureConfiguration: Sendable, Hashable {
    /// What an output does with the pictures and the sound. The raw value is the name on the wire.
    package enum OutputKind: String, Sendable, Hashable, CaseIterable {
        case photo
        case movieFile = "movie-file"
        case preview, live, frames
    }

    /// Where a live stream goes, and how it is encoded.
    package struct Stream: Sendable, Hashable {
        package let target: LiveTarget
        package let settings: LiveSettings

        package init(_ target: LiveTarget, _ settings: LiveSettings) {
            (self.target, self.settings) = (target, settings)
        }
    }

    /// What an output needs beside its kind.
    package struct OutputOptions: Sendable, Hashable {
        /// Of a preview: the X11 server; nil: that of the environment.
        package var display: String?
        /// Of a preview: the window of a client that it is shown in; nil: a window of its own.
        package var window: UInt32?
        /// Of frames: the FIFO, the pixels, and whether each picture has a header.
        package var path = ""
        package var pixels = CapturePixels.i420
        package var hasHeader = true
        /// Of photos: whether a shutter is heard.
        package var hasShutterSound = false
        /// Of a live stream, which needs it.
        package var stream: Stream?

        package init() {}
    }

    package struct Input: Sendable, Hashable {
        package let id: UInt32
        package let device: CaptureSource
    }

    package struct Output: Sendable, Hashable {
        package let id: UInt32
        package let kind: OutputKind
        package var options = OutputOptions()
    }

    /// Everything that applies together.
    package struct Arrangement: Sendable, Hashable {
        package fileprivate(set) var inputs: [Input] = []
        package fileprivate(set) var outputs: [Output] = []
        package fileprivate(set) var preset = CapturePreset.high

        package var camera: CaptureSource? { inputs.first { $0.device.media == .video }?.device }
        package var microphone: CaptureSource? { inputs.first { $0.device.media == .audio }?.device }
        package func has(_ kind: OutputKind) -> Bool { output(kind) != nil }
        package func output(_ kind: OutputKind) -> Output? { outputs.first { $0.kind == kind } }
        /// Whether sound is recorded, sent, or measured for the meter of a preview: a microphone that no output uses needs no
        /// audio session.
        package var usesSound: Bool { microphone != nil && (has(.movieFile) || has(.preview) || has(.live)) }
        /// What a call does if nobody has said it: viewers of a live stream go on seeing something, and a film can wait.
        package var usualInterruption: CaptureInterruption { has(.live) ? .silence : .pause }
        /// Whether a film can have the pictures of the encoder of the live stream: those are as the camera gives them.
        package var canShareEncoder: Bool { output(.live)?.options.stream?.settings.filters.isEmpty == true }
        /// What the camera sends; nil without a camera.
        package var choice: CapturePreset.Choice? { camera.flatMap { preset.choice(from: $0.formats) } }
    }

    /// What applies now.
    package private(set) var current = Arrangement()
    /// What is being changed; nil outside of a pair.
    private var draft: Arrangement?
    private var lastID: UInt32 = 0
    /// A film is being recorded: its size, its sound and its output stay.
    package var isRecording = false

    package init() {}

    package var isConfiguring: Bool { draft != nil }
    /// What applies after the commit.
    package var next: Arrangement { draft ?? current }

    // MARK: Pairs

    /// - Throws: `IsBusy` if there is an open pair.
    package mutating func begin() throws(SessionError) {
        guard draft == nil else {
            throw SessionError(.isBusy, "the configuration has begun already: commit it first")
        }
        draft = current
    }

    /// Applies all changes since ``begin()``.
    /// - Returns: what applied before.
    /// - Throws: `BadParameter` without a pair; and if the result is not possible, then nothing changes.
    package mutating func commit() throws(SessionError) -> Arrangement {
        guard let draft else { throw .badParameter("no configuration has begun") }
        let before = current
        self.draft = nil
        try check(draft)
        current = draft
        return before
    }

    /// Forgets all changes since ``begin()``.
    package mutating func cancel() { draft = nil }

    // MARK: Inputs

    /// Why the device cannot be an input now; nil: it can.
    package func refusal(ofInput device: CaptureSource) -> SessionError? {
        let next = next
        if next.inputs.contains(where: { $0.device.id == device.id }) {
            return SessionError(.isBusy, "'\(device.name)' is an input already")
        }
        if next.inputs.contains(where: { $0.device.media == device.media }) {
            let what = device.media == .video ? "camera" : "microphone"
            return SessionError(.isBusy, "there is a \(what) already: remove it first")
        }
        var after = next
        after.inputs.append(Input(id: 0, device: device))
        return refusal(of: after)
    }

    /// Why an arrangement cannot apply now; nil: it can, or it is only checked at the commit.
    private func refusal(of arrangement: Arrangement) -> SessionError? {
        guard draft == nil else { return nil }
        do throws(SessionError) {
            try check(arrangement)
            return nil
        } catch {
            return error
        }
    }

    /// - Returns: the number of the input.
    package mutating func addInput(_ device: CaptureSource) throws(SessionError) -> UInt32 {
        if let refusal = refusal(ofInput: device) { throw refusal }
        var next = next
        lastID += 1
        next.inputs.append(Input(id: lastID, device: device))
        try take(next)
        return lastID
    }

    package mutating func removeInput(_ id: UInt32) throws(SessionError) {
        var next = next
        guard let place = next.inputs.firstIndex(where: { $0.id == id }) else {
            throw .badParameter("there is no input \(id)")
        }
        next.inputs.remove(at: place)
        try take(next)
    }

    // MARK: Outputs

    package func refusal(ofOutput kind: OutputKind) -> SessionError? {
        if next.has(kind) { return SessionError(.isBusy, "there is an output '\(kind.rawValue)' already") }
        var after = next
        after.outputs.append(Output(id: 0, kind: kind))
        return refusal(of: after)
    }

    package mutating func addOutput(
        _ kind: OutputKind, _ options: OutputOptions = OutputOptions()
    ) throws(SessionError) -> UInt32 {
        if let refusal = refusal(ofOutput: kind) { throw refusal }
        var next = next
        lastID += 1
        next.outputs.append(Output(id: lastID, kind: kind, options: options))
        try take(next)
        return lastID
    }

    package mutating func removeOutput(_ id: UInt32) throws(SessionError) {
        var next = next
        guard let place = next.outputs.firstIndex(where: { $0.id == id }) else {
            throw .badParameter("there is no output \(id)")
        }
        next.outputs.remove(at: place)
        try take(next)
    }

    /// The user has closed an output, or it is gone: it is removed from what applies and from what is being changed.
    package mutating func lost(_ kind: OutputKind) {
        current.outputs.removeAll { $0.kind == kind }
        draft?.outputs.removeAll { $0.kind == kind }
    }

    // MARK: The preset

    package func refusal(of preset: CapturePreset) -> SessionError? {
        var after = next
        after.preset = preset
        return refusal(of: after)
    }

    package mutating func setPreset(_ preset: CapturePreset) throws(SessionError) {
        var next = next
        next.preset = preset
        try take(next)
    }

    /// Another camera in the place of the current one, in a pair or as one change.
    package mutating func switchCamera(to device: CaptureSource) throws(SessionError) -> UInt32 {
        var next = next
        guard let place = next.inputs.firstIndex(where: { $0.device.media == .video }) else {
            throw .badParameter("there is no camera to switch from: add one")
        }
        guard next.inputs[place].device.id != device.id else { return next.inputs[place].id }
        lastID += 1
        next.inputs[place] = Input(id: lastID, device: device)
        try take(next)
        return lastID
    }

    /// The user has allowed a camera: it takes the place of the hidden one, in what applies and in what is being changed.
    /// - Throws: `NotSupported` if it cannot have the preset; then nothing changes.
    package mutating func reveal(_ device: CaptureSource) throws(SessionError) {
        func revealed(_ arrangement: Arrangement) -> Arrangement {
            var next = arrangement
            next.inputs = next.inputs.map { $0.device.isHidden ? Input(id: $0.id, device: device) : $0 }
            return next
        }
        let next = revealed(current)
        if next.camera != nil, next.choice == nil { throw Self.unfit(device, next.preset) }
        current = next
        draft = draft.map(revealed)
    }

    // MARK: Rules

    private mutating func take(_ arrangement: Arrangement) throws(SessionError) {
        if draft != nil {
            draft = arrangement
        } else {
            try check(arrangement)
            current = arrangement
        }
    }

    /// Whether an arrangement is possible after the current one.
    private func check(_ next: Arrangement) throws(SessionError) {
        if let camera = next.camera, !camera.isHidden, next.choice == nil { throw Self.unfit(camera, next.preset) }
        guard isRecording else { return }
        guard next.camera != nil else {
            throw SessionError(.isBusy, "a film is being recorded: its camera can be replaced, not removed")
        }
        guard next.has(.movieFile) else {
            throw SessionError(.isBusy, "a film is being recorded: stop it before its output is removed")
        }
        guard next.preset == current.preset else {
            throw SessionError(.isBusy, "a film is being recorded: its preset cannot change")
        }
        guard (next.microphone == nil) == (current.microphone == nil) else {
            throw SessionError(.isBusy, "a film is being recorded: whether it has sound cannot change")
        }
    }

    private static func unfit(_ camera: CaptureSource, _ preset: CapturePreset) -> SessionError {
        let presets = camera.presets.map(\.rawValue).joined(separator: ", ")
        return SessionError(
            .notSupported,
            "'\(camera.name)' has no pictures for the preset '\(preset.rawValue)'; it has "
                + (presets.isEmpty ? "none that can be used" : presets))
    }
}
