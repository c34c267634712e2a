import PluginAPI

/// The light beside a camera that the kernel shows as an LED (`/sys/class/leds`), as in telephones.
package struct CameraLight: Sendable, Hashable {
    package let name: String
    /// Its brightness when it is full, above 0.
    package let most: Int
    package var brightness: Int

    package init(name: String, most: Int, brightness: Int) {
        (self.name, self.most, self.brightness) = (name, most, brightness)
    }

    package var level: Double { Double(brightness) / Double(most) }

    /// The brightness of a level from 0 to 1; only 0 is off.
    package func brightness(of level: Double) -> Int {
        level <= 0 ? 0 : min(max(Int((level * Double(most)).rounded()), 1), most)
    }

    /// The LED that lights what a camera sees: one whose function is a torch, else a flash.
    /// - Parameter names: those of all LEDs, such as `white:torch`.
    package static func choose(_ names: [String]) -> String? {
        for function in ["torch", "flash"] {
            let found = names.sorted().first { name in
                name.split(separator: ":").last.map { $0 == function || $0.hasPrefix(function + "-") } ?? false
            }
            if let found { return found }
        }
        return nil
    }

    /// Whether a camera may have the light: the one at the back, or the only one if its position is not known.
    package static func belongs(to camera: CaptureSource, among cameras: [CaptureSource]) -> Bool {
        switch camera.position {
        case .back: true
        case .unspecified: cameras.count == 1
        case .front, .external: false
        }
    }
}
