import EventLoop
import Glibc
import MediaCache
import PluginKit

/// The bytes of one resource: a sparse file with the record of what is in it; and, in memory, bytes that are only passed on.
///
/// `<name>.part` has the bytes while some are missing, `<name>.media` when all are here, `<name>.map` the record. A part of
/// the record is written after the bytes; a record is never ahead of its file.
final class CacheFile {
    /// The bytes after which the record is continued, and after which the disk is asked to store them.
    private static let steps = (note: UInt64(256) << 10, sync: UInt64(64) << 20)

    private let base: String
    private let boot: String
    private let loop: EventLoop
    /// -1: there is no file, everything is in memory.
    private(set) var descriptor: Int32
    private var map: Int32 = -1
    private var memory: MemoryFile?
    /// The bytes that are in memory.
    private var held = RangeSet<UInt64>()
    /// Stored, but not in the record yet.
    private var unnoted = RangeSet<UInt64>()
    private var unnotedCount: UInt64 = 0
    private var unsynced: UInt64 = 0
    private var sync: DiskSync?
    private(set) var isComplete: Bool

    private let shown: String

    /// The path of the file when it is complete, under the name that it has in its address.
    private(set) lazy var path = CacheFolder.named(base, shown)
    private var file: String { base + ".media" }

    /// - Parameters:
    ///   - base: the path without an extension; nil: keep everything in memory.
    ///   - shown: the address without user, password and query.
    ///   - isComplete: whether the file has all bytes already.
    init(_ base: String?, _ shown: String, isComplete: Bool, boot: String, on loop: EventLoop) {
        (self.base, self.shown, self.boot, self.loop, self.isComplete) = (base ?? "", shown, boot, loop, isComplete)
        descriptor =
            base.map {
                open($0 + (isComplete ? ".media" : ".part"), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            } ?? -1
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        if map >= 0 { close(map) }
    }

    /// Whether bytes can be kept.
    var isUsable: Bool { descriptor >= 0 }

    // MARK: Bytes

    /// False, with errno: the disk is full, or the file cannot be written.
    func store(_ bytes: UnsafeRawBufferPointer, at place: UInt64, inMemory: Bool) -> Bool {
        if inMemory, memory == nil { memory = MemoryFile() }
        let target = inMemory ? memory?.descriptor ?? -1 : descriptor
        var done = 0
        while done < bytes.count {
            let count = pwrite(target, bytes.baseAddress! + done, bytes.count - done, off_t(place) + off_t(done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        let range = place..<place + UInt64(bytes.count)
        if inMemory {
            held.insert(contentsOf: range)
        } else {
            unnoted.insert(contentsOf: range)
            unnotedCount += UInt64(bytes.count)
            unsynced += UInt64(bytes.count)
            if unnotedCount >= CacheFile.steps.note { note() }
            if unsynced >= CacheFile.steps.sync { synchronize() }
        }
        return true
    }

    /// At most as many bytes as fit; 0 or less: they cannot be read.
    func read(_ buffer: UnsafeMutableRawBufferPointer, at place: UInt64) -> Int {
        var count = buffer.count
        var source = descriptor
        if let range = held.ranges.first(where: { $0.upperBound > place }) {
            if range.contains(place) {
                (source, count) = (memory?.descriptor ?? -1, min(count, Int(range.upperBound - place)))
            } else {
                count = min(count, Int(range.lowerBound - place))
            }
        }
        var done = -1
        repeat { done = pread(source, buffer.baseAddress, count, off_t(place)) } while done < 0 && errno == EINTR
        return done
    }

    /// Frees bytes in memory that are needed no more.
    func forget(_ range: Range<UInt64>) {
        held.remove(contentsOf: range)
        guard let memory else { return }
        // Whole pages; the others are freed with their neighbours.
        let low = (range.lowerBound + 4_095) & ~4_095
        let high = range.upperBound & ~4_095
        if high > low { memory.punch(low..<high) }
    }

    // MARK: The record

    /// Begins the record, in place of an older one. Without it, the bytes are gone at the next start.
    func begin(_ record: CacheRecord) {
        guard isUsable else { return }
        if map >= 0 { close(map) }
        map = -1
        let draft = base + ".map.new"
        let file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        let text = record.text(boot: record.ranges.isEmpty ? nil : boot) + CacheRecord.boot(boot) + "\n"
        guard CacheFile.write(text, to: file), rename(draft, base + ".map") == 0 else {
            close(file)
            unlink(draft)
            return
        }
        map = file
        (unnoted, unnotedCount) = (RangeSet(), 0)
    }

    /// Continues the record with what was stored since.
    func note() {
        guard map >= 0, !unnoted.isEmpty else { return }
        let lines = unnoted.ranges.map { CacheRecord.addition($0) + "\n" }.joined()
        if CacheFile.write(lines, to: map) { (unnoted, unnotedCount) = (RangeSet(), 0) }
    }

    private func synchronize() {
        guard sync == nil, isUsable else { return }
        unsynced = 0
        sync = DiskSync(descriptor, on: loop) { [weak self] in self?.sync = nil }
    }

    /// Waits until the disk has all bytes, then writes a record that says so.
    func settle(_ record: CacheRecord, isComplete: Bool, done: @escaping () -> Void = {}) {
        guard isUsable else { return }
        note()
        // The object lives until the disk has answered.
        let finish = { [self] in
            sync = nil
            if isComplete, !self.isComplete {
                guard rename(base + ".part", file) == 0 else { return }
                self.isComplete = true
            }
            writeSettled(record)
            done()
        }
        sync = DiskSync(descriptor, on: loop, done: finish)
        // Without a thread, it has waited for the disk.
        if sync == nil { finish() }
    }

    private func writeSettled(_ record: CacheRecord) {
        let draft = base + ".map.new"
        let file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        let isWritten = CacheFile.write(record.text(boot: nil), to: file)
        close(file)
        if !isWritten || rename(draft, base + ".map") != 0 { unlink(draft) }
        if map >= 0 { close(map) }
        map = -1
    }

    /// The bytes are of no use any more, as after a change of the origin.
    func empty() {
        held = RangeSet()
        memory = nil
        (unnoted, unnotedCount) = (RangeSet(), 0)
        guard isUsable else { return }
        if map >= 0 { close(map) }
        map = -1
        unlink(base + ".map")
        ftruncate(descriptor, 0)
    }

    func remove() {
        guard isUsable else { return }
        CacheFolder.remove(base)
        isRemoved = true
    }
    private(set) var isRemoved = false

    private static func write(_ text: String, to file: Int32) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var done = 0
            while done < bytes.count {
                let count = Glibc.write(file, bytes.baseAddress! + done, bytes.count - done)
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }
}
