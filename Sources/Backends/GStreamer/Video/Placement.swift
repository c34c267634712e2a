import PluginAPI

/// A part of a window, in pixels; it may be larger than the window, which cuts it off.
struct Placement: Sendable, Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    /// Where a picture of that size belongs in a window. At least one pixel wide and high.
    init(of picture: PictureSize, in window: PictureSize, _ scaling: MovieScaling) {
        guard picture.width > 0, picture.height > 0, scaling != .fill else {
            self.init(width: window.width, height: window.height, in: window)
            return
        }
        // Whether the whole width is what limits the size of the whole picture.
        let isWide = picture.width * window.height >= window.width * picture.height
        switch scaling {
        case .none: self.init(width: picture.width, height: picture.height, in: window)
        case .aspectFit: self.init(of: picture, in: window, hasWidth: isWide)
        case .aspectFill, .fill: self.init(of: picture, in: window, hasWidth: !isWide)
        }
    }

    /// The width or the height is that of the window.
    private init(of picture: PictureSize, in window: PictureSize, hasWidth: Bool) {
        if hasWidth {
            let height = Placement.scaled(picture.height, window.width, picture.width)
            self.init(width: window.width, height: height, in: window)
        } else {
            let width = Placement.scaled(picture.width, window.height, picture.height)
            self.init(width: width, height: window.height, in: window)
        }
    }

    private init(width: Int, height: Int, in window: PictureSize) {
        (self.width, self.height) = (min(max(width, 1), Placement.limit), min(max(height, 1), Placement.limit))
        (x, y) = ((window.width - self.width) / 2, (window.height - self.height) / 2)
    }

    /// The size of a new window: that of the picture, or smaller to be on the screen as a whole.
    static func window(for picture: PictureSize, on screen: PictureSize) -> PictureSize {
        guard picture.width > screen.width || picture.height > screen.height else {
            return PictureSize(width: max(picture.width, 1), height: max(picture.height, 1))
        }
        let place = Placement(of: picture, in: screen, .aspectFit)
        return PictureSize(width: place.width, height: place.height)
    }

    private static func scaled(_ side: Int, _ numerator: Int, _ denominator: Int) -> Int {
        (side * numerator + denominator / 2) / denominator
    }

    /// Sizes in X11 have 16 bits, and a picture of that size would need a gigabyte.
    private static let limit = 16_384
}
