/// Knows where a player reads the bytes of an address: at the address itself, or elsewhere, such as through a cache.
///
/// Belongs to the loop of its player.
public protocol MediaLocator: AnyObject {
    /// Answers once, also during the call, with the address to read: the same one if there is no other.
    func locate(_ uri: String, _ answer: @escaping (String) -> Void)
    /// The place of an item could not be read. Answers once with where it can be read now; nil: nowhere.
    ///
    /// - Parameters:
    ///   - place: the answer of ``locate(_:_:)`` or of this method.
    ///   - hasPlayed: whether it was read there before; then only the place may be at fault, not what it holds.
    ///   - reason: why, for a log.
    func relocate(
        _ uri: String, from place: String, hasPlayed: Bool, because reason: String,
        _ answer: @escaping (String?) -> Void)
    /// Only these are still read.
    func release(except uris: Set<String>)
}
