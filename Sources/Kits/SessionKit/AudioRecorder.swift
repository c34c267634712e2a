import DBus
import EventLoop
public import PluginAPI
import SessionBus
import Synchronization

/// Records into a file (AVAudioRecorder), in the session of the app and in a process of its own, which ends with this
/// object.
///
///     let recorder = try await AudioRecorder(url: "/tmp/note.wav", settings: RecordingSettings(channels: 1))
///     try await recorder.record()
///
/// ``record()`` activates the session if it is not active; its category must have an input. An interruption pauses the
/// recording, and the file can be played as it is. Afterwards ``record()`` appends.
public final class AudioRecorder: Sendable {
    private struct Facts {
        var isRecording = false
        /// Seconds, at the time `since` of CLOCK_MONOTONIC.
        var position = 0.0
        var since = 0.0
        var levels: [ChannelLevel] = []
        var isMetering = false
        /// The number of states that the recorder has announced.
        var announced = 0

        var now: Double { isRecording ? position + max(0, MonotonicClock.seconds - since) : position }
    }

    private enum Event: Sendable {
        case finished(Bool)
        case failed(SessionError)
    }

    /// The URI of the file.
    public let url: String
    package var address: String { url }
    public let settings: RecordingSettings
    private let path: String
    private let facts = Mutex(Facts())
    private let events = Broadcast<Event>()
    private let plugin: HostedPlugin
    private let mustPrepare = Mutex(true)

