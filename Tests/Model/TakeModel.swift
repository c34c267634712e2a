/// A second model of a film that is recorded, written from its description and not from `FilmTake`: it keeps no state but what has
/// happened since the film began, and asks it each time.
package struct TakeModel {
    /// Whether there is a film, and it has not been told to end.
    private var isOpen = false
    /// Whether there is a film.
    private var exists = false
    private var byUser = false
    private var byCall = false
    private var byCamera = false

    package init() {}

    package var grows: Bool { isOpen && !byUser && !byCall && !byCamera }

    /// - Parameter fact: its number in the test: started, paused, resumed, stopped, a call (pause, silence, stop), granted, not
    ///   resumed, camera gone, camera back, closed.
    package mutating func handle(_ fact: Int) -> [String] {
        let (grew, wasOpen) = (grows, isOpen)
        switch fact {
        case 0: if !exists { (exists, isOpen, byUser, byCall, byCamera) = (true, true, false, false, false) }
        case 1: byUser = true
        case 2: (byUser, byCall) = (false, false)
        case 3, 6: isOpen = false
        case 4: byCall = true
        case 7: byCall = false
        case 8: if byCall { (byCall, byUser) = (false, true) }
        case 9: byCamera = true
        case 10: byCamera = false
        case 11: (exists, isOpen) = (false, false)
        default: break
        }
        if !exists { (byUser, byCall, byCamera) = (false, false, false) }
        if fact == 11 || !wasOpen { return [] }
        if !isOpen { return ["end"] }
        return grew == grows ? [] : [grows ? "proceed" : "hold"]
    }
}
