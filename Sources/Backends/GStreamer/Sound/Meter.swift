package import CGStreamer
package import PluginAPI

/// The readings of a `level` element, each kept until its sound is heard.
package struct Meter {
    package init() {}

    private var readings: [(time: GstClockTime, levels: [ChannelLevel])] = []
    private var current: [ChannelLevel] = []

    /// Handles a message from the bus; only those of a level element matter.
    package mutating func take(_ message: UnsafeMutablePointer<GstMessage>) {
        guard let structure = gst_message_get_structure(message),
            gst_structure_has_name(structure, "level") != 0
        else { return }
        var time: GstClockTime = 0
        gst_structure_get_clock_time(structure, "stream-time", &time)
        let peaks = Meter.values(structure, "peak")
        let averages = Meter.values(structure, "rms")
        readings.append((time, zip(peaks, averages).map { ChannelLevel(peak: $0, average: $1) }))
        // One second of readings is more than any sink buffers.
        if readings.count > 20 { readings.removeFirst() }
    }

    /// The levels heard at that time of the item, or just before it; nil: the newest ones.
    package mutating func levels(at time: GstClockTime?) -> [ChannelLevel] {
        while let first = readings.first, time.map({ first.time <= $0 }) ?? true {
            current = first.levels
            readings.removeFirst()
        }
        return current
    }

    mutating func clear() { self = Meter() }

    private static func values(_ structure: UnsafePointer<GstStructure>, _ name: String) -> [Double] {
        guard let value = gst_structure_get_value(structure, name), let boxed = g_value_get_boxed(value) else {
            return []
        }
        // The functions of GValueArray are deprecated, but the level element still uses it.
        let array = boxed.assumingMemoryBound(to: GValueArray.self).pointee
        return UnsafeBufferPointer(start: array.values, count: Int(array.n_values)).map { element in
            withUnsafePointer(to: element) { g_value_get_double($0) }
        }
    }
}
