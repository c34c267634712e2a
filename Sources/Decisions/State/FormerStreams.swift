import Enforcement
public import PluginAPI

/// The streams that an earlier daemon or connection had changed and the server has not shown yet. While the server moves
/// a stream, it shows it without a device: such a stream is found later.
public struct FormerStreams: Sendable {
    /// What is stored of those that are still awaited.
    public private(set) var awaited: [StreamRecord.Entry] = []

    public init() {}

    /// - Parameter instance: the present run of the server. Entries of another one are dropped: their streams ended with
    ///   it.
    public init(_ entries: [StreamRecord.Entry], instance: UInt32) {
        awaited = entries.filter { $0.instance == instance }
    }

    /// Takes out those that the server shows now, and those that have ended.
    /// - Parameters:
    ///   - streams: with their devices.
    ///   - unplaced: those without one.
    /// - Returns: the streams that were found, with their entries.
    public mutating func find(
        in streams: [AudioStream], unplaced: [AudioStream]
    ) -> [(stream: AudioStream, entry: StreamRecord.Entry)] {
        var found: [(stream: AudioStream, entry: StreamRecord.Entry)] = []
        awaited.removeAll { entry in
            guard let stream = streams.first(where: { $0.id == entry.id }) else {
                return !unplaced.contains { $0.id == entry.id }
            }
            // Another program may have got its number.
            if stream.processID == entry.process, stream.memoryName == entry.memoryName {
                found.append((stream, entry))
            }
            return true
        }
        return found
    }
}
