import Enforcement
import EventLoop
import Glibc
import PluginAPI
import State

/// Stores how streams, the server's remembered values, and the profiles of headsets were before the daemon changed
/// them, and carries out the corrections of ``MemoryBook``. Decides nothing itself.
final class StreamLedger {
    private let backend: any AudioBackend
    /// Nil if nothing can be stored: then no stream is changed.
    private let journal: StreamJournal?
    private var entries: [StreamRecord.Entry]
    private var former = FormerStreams()
    private var memory: MemoryBook
    private var reading = Reading.none
    /// Called when all corrections that were due have been carried out.
    private var waiting: [() -> Void] = []
    /// Streams that the server no longer knows, although the snapshot may still show them.
    var ended: Set<AudioStream.ID> = []

    private enum Reading {
        case none
        case inProgress
        /// What is being read is outdated already.
        case outdated
    }

    init(_ backend: any AudioBackend, _ journal: StreamJournal?) {
        self.backend = backend
        self.journal = journal
        let contents = journal?.read() ?? StreamRecord()
        entries = contents.entries
        memory = MemoryBook(contents.memories)
        backend.formerProfiles = contents.profiles
        backend.formerDefaults = contents.defaults
        backend.onMemoryChanged = { [unowned self] in correctMemory() }
        // A headset is switched even if this cannot be stored: a call needs its microphone. Likewise the defaults.
        backend.onFormerProfilesChanged = { [unowned self] in _ = journal?.write(self.contents) }
        backend.onFormerDefaultsChanged = { [unowned self] in _ = journal?.write(self.contents) }
    }

    private var contents: StreamRecord {
        StreamRecord(
            entries: entries + former.awaited, memories: memory.repairs, profiles: backend.formerProfiles,
            defaults: backend.formerDefaults)
    }

    /// Whether no stream, and nothing that the server remembers of streams, must be restored.
    var isEmpty: Bool { entries.isEmpty && former.awaited.isEmpty && memory.repairs.isEmpty }

    /// The existing streams that an earlier daemon or connection had changed. Its changes of other streams ended with
    /// them, except for what the server remembers. ``arrived(_:)`` has those that the server is moving now.
    func takeOver(_ snapshot: AudioSnapshot) -> [(AudioStream, KeptStream)] {
        former = FormerStreams(entries + former.awaited, instance: snapshot.instance)
        entries = []
        let found = arrived(snapshot)
        if !isEmpty { correctMemory() }
        return found
    }

    /// The streams of ``takeOver(_:)`` that the server shows only now.
    func arrived(_ snapshot: AudioSnapshot) -> [(AudioStream, KeptStream)] {
        guard !former.awaited.isEmpty else { return [] }
        let found = former.find(in: snapshot.streams, unplaced: snapshot.unplaced)
        // Stored until the next ``keep(_:_:_:)``.
        entries += found.map(\.entry)
        _ = journal?.write(contents)
        return found.map { ($0.stream, $0.entry.kept) }
    }

    /// The user's values for a new stream that started with the daemon's values of the last one; nil: it did not.
    func base(of stream: AudioStream) -> StreamBase? {
        let snapshot = backend.snapshot
        return memory.base(
            of: stream, defaultDevice: snapshot.defaultDevice, snapshot.memoryAccess, at: MonotonicClock.now())
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
            entries.append(StreamRecord.Entry(instance: snapshot.instance, stream, stored))
            guard let name = stream.memoryName else { continue }
            if !memory.keep(stored.base, of: name) { unknown.insert(name) }
        }
        self.entries = entries
        if unknown.isEmpty {
            // A stand-in ends also when the program itself has a stream again, and that is changed.
            if !memory.repairs.isEmpty, entries.isEmpty || !backend.wantedStandIns.isEmpty { correctMemory() }
            return completion(journal.write(contents))
        }
        backend.readMemory { [weak self] remembered in
            guard let self else { return }
            // If the server remembers nothing, nothing must be corrected.
            for name in remembered == nil ? [] : unknown.sorted() {
                memory.add(
                    MemoryRepair(
                        name: name, original: remembered?.first { $0.name == name },
                        bases: entries.filter { $0.memoryName == name }.map(\.kept.base)))
            }
            backend.watchesMemory = !memory.repairs.isEmpty
            completion(journal.write(contents))
        }
    }

    /// The server has shown its streams: one that is held now is remembered on the hold sink, which must not outlive a
    /// crash of the daemon.
    func streamsSeen() {
        if !memory.repairs.isEmpty, memory.needsStandIn(view) { correctMemory() }
    }

    /// Corrects what the server remembers.
    func correctMemory(_ completion: (() -> Void)? = nil) {
        if let completion { waiting.append(completion) }
        switch reading {
        case .none:
            reading = .inProgress
            memory.reads(view)
            backend.readMemory { [weak self] in self?.correct($0) }
        case .inProgress, .outdated: reading = .outdated
        }
    }

    private var view: MemoryBook.View {
        let snapshot = backend.snapshot
        return MemoryBook.View(
            access: snapshot.memoryAccess, streams: snapshot.streams.filter { !ended.contains($0.id) },
            ownProcess: UInt32(getpid()), changed: Set((entries + former.awaited).compactMap(\.memoryName)))
    }

    private func correct(_ remembered: [StreamMemory]?) {
        // The server is gone, or no longer reports it: the repairs stay stored.
        guard let remembered else { return corrected() }
        let correction = memory.correct(remembered, view)
        var standIns: [StreamMemory] = []
        if case .standIns(let wanted) = correction { standIns = wanted }
        backend.wantedStandIns = standIns
        switch correction {
        case .nothing, .standIns: corrected()
        case .readAgain:
            reading = .outdated
            corrected()
        case .write(let entries, let forgotten):
            backend.writeMemory(entries, forgetting: forgotten) { [weak self] result in
                guard let self else { return }
                if case .success = result, memory.wrote(entries, view, at: MonotonicClock.now()) { reading = .outdated }
                corrected()
            }
        }
    }

    private func corrected() {
        let isOutdated = reading == .outdated
        reading = .none
        if isOutdated { return correctMemory() }
        if backend.snapshot.isConnected {
            backend.watchesMemory = !memory.repairs.isEmpty
            _ = journal?.write(contents)
        }
        let waiting = waiting
        self.waiting = []
        for completion in waiting { completion() }
    }
}
