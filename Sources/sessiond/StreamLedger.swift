import Enforcement
import EventLoop
import Glibc
import PluginAPI
import State

/// How streams, and the server's remembered values, were before the daemon changed them; restores them.
final class StreamLedger {
    private let backend: any AudioBackend
    /// Nil if nothing can be stored: then nothing is changed.
    private let journal: StreamJournal?
    private var contents: StreamRecord
    private var isReading = false
    private var isStale = false
    private var waiting: [() -> Void] = []
    /// Names whose remembered values are corrected as far as possible, and whose next stream is awaited.
    private var written: Set<String> = []
    /// Corrected values that cannot be read back, by name, and when.
    private var putRight: [String: (memory: StreamRecord.Memory, time: UInt64)] = [:]
    /// Names whose last stream started as the user had left the one before: if the remembered values cannot be read, only
    /// that proves that they are right.
    private var startedRight: Set<String> = []
    /// How often a stand-in was closed without that proof.
    private var attempts: [String: Int] = [:]
    private static let mostAttempts = 8
    /// Names whose stand-in is about to be closed, so that another one starts.
    private var replaced: Set<String> = []
    /// Streams that the server no longer knows, although the snapshot may still show them.
    var ended: Set<AudioStream.ID> = []
    /// How long the server may still use the old remembered values, in microseconds; some milliseconds were seen.
    private static let afterlife: UInt64 = 1_000_000

    init(_ backend: any AudioBackend, _ journal: StreamJournal?) {
        self.backend = backend
        self.journal = journal
        contents = journal?.read() ?? StreamRecord()
        backend.onMemoryChanged = { [unowned self] in repair() }
    }

    var isEmpty: Bool { contents.isEmpty }

    /// The existing streams that an earlier daemon or connection had changed. Its changes of other streams ended with
    /// them, except for what the server remembers.
    func takeOver(_ snapshot: AudioSnapshot) -> [(AudioStream, KeptStream)] {
        var found: [(AudioStream, KeptStream)] = []
        for entry in contents.entries where entry.instance == snapshot.instance {
            guard let stream = snapshot.streams.first(where: { $0.id == entry.id }),
                stream.processID == entry.process, stream.memoryName == entry.memoryName
            else { continue }
            found.append((stream, entry.kept))
        }
        if !contents.isEmpty { repair() }
        return found
    }

    /// The user's values for a new stream that started with the daemon's values of the last one; nil: it did not.
    func base(of stream: AudioStream) -> StreamBase? {
        guard let name = stream.memoryName, let kept = memory(of: name) else { return nil }
        let snapshot = backend.snapshot
        let base = MemoryRepair(kept).base(
            of: stream, defaultDevice: snapshot.defaultDevice, remembersDevice: !snapshot.hidesMemory)
        if base == nil { startedRight.insert(name) } else { startedRight.remove(name) }
        return base
    }

    private func memory(of name: String) -> StreamRecord.Memory? {
        let now = MonotonicClock.now()
        putRight = putRight.filter { now - $0.value.time < Self.afterlife }
        return contents.memories.first { $0.name == name } ?? putRight[name]?.memory
    }

    /// Stores how these streams were, then calls `completion` with whether they may be changed; at once if they are
    /// stored already.
    func keep(
        _ kept: [AudioStream.ID: KeptStream], _ snapshot: AudioSnapshot, _ completion: @escaping (Bool) -> Void
    ) {
        guard let journal else { return completion(false) }
        var entries: [StreamRecord.Entry] = []
        var unknown: Set<String> = []
        for stream in snapshot.streams {
            guard let stored = kept[stream.id] else { continue }
            let base = stored.base
            entries.append(StreamRecord.Entry(instance: snapshot.instance, stream, stored))
            guard let name = stream.memoryName else { continue }
            written.remove(name)
            if let place = contents.memories.firstIndex(where: { $0.name == name }) {
                // The newest last: the server remembers the values of one of these.
                contents.memories[place].bases.removeAll { $0 == base }
                contents.memories[place].bases = contents.memories[place].bases.suffix(7) + [base]
            } else {
                unknown.insert(name)
            }
        }
        contents.entries = entries
        if unknown.isEmpty {
            // A stand-in ends also when the program itself has a stream again, and that is changed.
            if !contents.memories.isEmpty, entries.isEmpty || !backend.wantedStandIns.isEmpty { repair() }
            return completion(journal.write(contents))
        }
        backend.readMemory { [weak self] memory in
            guard let self else { return }
            for name in unknown.sorted() where !contents.memories.contains(where: { $0.name == name }) {
                // If the server remembers nothing, nothing must be corrected.
                guard let memory else { break }
                contents.memories.append(
                    StreamRecord.Memory(
                        name: name, original: memory.first { $0.name == name },
                        bases: entries.filter { $0.memoryName == name }.map(\.kept.base)))
            }
            backend.watchesMemory = !contents.memories.isEmpty
            completion(journal.write(contents))
        }
    }

