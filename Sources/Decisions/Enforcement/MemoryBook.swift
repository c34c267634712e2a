public import PluginAPI

/// Decides how the values that the sound server remembers of changed streams are corrected, so that the next stream of a
/// program starts as the user left the last one. It does not talk to a server: the caller reads what the server
/// remembers, and carries out the ``Correction``.
///
/// What can be done depends on the server (``MemoryAccess``):
/// - If its values can be read, each is compared, and corrected until it is right.
/// - If they can only be written, they are written when all streams of that name have ended. For a moment after that, the
///   server may still use the old values. The device cannot be written: the repair is kept until the next stream of that
///   name was moved to the device that the user chose.
/// - If the server ignores written values, a stand-in, which is a paused stream of the same name, is corrected like any stream. It is closed
///   at once, maybe before the session manager has stored its values: the next stand-in proves that they were stored, by
///   starting with them.
///
/// Where the device cannot be written, stand-ins correct it while a stream is held: if the daemon is killed, the program's
/// next stream does not start on the hold sink. One is moved away from there, and closed; the next one proves that this was
/// stored, by starting elsewhere.
public struct MemoryBook: Sendable {
    /// The server's state, as far as it concerns these values.
    public struct View: Sendable {
        public var access: MemoryAccess
        /// The streams that exist.
        public var streams: [AudioStream]
        /// The process of the stand-ins.
        public var ownProcess: UInt32
        /// The memory names of the streams that differ, or may differ, from what the user left.
        public var changed: Set<String>

        public init(access: MemoryAccess, streams: [AudioStream], ownProcess: UInt32, changed: Set<String>) {
            self.access = access
            self.streams = streams
            self.ownProcess = ownProcess
            self.changed = changed
        }
    }

    public enum Correction: Sendable, Hashable {
        case nothing
        /// Read the values again: they may have changed since the reading began.
        case readAgain
        /// Write these entries, and delete the entries of the names in `forgetting`. If that succeeds, call
        /// ``MemoryBook/wrote(_:_:at:)``.
        case write([StreamMemory], forgetting: [String])
        /// These stand-ins must be there, and no others. With every other correction there must be none.
        case standIns([StreamMemory])
    }

    /// The progress of a name that is corrected by stand-ins.
    private struct Proof: Sendable {
        /// The last stream of that name started as the user had left the one before.
        var startedRight = false
        /// How often a stand-in was closed without that.
        var attempts = 0
        /// Its stand-in is about to be closed, so that another one starts.
        var isClosing = false
    }

    /// The names that must be corrected.
    public private(set) var repairs: [MemoryRepair]
    /// ``View/changed`` when the last reading of the server's values began.
    private var changedAtReading: Set<String> = []
    /// Names whose values were written, and whose next stream is awaited because of its device.
    private var written: Set<String> = []
    /// Values that were written and cannot be read back, by name, and when.
    private var recent: [String: (repair: MemoryRepair, time: UInt64)] = [:]
    private var proofs: [String: Proof] = [:]
    /// Names with a held stream, whose device is remembered as the user left it: a stand-in started there.
    private var rightWhileHeld: Set<String> = []
    /// The stand-ins that were seen on the hold sink, and how many of a name there were in this hold.
    private var astray: Set<AudioStream.ID> = []
    private var attempts: [String: Int] = [:]

    /// How long the server may still use the old values, in microseconds; some milliseconds were seen.
    private static let afterlife: UInt64 = 1_000_000
    /// After so many stand-ins the values count as corrected.
    private static let mostAttempts = 8

    /// `repairs`: those of an earlier daemon.
    public init(_ repairs: [MemoryRepair] = []) { self.repairs = repairs }

    // MARK: Streams

