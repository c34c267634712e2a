import FileFormats
import Glibc
import PluginAPI
import PluginKit
import Processes

/// The films that are being recorded, on the disk: what a process that was killed has left is made an ordinary film at the next
/// start.
///
/// Each process has a file of its own, which it keeps locked; the file of a process that has ended can be locked.
final class TakeJournal {
    /// What became of a film that a process had not completed.
    struct Mended: Sendable, Hashable {
        let path: String
        /// Why it was not mended; nil: it was.
        let problem: String?
    }

    private static let limit = 1 << 20
    private let folder: String?
    private let path: String
    private var descriptor: Int32 = -1
    /// The films, and the samples by which their encoder delays the sound.
    private var takes: [(film: String, soundDelay: Int)] = []

    /// - Parameter home: the folder for states of the user; nil: nothing is written.
    init(in home: String?) {
        folder = home.map { $0 + "/sessiond/capture" }
        path = (folder ?? "") + "/\(PluginHost.processID)-\(MonotonicNumber.next)"
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// A film begins.
    func add(_ film: String, soundDelay: Int) {
        takes.append((film, soundDelay))
        write()
    }

    /// A film is complete, or gone.
    func remove(_ film: String) {
        if let place = takes.firstIndex(where: { $0.film == film }) { takes.remove(at: place) }
        write()
    }

    /// The file is written in place, because its lock belongs to it. It is short, and a line counts only with its end.
    private func write() {
        guard let folder else { return }
        if takes.isEmpty {
            if descriptor >= 0 {
                unlink(path)
                close(descriptor)
                descriptor = -1
            }
            return
        }
        if descriptor < 0 {
            _ = makeFolders(folder)
            descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { return }
            flock(descriptor, LOCK_EX | LOCK_NB)
        }
        let bytes = takes.flatMap { take -> [UInt8] in Array("\(take.soundDelay) \(take.film)".utf8) + [0] }
        guard bytes.count <= Self.limit,
            bytes.withUnsafeBytes({ pwrite(descriptor, $0.baseAddress, $0.count, 0) }) == bytes.count
        else { return }
        ftruncate(descriptor, off_t(bytes.count))
        fdatasync(descriptor)
    }

    /// Makes ordinary films of what ended processes have left. A film that cannot be mended stays as it is: it plays.
    func mendOthers() -> [Mended] {
        guard let folder else { return [] }
        var mended: [Mended] = []
        // This process has none yet. A process before it may have had the same number.
        for name in namesIn(folder).sorted() {
            let file = open(folder + "/" + name, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else { continue }
            defer { close(file) }
            guard flock(file, LOCK_EX | LOCK_NB) == 0 else { continue }
            let bytes = FileContent.bytes(of: file, at: 0, count: Self.limit)
            for part in bytes.split(separator: 0, omittingEmptySubsequences: true) {
                let words = part.split(separator: UInt8(ascii: " "), maxSplits: 1)
                guard words.count == 2, let delay = Int(String(decoding: words[0], as: UTF8.self)) else { continue }
                let film = String(decoding: words[1], as: UTF8.self)
                guard film.hasPrefix("/"), (0..<48_000).contains(delay), access(film, F_OK) == 0 else { continue }
                // The muxers of Matroska write nothing that must be mended.
                guard [".mp4", ".m4v", ".mov"].contains(where: { film.lowercased().hasSuffix($0) }) else { continue }
                do throws(FilmRepair.Problem) {
                    // The process that wrote it has ended. One that plays it does not mind.
                    if case .mended = try FilmRepair.mend(Array(words[1]), alone: false, soundDelay: delay) {
                        mended.append(Mended(path: film, problem: nil))
                    }
                } catch {
                    mended.append(Mended(path: film, problem: error.message))
                }
            }
            unlink(folder + "/" + name)
        }
        return mended
    }
}

/// Numbers that differ within a process.
private enum MonotonicNumber {
    // SAFETY: used on the one thread of the plugin's loop.
    private nonisolated(unsafe) static var last = 0
    static var next: Int {
        last += 1
        return last
    }
}
