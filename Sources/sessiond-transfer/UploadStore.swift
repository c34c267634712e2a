import Glibc
import Processes
import Uploading

/// The records of uploads, one file each: `$XDG_STATE_HOME/sessiond/uploads/<number>`, which only the user may read.
///
/// A record is written to a new file that replaces the old one by one `rename`: it is there whole, or as it was before.
final class UploadStore {
    private static let limit = 256 << 10
    /// Numbers that are taken at once, so that not each upload needs a file to be written for its own.
    private static let numbers: UInt64 = 1_000

    private let folder: String
    /// Locked for as long as this process lives: two processes must not continue the same upload.
    private let lock: Int32
    private(set) var lastNumber: UInt64
    private var reserved: UInt64 = 0
    /// Called with what cannot be kept, and why.
    private let complain: (String) -> Void

    /// Nil where the folder cannot be used, or another process uses it.
    init?(complain: @escaping (String) -> Void) {
        self.complain = complain
        guard let state = UserFolder.state.path else {
            complain("neither XDG_STATE_HOME nor HOME is set: uploads do not survive the end of this process")
            return nil
        }
        folder = state + "/sessiond/uploads"
        // In a folder to which others may write, records could be exchanged.
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
        lastNumber = UInt64(text.prefix { $0 != "\n" }) ?? 0
        lastNumber = max(lastNumber, UploadStore.numbers(in: folder).max() ?? 0)
        reserve(lastNumber)
    }

    deinit { close(lock) }

    private static func numbers(in folder: String) -> [UInt64] {
        namesIn(folder).compactMap { name in UInt64(name).flatMap { "\($0)" == name ? $0 : nil } }
    }

    /// What was kept, oldest first. What cannot be read is reported and removed.
    func records() -> [UploadRecord] {
        UploadStore.numbers(in: folder).sorted().compactMap { number in
            let path = "\(folder)/\(number)"
            let bytes = readFile(path, limit: UploadStore.limit)
            guard let bytes, let text = String(validating: bytes, as: UTF8.self), let record = UploadRecord(text: text),
                record.number == number
            else {
                complain("\(path) is damaged: that upload is lost")
                unlink(path)
                return nil
            }
            return record
        }
    }

    /// A new upload has that number: it is never used again.
    func took(_ number: UInt64) {
        lastNumber = max(lastNumber, number)
        if number >= reserved { reserve(number) }
    }

    private func reserve(_ number: UInt64) {
        reserved = number + UploadStore.numbers
        write("\(reserved)\n", to: "last", mustSurvive: false)
    }

    func save(_ record: UploadRecord, mustSurvive: Bool) {
        write(record.text, to: "\(record.number)", mustSurvive: mustSurvive)
    }

    func remove(_ number: UInt64) { unlink("\(folder)/\(number)") }

    private func write(_ text: String, to name: String, mustSurvive: Bool) {
        let path = "\(folder)/\(name)"
        let draft = "\(folder)/.\(name).new"
        unlink(draft)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        var isWritten = false
        if file >= 0 {
            var text = text
            isWritten = text.withUTF8 { bytes in
                var done = 0
                while done < bytes.count {
                    let count = Glibc.write(file, bytes.baseAddress! + done, bytes.count - done)
                    guard count > 0 else { return false }
                    done += count
                }
                return true
            }
            if mustSurvive { isWritten = fsync(file) == 0 && isWritten }
            isWritten = close(file) == 0 && isWritten && rename(draft, path) == 0
        }
        guard isWritten else {
            complain("\(path): \(String(cString: strerror(errno))): this upload may not be continued after a restart")
            unlink(draft)
            return
        }
        guard mustSurvive else { return }
        let place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if place >= 0 {
            fsync(place)
            close(place)
        }
    }
}
