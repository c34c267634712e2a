/// A part of a film with a name.
public struct MediaChapter: Sendable, Hashable {
    /// Seconds.
    public var start: Double
    /// Empty if it has none.
    public var title: String

    public init(start: Double, title: String) { (self.start, self.title) = (start, title) }
}

extension [MediaChapter] {
    /// The chapter that is played at that time; nil: the film has none, or they begin later.
    public func index(at position: Double) -> Int? {
        // A seek may end a little before its goal.
        lastIndex { $0.start <= position + 0.05 }
    }

    /// Where a step to a later chapter goes, or to an earlier one if negative: in the first seconds of a chapter, the step back
    /// is to the one before, otherwise to its beginning. Nil: there is none.
    public func time(from position: Double, by steps: Int) -> Double? {
        guard !isEmpty, steps != 0 else { return nil }
        let here = index(at: position) ?? -1
        // The time within a chapter does not depend on how large a step is.
        let isLater = here >= 0 && position - self[here].start > Self.firstSeconds
        let (target, isBeyond) = here.addingReportingOverflow(steps < 0 && isLater ? steps + 1 : steps)
        if steps > 0 { return isBeyond || target >= count ? nil : self[target].start }
        return isBeyond || target < 0 ? 0 : self[target].start
    }

    private static var firstSeconds: Double { 3 }

    /// The chapters of a part of the film, counted from its beginning. The part begins in the middle of a chapter, as a rule:
    /// this chapter begins with the part.
    package func within(_ from: Double, _ to: Double) -> [MediaChapter] {
        let earlier = last { $0.start <= from }
        let later = filter { $0.start > from && $0.start < to }
        return ((earlier.map { [$0] } ?? []) + later).map {
            MediaChapter(start: Swift.max(0, $0.start - from), title: $0.title)
        }
    }
}
