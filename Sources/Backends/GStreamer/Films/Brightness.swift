import CFilms

/// The brightness of a picture, one byte for each pixel.
struct Brightness {
    let width: Int
    let height: Int
    /// The byte of a pixel.
    private let at: (_ x: Int, _ y: Int) -> UInt8

    init(width: Int, height: Int, at: @escaping (_ x: Int, _ y: Int) -> UInt8) {
        (self.width, self.height, self.at) = (width, height, at)
    }

    /// How many places of a row and of a column are looked at.
    private static let places = 48
    /// More than any picture has: for formats that are not known.
    static let unknownContrast = 128.0

    /// The mean distance of the brightness from the mean brightness, 0 to 128.
    var contrast: Double {
        var values: [Double] = []
        values.reserveCapacity(Self.places * Self.places)
        for y in 0..<Self.places {
            for x in 0..<Self.places {
                values.append(Double(at(x * width / Self.places, y * height / Self.places)))
            }
        }
        let count = Double(values.count)
        let mean = values.reduce(0, +) / count
        return values.reduce(0) { $0 + abs($1 - mean) } / count
    }

    /// The contrast of a decoded picture; that of no picture for a format that is not supported here.
    static func contrast(of sample: OpaquePointer) -> Double {
        var plane = films_brightness()
        guard films_brightness_map(sample, &plane) != 0 else { return unknownContrast }
        defer { films_brightness_unmap(&plane) }
        guard let first = plane.first else { return unknownContrast }
        let (stride, step) = (Int(plane.stride), Int(plane.step))
        return Brightness(width: Int(plane.width), height: Int(plane.height)) { first[$1 * stride + $0 * step] }
            .contrast
    }
}
