public import DBus
import EventLoop
import MediaValues
public import PluginAPI
import SessionBus
import SessionKit

// The order of playing, and metadata of the items.

/// Whether an item can be played (AVPlayerItem.Status).
public enum ItemStatus: String, CaseIterable, Sendable, Hashable {
    /// Nothing is loaded, or nothing is known of it yet.
    case unknown
    case ready
    case failed
}

extension PlayerPlugin {
    /// Of the current item, with the name on the bus.
    public var itemStatus: ItemStatus {
        if hasFailed { return .failed }
        return engine.channels > 0 || engine.duration != nil ? .ready : .unknown
    }

    /// MPRIS's CanGoNext: by position only; the next item may be one that failed.
    public var canGoNext: Bool { queue.canGoNext }
    /// MPRIS's CanGoPrevious, likewise.
    public var canGoPrevious: Bool { queue.canGoPrevious }

    /// Answers when the engine knows whether the item can be played; false in a category that cannot prepare
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
        // It was unloaded in the meantime; there will be no answer.
        guard !preparing.isEmpty, status != .unknown || engine.uri == nil else { return }
        let replies = preparing
        preparing = []
        for reply in replies { reply(status == .ready) }
        if status == .ready { onPrepared?() }
    }

    /// Plays the contents of a sound file; they stay in memory while the item is in the queue.
    public func load(data: [UInt8]) throws(Failure) {
        guard !data.isEmpty, let file = MemoryFile(holding: data) else {
            throw data.isEmpty
                ? Failure(.badParameter("no data: pass the contents of a sound file"))
                : Failure(SessionError(.resourceNotAvailable, "no memory for \(data.count) bytes"))
        }
        let uri = "file://" + file.path
        memory[uri] = file
        try load([PlaylistEntry(uri: uri)])
    }

    // MARK: Changing the current item

    /// Goes to the next item; it plays if this one played. False if there is none.
    @discardableResult
    public func next() -> Bool { move { $0.goNext() } }

    /// Goes to the previous item, likewise.
    @discardableResult
    public func previous() -> Bool { move { $0.goPrevious() } }

    /// Goes to that item; it plays if the current one played.
    /// - Throws: `BadParameter` if it is not in the queue.
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

    // MARK: Items

    /// Inserts items behind `after`; nil: at the end; `.some(nil)`: before all others. Returns their ids.
    /// - Throws: `ResourceNotAvailable` if there is no room for all of them, `BadParameter` for an unknown `after`.
    @discardableResult
    public func insert(_ entries: [PlaylistEntry], after: UInt64??) throws(Failure) -> [UInt64] {
        try check(entries)
        guard entries.count <= queue.room else {
            throw Failure(SessionError(.resourceNotAvailable, "\(PlayQueue.limit) items is the limit"))
        }
        let size = entries.reduce(0) { $0 + $1.size }
        guard size <= queue.byteRoom else { throw Self.tooLong(PlayQueue.byteLimit - queue.byteRoom + size) }
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

    /// Removes an item. If it is the current one, the next one becomes current, and plays if this one played.
    public func remove(_ id: UInt64) throws(Failure) {
        guard queue[id] != nil else { throw noItem(id) }
        changing {
            let (isCurrent, sounding) = (queue.currentID == id, sounds)
            queue.remove(id)
            if isCurrent { openOrEnd(sounding: sounding) }
        }
    }

    /// Replaces an item by another one, which plays if the old one played. Returns the new id.
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

    // MARK: Repeat and shuffle

    /// MPRIS's LoopStatus; `.one` is the engine's endless loop, and replaces a number of loops.
    public var repeatMode: RepeatMode {
        get { engine.loops < 0 ? .one : queue.repeatsAll ? .all : .none }
        set {
            changing {
                // The number of loops was set for the item, not for this mode.
                if (engine.loops < 0) != (newValue == .one) { engine.loops = newValue == .one ? -1 : 0 }
                queue.repeatsAll = newValue == .all
            }
        }
    }

    var shuffleMode: ShuffleMode {
        get { queue.shuffleMode }
        set { changing { queue.setShuffleMode(newValue) } }
    }

    /// MPRIS's Shuffle: the current item first, the others in random order.
    public var isShuffled: Bool {
        get { queue.isShuffled }
        set { changing { queue.setShuffled(newValue) } }
    }

    // MARK: Signals

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

    /// The object path of an item.
    func trackPath(_ id: UInt64) -> String { "\(path)/track/\(id)" }

    /// The id in such a path; nil if it is none.
    func trackID(_ path: String) -> UInt64? {
        let prefix = "\(self.path)/track/"
        guard path.hasPrefix(prefix), let id = UInt64(path.dropFirst(prefix.count)), trackPath(id) == path else {
            return nil
        }
        return id
    }

    /// The URI for other programs. Data in memory have no URI that others could use, and others must not see the secrets
    /// in a URI.
    func shown(_ uri: String) -> String { memory[uri] == nil ? FileURI.shown(uri) : "data:" }

    /// Without a title, users know an item by its file name.
    func title(of item: PlayQueue.Item) -> String? {
        item.entry.title ?? (memory[item.entry.uri] == nil ? FileURI.title(item.entry.uri) : nil)
    }
}

/// Whether the queue or an item is repeated (MPMusicRepeatMode).
public enum RepeatMode: String, CaseIterable, Sendable, Hashable {
    case none
    /// Repeats the item.
    case one
    /// Repeats the whole queue.
    case all
}
