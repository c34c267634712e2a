package import PluginAPI

/// What is set of a camera in a session, and what can be set: digitally, by its driver, and of its light.
///
/// What a camera does not have is refused, and nothing is ignored.
package struct CaptureControls: Sendable, Hashable {
    /// What the hardware has to do.
    package enum Deed: Sendable, Hashable {
        /// Nothing: it is done to the pictures, or at the next photo.
        case nothing
        case writes([VideoWrite])
        case brightness(Int)
    }

    /// The factors of the zoom that are possible.
    package static let zooms = 1.0...8.0

    /// 1: the whole picture.
    package private(set) var zoom = 1.0
    /// Whether the light is on while a photo is taken.
    package private(set) var hasFlash = false
    /// Of the camera, as its driver said last.
    package var video = VideoControls()
    /// Nil: there is none.
    package var light: CameraLight?

    package init() {}

    /// Of a camera: what its hardware has.
    package init(_ video: VideoControls, _ light: CameraLight?) { (self.video, self.light) = (video, light) }

    package var abilities: [CaptureControl: CameraAbility] {
        var abilities = video.abilities
        abilities[.zoom] = .range(Self.zooms)
        if light != nil { abilities[.torch] = .range(0...1) }
        if abilities[.torch] != nil { abilities[.flash] = .words(CaptureFlash.allCases.map(\.rawValue)) }
        return abilities
    }

    package var values: [CaptureControl: CameraSetting] {
        var values = video.values
        values[.zoom] = .number(zoom)
        if let light { values[.torch] = .number(light.level) }
        if abilities[.flash] != nil { values[.flash] = .word((hasFlash ? CaptureFlash.on : .off).rawValue) }
        return values
    }

    /// - Parameter camera: its name, for the refusal.
    /// - Returns: what the hardware has to do for it.
    /// - Throws: `BadParameter` for a control that does not exist and a value that is not possible, `NotSupported` for what the
    ///   camera does not have.
    package mutating func set(
        _ name: String, _ setting: CameraSetting, of camera: String
    ) throws(SessionError) -> Deed {
        guard let control = CaptureControl(rawValue: name) else {
            let names = CaptureControl.allCases.map(\.rawValue).sorted().joined(separator: ", ")
            throw .badParameter("there is no control '\(name)'; the controls are \(names)")
        }
        let abilities = abilities
        guard let ability = abilities[control] else {
            let names = abilities.keys.map(\.rawValue).sorted().joined(separator: ", ")
            throw SessionError(
                .notSupported, "the \(control.rawValue) of '\(camera)' cannot be set; what can be set: \(names)")
        }
        try ability.check(setting, control)
        switch (control, setting) {
        case (.zoom, .number(let factor)): zoom = factor
        case (.flash, .word(let word)): hasFlash = word == CaptureFlash.on.rawValue
        case (.torch, .number(let level)):
            if let light { return .brightness(light.brightness(of: level)) }
            return .writes(video.writes(control, setting))
        case _: return .writes(video.writes(control, setting))
        }
        return .nothing
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
