package import PluginAPI

/// What a client has set of a camera between LockForConfiguration and UnlockForConfiguration (AVCaptureDevice).
///
/// Only the zoom can be set: it is digital, a part of the picture that is made as large as the whole. What the hardware of a
/// camera would have to do is refused, and nothing is ignored.
package struct CaptureControls: Sendable, Hashable {
    /// What AVCaptureDevice can set. The raw value is the name on the wire.
    package enum Name: String, Sendable, Hashable, CaseIterable {
        case zoom, torch, flash, focus, exposure, stabilization
        case focusPoint = "focus-point"
        case exposurePoint = "exposure-point"
        case exposureBias = "exposure-bias"
        case whiteBalance = "white-balance"
    }

    /// A value from the wire.
    package enum Setting: Sendable, Hashable {
        case number(Double)
        /// Of any other type.
        case other
    }

    /// The factors of the zoom that are possible.
    package static let zooms = 1.0...8.0

    /// 1: the whole picture.
    package private(set) var zoom = 1.0

    package init() {}

    /// - Parameter camera: its name, for the refusal.
    /// - Throws: `BadParameter` for a control that does not exist and a value that is not possible, `NotSupported` for what the
    ///   camera does not have.
    package mutating func set(_ name: String, _ setting: Setting, of camera: String) throws(SessionError) {
        guard let control = Name(rawValue: name) else {
            let names = Name.allCases.map(\.rawValue).sorted().joined(separator: ", ")
            throw .badParameter("there is no control '\(name)'; the controls are \(names)")
        }
        guard control == .zoom else {
            throw SessionError(
                .notSupported,
                "the \(control.rawValue) of '\(camera)' cannot be set; only the zoom can, which is digital")
        }
        guard case .number(let factor) = setting, Self.zooms.contains(factor) else {
            throw .badParameter(
                "the zoom must be a number (d) from \(Int(Self.zooms.lowerBound)) to \(Int(Self.zooms.upperBound))")
        }
        zoom = factor
    }

    /// What a picture loses at each side to be zoomed.
    package struct Crop: Sendable, Hashable {
        package let left: Int
        package let right: Int
        package let top: Int
        package let bottom: Int
    }

    /// All four are even, because colours may have half of the size; a picture of at least 2 × 2 stays.
    package func crop(width: Int, height: Int) -> Crop {
        func sides(_ length: Int) -> (Int, Int) {
            let kept = max(2, Int((Double(length) / zoom).rounded()) & ~1)
            guard kept < length else { return (0, 0) }
            let before = ((length - kept) / 2) & ~1
            return (before, (length - kept - before) & ~1)
        }
        let (left, right) = sides(width)
        let (top, bottom) = sides(height)
        return Crop(left: left, right: right, top: top, bottom: bottom)
    }
}
