public import DBus
import EventLoop
import MediaValues
public import PluginAPI
import SessionBus
import SessionKit

// What is played after what, and what is known of it.

/// Whether an item can be played (AVPlayerItem.Status).
public enum ItemStatus: String, CaseIterable, Sendable, Hashable {
    /// Nothing loaded, or nothing known of it yet.
    case unknown
    case ready
    case failed
}

extension PlayerPlugin {
    /// Of the current item, as the bus has it.
    public var itemStatus: ItemStatus {
        if hasFailed { return .failed }
        return engine.channels > 0 || engine.duration != nil ? .ready : .unknown
    }

    /// MPRIS's CanGoNext: by place alone, the item may be one that failed.
    public var canGoNext: Bool { queue.canGoNext }
    /// MPRIS's CanGoPrevious, likewise.
    public var canGoPrevious: Bool { queue.canGoPrevious }

    /// Whether the item can be played, once that is known; false in a category that prepares nothing
    /// (AVAudioPlayer's prepareToPlay).
    public func prepare(_ reply: @escaping (Bool) -> Void) {
        guard session.description.category.playerMay.prepare, engine.uri != nil else {
            return reply(false)
        }
        preparing.append(reply)
        answerPreparations()
    }

    func answerPreparations() {
        let status = itemStatus
        // Unloaded meanwhile, nothing will ever be known of it.
        guard !preparing.isEmpty, status != .unknown || engine.uri == nil else { return }
        let replies = preparing
        preparing = []
        for reply in replies { reply(status == .ready) }
    }

    /// Plays what these bytes are, a whole file's; kept in memory for as long as it is in the queue.
    public func load(data: [UInt8]) throws(Failure) {
        guard !data.isEmpty, let file = MemoryFile(holding: data) else {
            throw data.isEmpty
                ? Failure(.badParameter("no bytes: give a sound file's"))
                : Failure(SessionError(.resourceNotAvailable, "no memory for \(data.count) bytes"))
        }
        let uri = "file://" + file.path
        memory[uri] = file
        try load([PlaylistEntry(uri: uri)])
    }

    // MARK: From one to another

    /// To the next item, sounding where this one did; false where there is none.
    @discardableResult
    public func next() -> Bool { move { $0.goNext() } }

    /// The same backwards.
    @discardableResult
    public func previous() -> Bool { move { $0.goPrevious() } }

    /// To that item, sounding where this one did.
    /// - Throws: `BadParameter` where it is not in the queue.
    public func go(to id: UInt64) throws(Failure) {
        guard move({ $0.go(to: id) }) else { throw noItem(id) }
    }

    private func move(_ step: (inout PlayQueue) -> Bool) -> Bool {
        changing {
            let sounding = sounds
            guard step(&queue) else { return false }
            open(sounding: sounding)
            return true
        }
    }

    // MARK: What is in it

    /// The ids they got. Behind the item `after`; nil: at the end; a nil inside (`.some(nil)`): before all others.
    /// - Throws: `ResourceNotAvailable` where there is no room for all of them, `BadParameter` for an unknown `after`.
    @discardableResult
    public func insert(_ entries: [PlaylistEntry], after: UInt64??) throws(Failure) -> [UInt64] {
        try check(entries)
        guard entries.count <= queue.room else {
            throw Failure(SessionError(.resourceNotAvailable, "\(PlayQueue.limit) items are the limit"))
        }
        if let id = after ?? nil, queue[id] == nil { throw noItem(id) }
        return changing {
            let wasEmpty = queue.current == nil
            let ids =
                switch after {
                case nil: queue.append(entries)
                case .some(let place): queue.insert(entries, after: place)
                }
            if wasEmpty { open(sounding: false) }
            return ids
        }
    }

    /// Where it is the current one, the next one is that then, and sounds where this one did.
    public func remove(_ id: UInt64) throws(Failure) {
        guard queue[id] != nil else { throw noItem(id) }
        changing {
            let (isCurrent, sounding) = (queue.currentID == id, sounds)
            queue.remove(id)
            if isCurrent { openOrEnd(sounding: sounding) }
        }
    }

    /// Puts another item in its place; it sounds where the old one did. The id it got.
    @discardableResult
    public func replace(_ id: UInt64, with entry: PlaylistEntry) throws(Failure) -> UInt64 {
        try check([entry])
        guard queue[id] != nil else { throw noItem(id) }
        return changing {
            let (isCurrent, sounding) = (queue.currentID == id, sounds)
            let new = queue.replace(id, with: [entry])[0]
            if isCurrent { open(sounding: sounding) }
            return new
        }
    }

    private func noItem(_ id: UInt64) -> Failure { Failure(.badParameter("no item \(id) in the queue")) }

    // MARK: What is repeated

    /// MPRIS's LoopStatus; `.one` is the engine's endless loop, instead of a number of loops.
    public var repeatMode: RepeatMode {
        get { engine.loops < 0 ? .one : queue.repeatsAll ? .all : .none }
        set {
            changing {
                // n repetitions were asked for the item, not for the mode.
                if (engine.loops < 0) != (newValue == .one) { engine.loops = newValue == .one ? -1 : 0 }
                queue.repeatsAll = newValue == .all
            }
        }
    }

    /// MPRIS's Shuffle: the current item first, the others in any order.
    public var isShuffled: Bool {
        get { queue.isShuffled }
        set { changing { queue.setShuffled(newValue) } }
    }

    // MARK: What is told

    func learned(_ tags: MediaTags) {
        let isNewCover = tags.artwork != self.tags.artwork
        self.tags = tags
        if isNewCover { artURI = tags.artwork.flatMap { covers.uri(of: $0) } ?? "" }
        if let id = queue.currentID { queue.learn(id, title: tags.title, duration: nil) }
    }

    func tellPosition() { emit("PositionChanged", [.double(engine.position)]) }

    func emitItemFinished() {
        if let id = queue.currentID { emit("ItemFinished", [.objectPath(trackPath(id))]) }
    }

    /// An item's name on the bus.
    func trackPath(_ id: UInt64) -> String { "\(ObjectPath.player)/track/\(id)" }

    /// The id in such a name; nil where it is none.
    func trackID(_ path: String) -> UInt64? {
        let prefix = "\(ObjectPath.player)/track/"
        guard path.hasPrefix(prefix), let id = UInt64(path.dropFirst(prefix.count)), trackPath(id) == path else {
            return nil
        }
        return id
    }

    /// What is in memory has no place that anybody else could look at; nobody else is told by which name and password a
    /// server lets us in.
    func shown(_ uri: String) -> String { memory[uri] == nil ? FileURI.withoutUser(uri) : "data:" }

    /// Without a title of its own, the file's name is what a person knows it by.
    func title(of item: PlayQueue.Item) -> String? {
        item.entry.title ?? (memory[item.entry.uri] == nil ? FileURI.title(item.entry.uri) : nil)
    }
}

/// What comes after the item and after the last one (MPMusicRepeatMode).
public enum RepeatMode: String, CaseIterable, Sendable, Hashable {
    case none
    /// The item, again and again.
    case one
    /// The whole queue.
    case all
}
