import DBus
import MediaValues
import PluginAPI
import SessionBus
import Workers

/// Gives covers to clients: from the cache, or read by a worker.
final class Covers {
    typealias Reply = (Result<String, Failure>) -> Void
    /// Asks a worker for a caller.
    typealias Ask = (
        LibraryRequest.Art, _ caller: String, @escaping (Result<WorkerMessage, Workers.Failure>) -> Void
    ) -> Void

    /// The number of covers that one caller may wait for.
    private static let limit = 256

    private let cache: ArtworkCache
    private let ask: Ask
    /// The number of covers that each caller waits for.
    private var awaited: [String: Int] = [:]

    init(_ cache: ArtworkCache, _ ask: @escaping Ask) { (self.cache, self.ask) = (cache, ask) }

    /// Answers with the URI of the cover of a file; empty: it has none.
    /// - Parameters:
    ///   - item: the number of the item, for errors.
    ///   - size: the largest width and height in pixels; 0: unchanged.
    ///   - caller: callers take turns.
    func cover(
        of path: [UInt8], item: Int64, size: Int, for caller: String, _ reply: @escaping Reply
    ) throws(Failure) {
        let size = ArtworkCache.step(size)
        let key = cache.key(of: path, size)
        if let known = cache.known(key) { return reply(.success(FileURI.uri(known))) }
        let unreadable = Failure(SessionError(.decodeFailed, "the cover of item \(item) cannot be read"))
        switch cache.miss(path) {
        case .none?: return reply(.success(""))
        case .failed?: return reply(.failure(unreadable))
        case nil: break
        }
        guard awaited[caller, default: 0] < Self.limit else {
            throw .limitsExceeded("you wait for \(Self.limit) covers; ask for others when some have come")
        }
        awaited[caller, default: 0] += 1
        ask(LibraryRequest.Art(path: path, size: size), caller) { [weak self] result in
            guard let self else { return }
            awaited[caller, default: 0] -= 1
            if awaited[caller] == 0 { awaited[caller] = nil }
            switch result {
            case .success(let message): reply(keep(message, key, path))
            case .failure(let failure):
                // If no worker can be started, the next request tries again.
                if failure != .notStarted { cache.remember(.failed, of: path) }
                reply(.failure(unreadable))
            }
        }
    }

    private func keep(_ message: WorkerMessage, _ key: String, _ path: [UInt8]) -> Result<String, Failure> {
        guard let data = message.bytes("data"), let ending = message.text("ending") else {
            cache.remember(.none, of: path)
            return .success("")
        }
        let isOriginal = message.flag("original") ?? false
        guard let file = cache.keep(data, key, ending, original: isOriginal ? cache.key(of: path, 0) : nil) else {
            return .failure(
                Failure(SessionError(.diskFull, "the cover cannot be written to \(cache.folder ?? "")")))
        }
        return .success(FileURI.uri(file))
    }
}
