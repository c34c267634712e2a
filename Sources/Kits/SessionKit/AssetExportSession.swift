import DBus
public import PluginAPI
import Synchronization

/// Exports a film or a sound to a new file (AVAssetExportSession).
///
///     let export = AssetExportSession(asset, preset: .medium)
///     export.shouldOptimizeForNetworkUse = true
///     try await export.export(to: "/home/kim/clip.mp4")
///
/// The file appears only when it is complete. Cancelling the task cancels the export.
public final class AssetExportSession: Sendable {
    /// The progress of an export.
    public struct Progress: Sendable, Hashable {
        /// 0…1; 1 only at the end.
        public let fractionCompleted: Double
        /// Seconds of media per second.
        public let speed: Double
        /// Remaining time in seconds; nil: unknown.
        public let remaining: Double?
    }

    private struct State {
        var type: ExportFileType?
        var isForNetwork = false
        var range: (MediaTime, MediaTime)?
        var overwrites = false
        var stripsLocation = false
        var metadata: [String: String] = [:]
        var job: String?
        var isCancelled = false
    }

    public let asset: Asset
    public let preset: ExportPreset
    private let state = Mutex(State())
    private let broadcast = Broadcast<Progress>()

    public init(_ asset: Asset, preset: ExportPreset = .medium) {
        self.asset = asset
        self.preset = preset
    }

    /// The presets that work for an asset, with the encoders that are installed (exportPresets(compatibleWith:)).
    public static func presets(compatibleWith asset: Asset) async throws(SessionError) -> [ExportPreset] {
        let answer = try await asset.client.ask(asset.uri, "ExportPresets", [.string(asset.uri)])
        return (answer.first?.stringsValue ?? []).compactMap(ExportPreset.init(rawValue:))
    }

    /// Nil: found by the extension of the file.
    public var outputFileType: ExportFileType? {
        get { state.withLock { $0.type } }
        set { state.withLock { $0.type = newValue } }
    }
    /// Whether the index comes first, so that the film can play while it is downloaded.
    public var shouldOptimizeForNetworkUse: Bool {
        get { state.withLock { $0.isForNetwork } }
        set { state.withLock { $0.isForNetwork = newValue } }
    }
    /// Start and end; nil: the whole film.
    public var timeRange: (start: MediaTime, end: MediaTime)? {
        get { state.withLock { $0.range } }
        set { state.withLock { $0.range = newValue } }
    }
    /// Whether an existing file is replaced.
    public var overwritesOutput: Bool {
        get { state.withLock { $0.overwrites } }
        set { state.withLock { $0.overwrites = newValue } }
    }
    /// Whether the tags with the location of the recording are left out.
    public var stripsLocation: Bool {
        get { state.withLock { $0.stripsLocation } }
        set { state.withLock { $0.stripsLocation = newValue } }
    }
    /// Text tags by GStreamer's names, which replace those of the asset.
    public var metadata: [String: String] {
        get { state.withLock { $0.metadata } }
        set { state.withLock { $0.metadata = newValue } }
    }

    /// The progress from now on, at most ten times a second; ends with the export.
    public var progress: AsyncStream<Progress> { broadcast.stream() }

    /// Writes the file; returns when it is complete.
    /// - Parameter path: an absolute path.
    /// - Throws: such as `FileAlreadyExists`, `DiskFull`, `DecodeFailed`; `Cancelled` after ``cancelExport()``.
    public func export(to path: String) async throws {
        let (over, ending) = AsyncThrowingStream.makeStream(of: Void.self)
        let job: String
        do {
            job = try await start(path, ending)
        } catch {
            broadcast.finish()
            throw error
        }
        let isCancelled = state.withLock { state in
            state.job = job
            return state.isCancelled
        }
        if isCancelled { cancelExport() }
        try await withTaskCancellationHandler {
            for try await _ in over {}
            // If the task is cancelled, the loop may end before the job reports its end.
            if Task.isCancelled { throw SessionError(.cancelled, "the export was cancelled") }
        } onCancel: {
            cancelExport()
        }
    }

    /// Returns the path of the job.
    private func start(
        _ path: String, _ ending: AsyncThrowingStream<Void, any Error>.Continuation
    ) async throws(SessionError) -> String {
        try await asset.client.start(
            asset.uri, "Export", [.string(asset.uri), .string(path), .properties(options())]
        ) { [broadcast] news in
            switch news {
            case .image: break
            case .changed(let properties):
                guard let share = properties["Progress"]?.doubleValue, share >= 0 else { return }
                let remaining = properties["Remaining"]?.doubleValue ?? -1
                broadcast.send(
                    Progress(
                        fractionCompleted: share, speed: properties["Speed"]?.doubleValue ?? 0,
                        remaining: remaining < 0 ? nil : remaining))
            case .over(let error):
                broadcast.finish()
                if let error { ending.finish(throwing: error) } else { ending.finish() }
            }
        }
    }

    /// Cancels the export, and removes the unfinished file.
    public func cancelExport() {
        let job = state.withLock { state in
            state.isCancelled = true
            return state.job
        }
        if let job { Task { [asset] in await asset.client.cancel(job) } }
    }

    /// The estimated size of the file in bytes; the confidence is in percent, 0 to 100.
    public func estimatedOutputFileLength() async throws(SessionError) -> (bytes: UInt64, confidence: Int) {
        let known = options().filter { ["preset", "file-type", "time-range"].contains($0.0) }
        let answer = try await asset.client.ask(asset.uri, "EstimateExport", [.string(asset.uri), .properties(known)])
        return (answer.first?.uint64Value ?? 0, Int(answer.last?.uint32Value ?? 0))
    }

    private func options() -> [(String, Value)] {
        state.withLock { state in
            var options: [(String, Value)] = [
                ("preset", .string(preset.rawValue)), ("optimize-for-network", .bool(state.isForNetwork)),
                ("overwrite", .bool(state.overwrites)), ("strip-location", .bool(state.stripsLocation)),
            ]
            if let type = state.type { options.append(("file-type", .string(type.rawValue))) }
            if let (start, end) = state.range {
                options.append(("time-range", .structure([.double(start.seconds), .double(end.seconds)])))
            }
            if !state.metadata.isEmpty {
                let texts = state.metadata.sorted { $0.key < $1.key }.map { ($0.key, Value.string($0.value)) }
                options.append(("metadata", .properties(texts)))
            }
            return options
        }
    }
}
