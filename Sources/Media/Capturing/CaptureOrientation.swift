package import PluginAPI

/// How a camera is held: by how many degrees a player must turn its pictures, clockwise.
package enum CaptureOrientation: UInt32, Sendable, Hashable, CaseIterable {
    case upright = 0
    case right = 90
    case upsideDown = 180
    case left = 270

    package init(degrees: UInt32) throws(SessionError) {
        guard let found = Self(rawValue: degrees) else {
            throw .badParameter("an orientation is 0, 90, 180 or 270 degrees clockwise, not \(degrees)")
        }
        self = found
    }

    package var degrees: Int { Int(rawValue) }
}

/// The names of the photos of a burst: that of the first one with a number, such as `door-03.jpg`.
package enum BurstNames {
    /// The most photos: they are in memory until they are written.
    package static let most: UInt32 = 20

    package static func path(_ path: String, number: Int, of count: Int) -> String {
        guard count > 1 else { return path }
        let slash = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
        let dot = path[slash...].lastIndex(of: ".") ?? path.endIndex
        let digits = "\(number)"
        let zeros = String(repeating: "0", count: max(0, "\(count)".utf8.count - digits.utf8.count))
        return path[..<dot] + "-\(zeros)\(digits)" + path[dot...]
    }
}