    /// Corrects what the server remembers, and deletes entries that are right and no longer needed.
    func repair(_ completion: (() -> Void)? = nil) {
        if let completion { waiting.append(completion) }
        guard !isReading else {
            isStale = true
            return
        }
        isReading = true
        isStale = false
        backend.readMemory { [weak self] in self?.repair($0) }
    }

    private func repair(_ memory: [StreamMemory]?) {
        // The server is gone, or no longer reports it: the entries stay stored.
        guard let memory else { return repaired() }
        var writes: [StreamMemory] = []
        var forgotten: [String] = []
        if backend.snapshot.hidesMemory { return repairHidden() }
        for kept in contents.memories {
            let current = memory.first { $0.name == kept.name }
            let isNeeded = contents.entries.contains { $0.memoryName == kept.name }
            switch MemoryRepair(kept).verdict(on: current) {
            case .right: if !isNeeded { contents.memories.removeAll { $0.name == kept.name } }
            case .write(let entry): writes.append(entry)
            case .forget: forgotten.append(kept.name)
            }
        }
        guard !writes.isEmpty || !forgotten.isEmpty else { return repaired() }
        backend.writeMemory(writes, forgetting: forgotten) { [weak self] result in
            // Read again, to be sure, unless the server cannot be read.
            if case .success = result { self?.isStale = true }
            self?.repaired()
        }
    }

    /// If it cannot be read: a stream that the user's values apply to has been remembered so. A stand-in is closed at once,
    /// maybe before the session manager has stored its values: another stand-in must prove that, by starting with them.
    /// Streams that ended before that were remembered with the daemon's values. The device on which a stream was held cannot
    /// be written, so a chosen device stays stored until the next stream starts and is moved there.
    private func repairHidden() {
        let streams = backend.snapshot.streams.filter { !ended.contains($0.id) }
        var standIns: Set<String> = []
        // Streams of the programs themselves are corrected directly.
        var real: Set<String> = []
        for stream in streams {
            guard let name = stream.memoryName else { continue }
            if stream.processID == UInt32(getpid()) { standIns.insert(name) } else { real.insert(name) }
        }
        let present = standIns.union(real)
        let changed = Set(contents.entries.compactMap(\.memoryName))
        // This also applies if the server ignores what is written.
        let mustBeThere = backend.snapshot.ignoresMemory
        let unproven = standIns.subtracting(startedRight).subtracting(changed).subtracting(real)
            .filter { attempts[$0, default: 0] < StreamLedger.mostAttempts }
        contents.memories.removeAll { kept in
            if mustBeThere, unproven.contains(kept.name) { return false }
            let cannotBeWritten = StreamMemory(kept) == nil && kept.bases.last?.deviceName == nil
            return !changed.contains(kept.name) && (present.contains(kept.name) || cannotBeWritten && !mustBeThere)
        }
        if mustBeThere {
            // Existing streams are corrected directly; the others need a stand-in.
            let names = Set(contents.memories.map(\.name))
            for name in unproven where names.contains(name) && !replaced.contains(name) {
                attempts[name, default: 0] += 1
            }
            replaced = unproven
            attempts = attempts.filter { names.contains($0.key) }
            startedRight.formIntersection(names)
            backend.wantedStandIns = contents.memories
                .filter { !changed.contains($0.name) && !unproven.contains($0.name) && !real.contains($0.name) }
                .compactMap { $0.original.map { StreamMemory(name: $0.name, channels: $0.channels) } }
            return repaired()
        }
        let right = contents.memories.filter { !changed.contains($0.name) && !written.contains($0.name) }
            .compactMap(StreamMemory.init)
        guard !right.isEmpty else { return repaired() }
        backend.writeMemory(right, forgetting: []) { [weak self] result in
            guard let self else { return }
            if case .success = result {
                let names = Set(right.map(\.name)).subtracting(contents.entries.compactMap(\.memoryName))
                written.formUnion(names)
                let now = MonotonicClock.now()
                for kept in contents.memories where names.contains(kept.name) { putRight[kept.name] = (kept, now) }
                contents.memories.removeAll { names.contains($0.name) && $0.bases.last?.deviceName == nil }
            }
            repaired()
        }
    }

    private func repaired() {
        isReading = false
        if isStale { return repair() }
        if backend.snapshot.isConnected {
            backend.watchesMemory = !contents.memories.isEmpty
            _ = journal?.write(contents)
        }
        let waiting = waiting
        self.waiting = []
        for completion in waiting { completion() }
    }
}

extension MemoryRepair {
    fileprivate init(_ kept: StreamRecord.Memory) { self.init(original: kept.original, bases: kept.bases) }
}

extension StreamMemory {
    /// The user's values of the last stream; nil if unknown.
    fileprivate init?(_ kept: StreamRecord.Memory) {
        guard let base = kept.bases.last, let channels = kept.original?.channels,
            channels.count == base.volume.count
        else { return nil }
        self.init(name: kept.name, channels: channels, volume: base.volume, isMuted: base.isMuted)
    }
}
