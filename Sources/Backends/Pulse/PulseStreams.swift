import CPulse
import EventLoop
public import PluginAPI

/// Sets the volume of streams, and reads and writes the values that the server remembers of them.
extension PulseBackend {
    public func setVolume(_ volume: [UInt32], stream id: AudioStream.ID, completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        var levels = pa_cvolume(volume)
        connection.command(batch.add()) {
            switch id.direction {
            case .playback: pa_context_set_sink_input_volume($0, id.number, &levels, $1, $2)
            case .record: pa_context_set_source_output_volume($0, id.number, &levels, $1, $2)
            }
        }
        batch.close()
    }

    public func readMemory(_ completion: @escaping ([StreamMemory]?) -> Void) {
        guard isReady, let connection else { return loop.later { completion(nil) } }
        // PipeWire's session manager remembers the values; its server shows only values that were written through it.
        guard !model.isPipeWire else {
            let known = model.playing.values.compactMap(\.memory)
            return loop.later { completion(known) }
        }
        var entries: [StreamMemory] = []
        let batch = Batch(self) { result in
            if case .success = result { completion(entries) } else { completion(nil) }
        }
        connection.readMemory(item: { entries.append(StreamMemory($0)) }, end: batch.add())
        batch.close()
    }

    public func writeMemory(_ entries: [StreamMemory], forgetting names: [String], completion: @escaping Completion) {
        let batch = Batch(self, completion)
        guard let connection = connection(for: batch) else { return }
        // PipeWire's session manager ignores a write with unchanged values; its server forgets nothing.
        let others = model.isPipeWire ? entries.map { StreamMemory(name: $0.name, isMuted: $0.isMuted) } : []
        for entry in others + entries {
            connection.command(batch.add()) { context, done, reply in
                entry.name.withCString { name in
                    (entry.deviceName ?? "").withCString { device in
                        var info = pa_ext_stream_restore_info()
                        info.name = name
                        info.device = entry.deviceName == nil ? nil : device
                        info.mute = entry.isMuted ? 1 : 0
                        info.volume = pa_cvolume(entry.volume)
                        info.channel_map = pa_channel_map(entry.channels)
                        return pa_ext_stream_restore_write(context, PA_UPDATE_REPLACE, &info, 1, 0, done, reply)
                    }
                }
            }
        }
        for name in names {
            connection.command(batch.add()) { context, done, reply in
                name.withCString { name in
                    var list: [UnsafePointer<CChar>?] = [name, nil]
                    return pa_ext_stream_restore_delete(context, &list, done, reply)
                }
            }
        }
        batch.close()
    }
}

extension StreamMemory {
    fileprivate init(_ info: pa_ext_stream_restore_info) {
        self.init(
            name: String(orEmpty: info.name),
            channels: PulseStream.read(info.channel_map),
            volume: PulseStream.read(info.volume), isMuted: info.mute != 0,
            deviceName: info.device.map { String(cString: $0) })
    }
}

extension pa_cvolume {
    fileprivate init(_ volume: [UInt32]) {
        self.init()
        channels = fill(&values, with: volume)
    }
}

extension pa_channel_map {
    fileprivate init(_ positions: [Int32]) {
        self.init()
        channels = fill(&map, with: positions.map(pa_channel_position_t.init(rawValue:)))
    }
}

/// Fills a C array, which Swift imports as a tuple; returns the number of values that fit.
private func fill<Places, Element>(_ places: inout Places, with elements: [Element]) -> UInt8 {
    withUnsafeMutableBytes(of: &places) { bytes in
        let places = bytes.bindMemory(to: Element.self)
        for (place, element) in zip(places.indices, elements) { places[place] = element }
        return UInt8(min(places.count, elements.count))
    }
}
