/// When a picture of a film is shown, in nanoseconds of the film.
package struct PictureTimes: Sendable, Hashable {
    /// After an exact seek it may be later than the picture begins.
    package var start: UInt
    package var end: UInt
    /// The length of a picture by the rate of the film.
    package var usual: UInt

    package init(start: UInt, end: UInt, usual: UInt) { (self.start, self.end, self.usual) = (start, end, usual) }

    /// A time at which the picture is shown that is that many later; earlier if negative. At least 0.
    func time(after pictures: Int) -> UInt {
        // In the middle, so that rounding does not matter.
        let middle = Int(clamping: usual / 2)
        let time =
            pictures > 0
            ? Int(clamping: end) + (pictures - 1) * Int(clamping: usual) + middle
            : Int(clamping: max(end, usual)) - Int(clamping: usual) + pictures * Int(clamping: usual) + middle
        return UInt(max(0, time))
    }
}
