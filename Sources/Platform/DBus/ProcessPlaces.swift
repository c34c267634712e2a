/// How many connections of each process are followed, where any program may ask to be followed: a program that opens many
/// uses up only its own places.
public struct ProcessPlaces: Sendable {
    private let ofEach: Int
    private var taken: [UInt32: Int] = [:]

    public init(ofEach: Int) { self.ofEach = ofEach }

    /// Whether the process still had a place. If its id is unknown (0), it shares the places of all unknown ones.
    public mutating func take(_ process: UInt32) -> Bool {
        guard taken[process, default: 0] < ofEach else { return false }
        taken[process, default: 0] += 1
        return true
    }

    public mutating func leave(_ process: UInt32) {
        guard let count = taken[process] else { return }
        taken[process] = count > 1 ? count - 1 : nil
    }

    public func count(of process: UInt32) -> Int { taken[process] ?? 0 }
}