    /// - Parameters:
    ///   - url: a path, a `file:` URI or a URL. ``prepareToRecord()`` or ``record()`` replaces an existing file.
    ///   - settings: default: by the extension of the file.
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)``.
    /// - Throws: `BadParameter` if it is not a file.
    public convenience init(
        url: some MediaAddress, settings: RecordingSettings = RecordingSettings(), session: AudioSession? = nil
    ) throws(SessionError) {
        try self.init(url: url, settings: settings, session: session, environment: [:])
    }

    /// - Parameter environment: changed variables of the recorder's process.
    package init(
        url: some MediaAddress, settings: RecordingSettings, session: AudioSession?, environment: [String: String]
    ) throws(SessionError) {
        guard let path = MediaPath.file(url) else {
            throw SessionError(.badParameter, "'\(url.absoluteString)' is not a file: record into a file")
        }
        (self.url, self.settings, self.path) = (MediaPath.uri(path), settings, path)
        plugin = HostedPlugin(.recorder, in: session, environment: environment)
    }

    deinit { events.finish() }

    private func prepare() async throws(SessionError) {
        guard mustPrepare.withLock({ $0 }) else { return }
        await plugin.follow({ [weak self] in self?.heard($0) }, silenced: { [weak self] in self?.settle(false) })
        try await plugin.ask("Prepare", [.string(path), settings.wire])
        mustPrepare.withLock { $0 = false }
        facts.withLock { ($0.position, $0.since) = (0, MonotonicClock.seconds) }
        try await plugin.set("MeteringEnabled", .bool(facts.withLock(\.isMetering)))
    }

    /// Creates the file.
    /// - Returns: whether it can be recorded.
    @discardableResult
    public func prepareToRecord() async -> Bool { (try? await prepare()) != nil }

    /// Begins to record, or appends after a pause.
    /// - Throws: the reason why the session may not record, or why the file cannot be written.
    public func record() async throws(SessionError) { try await record("Record", []) }

    /// The same, beginning at that time of ``deviceCurrentTime``.
    public func record(atTime time: Double) async throws(SessionError) { try await record("RecordAt", [.double(time)]) }

    /// The same; it stops after so many seconds.
    public func record(forDuration seconds: Double) async throws(SessionError) {
        try await record("RecordFor", [.double(seconds)])
    }

    private func record(_ member: String, _ arguments: [Value]) async throws(SessionError) {
        try await prepare()
        try await plugin.sound(member, arguments)
        // The answer may come before the announcement of the state.
        let before = facts.withLock(\.announced)
        let state = (try? await plugin.properties())?["State"]?.stringValue
        if let state, facts.withLock(\.announced) == before { settle(state == "recording") }
    }

    /// The file can be played as it is; ``record()`` appends.
    public func pause() async {
        await plugin.fallSilent("Pause")
        await learnPosition()
    }

    /// Completes the file; ``finishes`` reports when it is complete. A later ``record()`` replaces it.
    public func stop() async {
        guard !mustPrepare.withLock({ $0 }) else { return }
        await plugin.fallSilent("Stop")
        await learnPosition()
    }

    /// Removes the file of a recording that has ended.
    @discardableResult
    public func deleteRecording() async -> Bool {
        mustPrepare.withLock { $0 = true }
        return (try? await plugin.ask("Delete")) != nil
    }

    public var isRecording: Bool { facts.withLock(\.isRecording) }
    /// Seconds recorded, without pauses.
    public var currentTime: Double { facts.withLock(\.now) }
    /// The clock of ``record(atTime:)``, in seconds (CLOCK_MONOTONIC).
    public var deviceCurrentTime: Double { MonotonicClock.seconds }

    // MARK: Levels

    public var isMeteringEnabled: Bool {
        get { facts.withLock(\.isMetering) }
        set {
            facts.withLock { $0.isMetering = newValue }
            guard !mustPrepare.withLock({ $0 }) else { return }
            Task { [plugin] in try? await plugin.set("MeteringEnabled", .bool(newValue)) }
        }
    }

    /// Reads the levels for the next two methods.
    public func updateMeters() async {
        let rows = (try? await plugin.ask("Meters"))?.first?.arrayValue ?? []
        let levels = rows.compactMap(\.level)
        facts.withLock { $0.levels = levels }
    }

    /// dBFS, −160…0; −160 for a channel that does not exist, and while metering is off.
    public func averagePower(forChannel channel: Int) -> Double { level(channel).average }
    public func peakPower(forChannel channel: Int) -> Double { level(channel).peak }

    private func level(_ channel: Int) -> ChannelLevel {
        facts.withLock { $0.levels.indices.contains(channel) ? $0.levels[channel] : .silence }
    }

    // MARK: Events

    /// The file is complete (audioRecorderDidFinishRecording); false: its end is missing.
    public var finishes: AsyncStream<Bool> {
        events.stream { if case .finished(let success) = $0 { success } else { nil } }
    }

    /// It cannot be recorded on (audioRecorderEncodeErrorDidOccur). What was recorded can be played.
    public var encodeErrors: AsyncStream<SessionError> {
        events.stream { if case .failed(let error) = $0 { error } else { nil } }
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found: break
        case .lost:
            settle(false)
            mustPrepare.withLock { $0 = true }
            events.send(.failed(SessionError(.mediaServicesFailed, "the recorder ended")))
        case .changed(_, let properties):
            guard let state = properties["State"]?.stringValue else { return }
            facts.withLock { $0.announced += 1 }
            settle(state == "recording")
        case .signal("Finished", let values):
            mustPrepare.withLock { $0 = true }
            events.send(.finished(values.first?.boolValue ?? false))
        case .signal("Failed", let values):
            mustPrepare.withLock { $0 = true }
            events.send(
                .failed(SessionError(.mediaServicesFailed, values.first?.stringValue ?? "the recording failed")))
        case .signal: break
        }
    }

    private func settle(_ isRecording: Bool) {
        facts.withLock { ($0.position, $0.since, $0.isRecording) = ($0.now, MonotonicClock.seconds, isRecording) }
    }

    private func learnPosition() async {
        guard let seconds = (try? await plugin.properties())?["Position"]?.doubleValue else { return }
        facts.withLock { ($0.position, $0.since) = (seconds, MonotonicClock.seconds) }
    }
}

extension RecordingSettings {
    /// The settings of `Prepare`.
    fileprivate var wire: Value {
        var values: [(String, Value)] = [("quality", .string(quality.rawValue))]
        if let format { values.append(("format", .string(format.rawValue))) }
        if let sampleRate { values.append(("sample-rate", .double(sampleRate))) }
        if let channels { values.append(("channels", .uint32(UInt32(clamping: channels)))) }
        if let bitDepth { values.append(("bit-depth", .uint32(UInt32(clamping: bitDepth)))) }
        if isFloat { values.append(("float", .bool(true))) }
        return .properties(values)
    }
}