    /// The user's values for a new stream that started with the daemon's values of the last one; nil: it did not.
    /// `time` is in microseconds.
    public mutating func base(
        of stream: AudioStream, defaultDevice: String?, _ access: MemoryAccess, at time: UInt64
    ) -> StreamBase? {
        recent = recent.filter { time - $0.value.time < MemoryBook.afterlife }
        guard let name = stream.memoryName,
            let repair = repairs.first(where: { $0.name == name }) ?? recent[name]?.repair
        else { return nil }
        let base = repair.base(of: stream, defaultDevice: defaultDevice, remembersDevice: access == .readAndWrite)
        if access == .streamsOnly { proofs[name, default: Proof()].startedRight = base == nil }
        return base
    }

    /// A stream of that name is about to be changed. Returns false if the name is new: ``add(_:)`` must follow when it is
    /// known what the server remembers.
    public mutating func keep(_ base: StreamBase, of name: String) -> Bool {
        written.remove(name)
        guard let place = repairs.firstIndex(where: { $0.name == name }) else { return false }
        repairs[place].add(base)
        return true
    }

    /// Does nothing if the name is known.
    public mutating func add(_ repair: MemoryRepair) {
        if !repairs.contains(where: { $0.name == repair.name }) { repairs.append(repair) }
    }

    // MARK: Corrections

    /// The server is asked what it remembers. ``correct(_:_:)`` follows with its answer.
    public mutating func reads(_ view: View) { changedAtReading = view.changed }

    /// Whether a stand-in must correct the device of a stream that is held, so that a crash of the daemon leaves nothing wrong.
    public func needsStandIn(_ view: View) -> Bool {
        switch view.access {
        case .readAndWrite: false
        case .writeOnly, .streamsOnly: !heldNames(view).isSubset(of: rightWhileHeld)
        }
    }

    /// The names of the streams of programs that are held.
    private func heldNames(_ view: View) -> Set<String> {
        let held = view.streams.filter { $0.isHeld && $0.processID != view.ownProcess }
        return Set(held.compactMap(\.memoryName))
    }

    /// Deletes the repairs that are no longer needed, and returns what the others need.
    ///
    /// - Parameter memory: what the server remembers, as far as it can be read.
    public mutating func correct(_ memory: [StreamMemory], _ view: View) -> Correction {
        switch view.access {
        case .readAndWrite: compare(memory, view)
        case .writeOnly: standInForHeld(view) ?? write(view)
        case .streamsOnly: standIn(view)
        }
    }

    /// The server has written the values. Returns whether they must be read again, to be sure.
    public mutating func wrote(_ entries: [StreamMemory], _ view: View, at time: UInt64) -> Bool {
        guard view.access == .writeOnly else { return view.access == .readAndWrite }
        let names = Set(entries.map(\.name)).subtracting(view.changed)
        written.formUnion(names)
        for repair in repairs where names.contains(repair.name) { recent[repair.name] = (repair, time) }
        repairs.removeAll { names.contains($0.name) && $0.bases.last?.deviceName == nil }
        return false
    }

    private mutating func compare(_ memory: [StreamMemory], _ view: View) -> Correction {
        var writes: [StreamMemory] = []
        var forgotten: [String] = []
        var done: Set<String> = []
        for repair in repairs {
            switch repair.verdict(on: memory.first { $0.name == repair.name }) {
            case .right: done.insert(repair.name)
            case .write(let entry): writes.append(entry)
            case .forget: forgotten.append(repair.name)
            }
        }
        done.subtract(view.changed)
        // What was right while a stream was still changed says nothing about what the server stored when it ended.
        let isOutdated = !done.isDisjoint(with: changedAtReading)
        repairs.removeAll { done.contains($0.name) && !changedAtReading.contains($0.name) }
        // What was written is read again anyway.
        guard writes.isEmpty, forgotten.isEmpty else { return .write(writes, forgetting: forgotten) }
        return isOutdated ? .readAgain : .nothing
    }

