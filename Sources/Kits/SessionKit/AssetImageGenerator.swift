import DBus
public import PluginAPI
import Synchronization

/// Takes pictures of a film (AVAssetImageGenerator).
///
///     let generator = AssetImageGenerator(asset)
///     generator.maximumSize = (320, 320)
///     for try await picture in generator.images(for: [MediaTime(seconds: 13), MediaTime(seconds: 21.5)]) {
///         print(picture.actualTime.seconds, picture.path)
///     }
///
/// Set the properties before the first picture. The files are in a private folder, which is removed when the asset is
/// released: copy the files that you need longer.
public final class AssetImageGenerator: Sendable {
    /// A picture of a film.
    public struct Image: Sendable, Hashable {
        public let requestedTime: MediaTime
        /// The time at which the picture begins.
        public let actualTime: MediaTime
        public let path: String
    }

    private struct State {
        var applies = true
        var size: (Int, Int) = (0, 0)
        var before = MediaTime?.none
        var after = MediaTime?.none
        var format = ImageFormat.jpeg
        var jobs: Set<String> = []
    }

    public let asset: Asset
    private let state = Mutex(State())

    public init(_ asset: Asset) { self.asset = asset }

    /// Whether the pictures are rotated as the film requires; default true.
    public var appliesPreferredTrackTransform: Bool {
        get { state.withLock { $0.applies } }
        set { state.withLock { $0.applies = newValue } }
    }
    /// The box that the pictures must fit into, in pixels; 0: no limit. Pictures are never made larger.
    public var maximumSize: (width: Int, height: Int) {
        get { state.withLock { $0.size } }
        set { state.withLock { $0.size = newValue } }
    }
    /// How much earlier the picture may be; nil: any time, so that the nearest key frame is used, which is fast. Zero:
    /// exact.
    public var requestedTimeToleranceBefore: MediaTime? {
        get { state.withLock { $0.before } }
        set { state.withLock { $0.before = newValue } }
    }
    /// How much later the picture may be; nil: any time.
    public var requestedTimeToleranceAfter: MediaTime? {
        get { state.withLock { $0.after } }
        set { state.withLock { $0.after = newValue } }
    }
    public var format: ImageFormat {
        get { state.withLock { $0.format } }
        set { state.withLock { $0.format = newValue } }
    }

    /// One picture.
    public func image(at time: MediaTime) async throws -> Image {
        for try await image in images(for: [time]) { return image }
        throw SessionError(.cancelled, "the picture was cancelled")
    }

    /// The pictures in the order of the times. The sequence throws at the first picture that cannot be made. If the
    /// iteration ends early, the remaining pictures are cancelled.
    public func images(for times: [MediaTime]) -> AsyncThrowingStream<Image, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: Image.self)
        let task = Task { [asset, options = options()] in
            do {
                let values = times.map { Value.double($0.seconds) }
                let wanted = Mutex(times[...])
                let job = try await asset.client.start(
                    asset.uri, "GenerateImages",
                    [.string(asset.uri), .array(of: "d", values), .properties(options)]
                ) { news in
                    switch news {
                    case .changed: break
                    case .image(_, let actual, let path, let error):
                        guard let time = wanted.withLock({ $0.popFirst() }) else { return }
                        guard error.isEmpty else {
                            let code = error.split(separator: ".").last.flatMap {
                                SessionError.Code(rawValue: String($0))
                            }
                            return continuation.finish(
                                throwing: SessionError(
                                    code ?? .decodeFailed, "there is no picture at \(time.seconds) s"))
                        }
                        continuation.yield(
                            Image(
                                requestedTime: time,
                                actualTime: MediaTime(nanoseconds: Int64((actual * 1e9).rounded())), path: path))
                    case .over(let error):
                        if let error { continuation.finish(throwing: error) } else { continuation.finish() }
                    }
                }
                self.state.withLock { _ = $0.jobs.insert(job) }
                continuation.onTermination = { [weak self] end in
                    self?.state.withLock { _ = $0.jobs.remove(job) }
                    if case .cancelled = end { Task { await asset.client.cancel(job) } }
                }
            } catch {
                continuation.finish(throwing: error)
            }
        }
        _ = task
        return stream
    }

    /// Cancels all requested pictures (cancelAllCGImageGeneration).
    public func cancelAllImageGeneration() {
        let jobs = state.withLock { state in
            defer { state.jobs = [] }
            return state.jobs
        }
        for job in jobs { Task { [asset] in await asset.client.cancel(job) } }
    }

    private func options() -> [(String, Value)] {
        state.withLock { state in
            var options: [(String, Value)] = [
                ("apply-preferred-transform", .bool(state.applies)), ("format", .string(state.format.rawValue)),
                (
                    "maximum-size",
                    .structure([.uint32(UInt32(clamping: state.size.0)), .uint32(UInt32(clamping: state.size.1))])
                ),
            ]
            if state.before != nil || state.after != nil {
                // If only one tolerance is set, the other one stays unlimited.
                options.append(("tolerance-before", .double(max(0, state.before?.seconds ?? 1e9))))
                options.append(("tolerance-after", .double(max(0, state.after?.seconds ?? 1e9))))
            }
            return options
        }
    }
}
