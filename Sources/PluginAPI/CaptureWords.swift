// The words of cameras on the wire, for the plugin and for apps. The raw values are the words.

/// Where a camera is (AVCaptureDevice.Position).
public enum CapturePosition: String, Sendable, Hashable, CaseIterable {
    case front, back, external, unspecified
}

/// What a device gives (AVMediaType).
public enum CaptureMediaType: String, Sendable, Hashable, CaseIterable { case video, audio }

/// The size and the rate of the pictures, by a name (AVCaptureSession.Preset).
public enum CapturePreset: String, Sendable, Hashable, CaseIterable {
    case low, medium, high, photo
    case vga640x480 = "640x480"
    case qHD960x540 = "960x540"
    case hd1280x720 = "1280x720"
    case hd1920x1080 = "1920x1080"
    case hd4K3840x2160 = "3840x2160"
    /// As the camera sends them.
    case inputPriority = "input-priority"
}

/// What an interruption of the session, such as a call, does to a film with sound.
public enum CaptureInterruption: String, Sendable, Hashable, CaseIterable {
    /// It pauses, and goes on in the same file when the session may record again.
    case pause
    /// The pictures go on, and the sound is silence.
    case silence
    /// It ends, complete.
    case stop
}

/// Why a film has ended.
public enum CaptureEndReason: String, Sendable, Hashable, CaseIterable {
    case stopped, interrupted, error
    case maximumDuration = "maximum-duration"
    case maximumSize = "maximum-size"
    case diskFull = "disk-full"
    case deviceDisconnected = "device-disconnected"
}

/// The pixels of raw pictures, by GStreamer's names.
public enum CapturePixels: String, Sendable, Hashable, CaseIterable {
    /// Brightness, and below it both colours at half of the width and the height.
    case i420 = "I420"
    /// Three bytes.
    case rgb = "RGB"
    /// Four bytes; the fourth has no meaning.
    case bgrx = "BGRx"
    /// Brightness alone.
    case gray8 = "GRAY8"
}

/// What can be set of a camera (AVCaptureDevice). Each camera has some of them.
public enum CaptureControl: String, Sendable, Hashable, CaseIterable {
    /// A factor (videoZoomFactor).
    case zoom
    /// The brightness of the light, from 0, off, to 1 (torchMode, torchLevel).
    case torch
    /// Whether the light is on while a photo is taken: `off` or `on` (AVCapturePhotoSettings.flashMode).
    case flash
    /// `locked`, `auto` (once) or `continuous` (focusMode).
    case focus
    /// From 0, near, to 1, far (lensPosition). The focus is locked then.
    case lensPosition = "lens-position"
    case focusPoint = "focus-point"
    /// `locked` or `continuous` (exposureMode).
    case exposure
    /// Seconds (exposureDuration). The exposure is locked then.
    case exposureDuration = "exposure-duration"
    /// In EV (exposureTargetBias).
    case exposureBias = "exposure-bias"
    case exposurePoint = "exposure-point"
    /// `locked`, `auto` (once) or `continuous` (whiteBalanceMode).
    case whiteBalance = "white-balance"
    /// In kelvin. The white balance is locked then.
    case temperature = "white-balance-temperature"
    /// `off` or `standard` (preferredVideoStabilizationMode).
    case stabilization
}

/// Whether the light of a camera is on while a photo is taken (AVCaptureDevice.FlashMode).
public enum CaptureFlash: String, Sendable, Hashable, CaseIterable { case off, on }