    private mutating func write(_ view: View) -> Correction {
        let present = Set(view.streams.compactMap(\.memoryName))
        repairs.removeAll { repair in
            guard !view.changed.contains(repair.name) else { return false }
            // A stream to which the user's values apply has been remembered so.
            return present.contains(repair.name)
                || repair.usersValues == nil && repair.bases.last?.deviceName == nil
        }
        let right = repairs.filter { !view.changed.contains($0.name) && !written.contains($0.name) }
            .compactMap(\.usersValues)
        return right.isEmpty ? .nothing : .write(right, forgetting: [])
    }

    private mutating func standIn(_ view: View) -> Correction {
        var standIns: Set<String> = []
        // Streams of the programs themselves are corrected directly.
        var real: Set<String> = []
        for stream in view.streams {
            guard let name = stream.memoryName else { continue }
            if stream.processID == view.ownProcess { standIns.insert(name) } else { real.insert(name) }
        }
        let held = noteHeld(view)
        let unproven = standIns.subtracting(view.changed).subtracting(real).filter { name in
            let proof = proofs[name] ?? Proof()
            return !proof.startedRight && proof.attempts < MemoryBook.mostAttempts
        }
        repairs.removeAll { repair in
            let isPresent = standIns.contains(repair.name) || real.contains(repair.name)
            return isPresent && !view.changed.contains(repair.name) && !unproven.contains(repair.name)
        }
        let names = Set(repairs.map(\.name))
        proofs = proofs.filter { names.contains($0.key) }
        for name in names {
            let isClosing = unproven.contains(name)
            var proof = proofs[name] ?? Proof()
            if isClosing, !proof.isClosing { proof.attempts += 1 }
            proof.isClosing = isClosing
            proofs[name] = proof
        }
        let wanted = names.subtracting(view.changed).subtracting(unproven).subtracting(real)
            .union(names.intersection(held).subtracting(rightWhileHeld).subtracting(corrected(view)))
        return .standIns(entries(of: wanted, held: held))
    }

    /// The stand-ins for these names, as far as their channels are known.
    private func entries(of names: Set<String>, held: Set<String>) -> [StreamMemory] {
        repairs.filter { names.contains($0.name) }
            .compactMap { repair in
                let own = held.contains(repair.name) ? repair.bases.last : nil
                let channels = repair.original?.channels ?? own.map { Array(repeating: 0, count: $0.volume.count) }
                return channels.map { StreamMemory(name: repair.name, channels: $0) }
            }
    }

    /// Notes for which held streams the right device is remembered. Returns the names of all held streams.
    private mutating func noteHeld(_ view: View) -> Set<String> {
        let held = heldNames(view)
        rightWhileHeld.formIntersection(held)
        attempts = attempts.filter { held.contains($0.key) }
        astray.formIntersection(view.streams.map(\.id))
        for stream in view.streams where stream.processID == view.ownProcess {
            guard let name = stream.memoryName, held.contains(name), !astray.contains(stream.id) else { continue }
            if stream.isHeld, attempts[name, default: 0] < MemoryBook.mostAttempts {
                astray.insert(stream.id)
                attempts[name, default: 0] += 1
            } else {
                rightWhileHeld.insert(name)
            }
        }
        return held
    }

    /// The names whose stand-in was moved away from the hold sink, and is about to be closed.
    private func corrected(_ view: View) -> Set<String> {
        let moved = view.streams.filter { $0.processID == view.ownProcess && !$0.isHeld && astray.contains($0.id) }
        return Set(moved.compactMap(\.memoryName))
    }

    /// The stand-ins for held streams; nil: none is needed.
    private mutating func standInForHeld(_ view: View) -> Correction? {
        let held = noteHeld(view)
        let wanted = held.intersection(view.changed).intersection(repairs.map(\.name))
            .subtracting(rightWhileHeld).subtracting(corrected(view))
        return wanted.isEmpty ? nil : .standIns(entries(of: wanted, held: held))
    }
}
