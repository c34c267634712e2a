package import PluginAPI

extension CapturePixels {
    /// A plane of a picture in memory: the bytes of a row, the rows, and the bytes from one row to the next.
    package struct Plane: Sendable, Hashable {
        package let bytes: Int
        package let rows: Int
        package let stride: Int

        fileprivate init(_ bytes: Int, _ rows: Int) {
            // GStreamer's rows begin at a multiple of 4.
            (self.bytes, self.rows, stride) = (bytes, rows, (bytes + 3) & ~3)
        }
    }

    /// - Parameters: both even.
    package func planes(width: Int, height: Int) -> [Plane] {
        switch self {
        case .i420:
            [Plane(width, height), Plane(width / 2, height / 2), Plane(width / 2, height / 2)]
        case .rgb: [Plane(3 * width, height)]
        case .bgrx: [Plane(4 * width, height)]
        case .gray8: [Plane(width, height)]
        }
    }

    /// The bytes of a picture without gaps between the rows.
    package func size(width: Int, height: Int) -> Int {
        planes(width: width, height: height).reduce(0) { $0 + $1.bytes * $1.rows }
    }
}
