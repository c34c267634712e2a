import Glibc
import PluginAPI
import PluginKit
import Processes
import Uploading

/// The records of uploads, one file each: `$XDG_STATE_HOME/sessiond/uploads/<number>`, which only the user may read.
///
/// A record is replaced as a whole (``WholeFile``): the file is always complete, either new or old.
final class UploadStore {
    /// The largest record in bytes; larger than any record whose texts are within their limits.
    private static let limit = 512 << 10
    /// The count of numbers that are reserved at once, so that not every upload writes the file of the last number.
    private static let numbers: UInt64 = 1_000

    private let folder: String
    /// Locked while this process lives: two processes must not continue the same upload.
    private let lock: Int32
    private(set) var lastNumber: UInt64
    private var reserved: UInt64 = 0
    /// Called with the reason if something cannot be stored.
    private let complain: (String) -> Void

    /// In the usual folder. Nil if the user has none, or it cannot be used.
    convenience init?(complain: @escaping (String) -> Void) {
        guard let state = UserFolder.state.path else {
            complain("neither XDG_STATE_HOME nor HOME is set: uploads do not survive the end of this process")
            return nil
        }
        self.init(in: state + "/sessiond/uploads", complain: complain)
    }

    /// Nil if the folder cannot be used, or another process uses it.
    init?(in folder: String, complain: @escaping (String) -> Void) {
        (self.folder, self.complain) = (folder, complain)
        // In a folder that others may write to, records could be replaced.
        guard makeFolders(folder), isPrivate(folder) else {
            complain("\(folder): \(String(cString: strerror(errno))): uploads do not survive the end of this process")
            return nil
        }
        lock = open(folder + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            complain("\(folder) is in use by another process: uploads do not survive the end of this one")
            if lock >= 0 { close(lock) }
            return nil
        }
        let text = readFile(folder + "/last", limit: 32).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let last = UploadStore.number(text.prefix { $0 != "\n" })
        if last == nil, !text.isEmpty { complain("\(folder)/last is damaged: numbers may be used again") }
        lastNumber = max(last ?? 0, UploadStore.numbers(in: folder).max() ?? 0)
        reserve(lastNumber)
    }

    deinit { close(lock) }

    /// Nil for a text that is not the number of an upload.
    private static func number(_ text: some StringProtocol) -> UInt64? {
        UInt64(text).flatMap { $0 <= Jobs.largestNumber && "\($0)" == text ? $0 : nil }
    }

    private static func numbers(in folder: String) -> [UInt64] { namesIn(folder).compactMap { number($0) } }

    /// The stored records, oldest first. A file that cannot be read is reported and renamed.
    func records() -> [UploadRecord] {
        for name in namesIn(folder) where name.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            if UploadStore.number(name) == nil { setAside(name) }
        }
        return UploadStore.numbers(in: folder).sorted().compactMap { number in
            let path = "\(folder)/\(number)"
            let bytes = readFile(path, limit: UploadStore.limit)
            guard let bytes, let text = String(validating: bytes, as: UTF8.self), let record = UploadRecord(text: text),
                record.number == number
            else {
                setAside("\(number)")
                return nil
            }
            return record
        }
    }

    private func setAside(_ name: String) {
        let path = "\(folder)/\(name)"
        complain("\(path) is damaged: that upload is lost. The file was renamed to \(name).damaged")
        if rename(path, path + ".damaged") != 0 { unlink(path) }
    }

    /// The number was given to an upload, and is never used again.
    func took(_ number: UInt64) {
        lastNumber = max(lastNumber, number)
        if number >= reserved { reserve(number) }
    }

    private func reserve(_ number: UInt64) {
        reserved = min(number, Jobs.largestNumber - UploadStore.numbers) + UploadStore.numbers
        write("\(reserved)\n", to: "last", mustSurvive: false)
    }

    func save(_ record: UploadRecord, mustSurvive: Bool) {
        let text = record.text
        guard text.utf8.count <= UploadStore.limit else {
            complain(
                "\(folder)/\(record.number): more than \(UploadStore.limit >> 10) KiB: not continued after a restart")
            return
        }
        write(text, to: "\(record.number)", mustSurvive: mustSurvive)
    }

    func remove(_ number: UInt64) { unlink("\(folder)/\(number)") }

    private func write(_ text: String, to name: String, mustSurvive: Bool) {
        let path = "\(folder)/\(name)"
        do throws(SessionError) {
            try WholeFile.write(Array(text.utf8), to: path, mustSurvive: mustSurvive)
        } catch {
            complain("\(error.message): this upload may not be continued after a restart")
        }
    }
}
