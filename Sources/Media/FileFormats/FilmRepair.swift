import Glibc

/// Makes an ordinary film of a fragmented MP4 in its file: at the end of a recording, or after its process was killed.
package enum FilmRepair {
    package enum Outcome: Equatable {
        /// - Parameters:
        ///   - seconds: the length of the film; nil: it was finished before, except for its last step.
        ///   - lost: the bytes of an incomplete end, which were cut off.
        case mended(seconds: Double?, lost: Int)
        /// It has one index, and was not changed.
        case ordinary
    }

    package struct Problem: Error, Equatable {
        /// For a sentence that begins with the name of the file.
        package let message: String
    }

    /// Works in place, in milliseconds for a film of minutes; waits for the disk twice. If it fails, the film plays as before.
    /// - Parameters:
    ///   - alone: whether to refuse a file that a program has open for writing, as one that is being recorded.
    ///   - soundDelay: the samples that the encoder put before the sound, which players are told to leave out.
    package static func mend(_ path: [UInt8], alone: Bool = true, soundDelay: Int = 0) throws(Problem) -> Outcome {
        let name = path.map { CChar(bitPattern: $0) } + [0]
        if alone { try refuseIfRecorded(name) }
        let file = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw Problem(message: "cannot be written: \(reason)") }
        defer { close(file) }
        let status = try status(of: file)
        let mending: FilmMending
        do throws(FilmMending.Refusal) {
            mending = try FilmMending(size: Int(status.st_size), soundDelay: soundDelay) {
                FileContent.bytes(of: file, at: $0, count: $1)
            }
        } catch {
            switch error {
            case .ordinary: return .ordinary
            case .otherFormat: throw Problem(message: "is not an MP4, M4A or MOV film: nothing was changed")
            case .empty: throw Problem(message: "has no complete fragment, so nothing of it can be played")
            case .unknown(let what): throw Problem(message: "cannot be repaired: \(what); nothing was changed")
            }
        }
        try apply(mending, to: file)
        return .mended(seconds: mending.index.isEmpty ? nil : mending.seconds, lost: mending.lost)
    }

    private static func status(of file: Int32) throws(Problem) -> stat {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Problem(message: "is not an ordinary file")
        }
        return status
    }

    /// A program that only reads the film, such as a player, does not matter.
    private static func refuseIfRecorded(_ name: [CChar]) throws(Problem) {
        let file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw Problem(message: "cannot be read: \(reason)") }
        defer { close(file) }
        _ = try status(of: file)
        // The kernel grants it only for a file that nobody has open for writing.
        guard fcntl(file, setLease, F_RDLCK) == 0 else { throw Problem(message: whyNotAlone(errno)) }
        _ = fcntl(file, setLease, F_UNLCK)
    }

    private static func whyNotAlone(_ number: Int32) -> String {
        switch number {
        case EAGAIN, EBUSY: "is open in another program, which may be recording it: end that program first"
        case EACCES:
            "belongs to another user, so whether a program is recording it is not known: repair it as that user, or copy it"
        default:
            "is on a file system that cannot tell whether a program is recording it: copy it to a local disk, and repair "
                + "the copy"
        }
    }

    private static func apply(_ mending: FilmMending, to file: Int32) throws(Problem) {
        if !mending.index.isEmpty {
            guard ftruncate(file, off_t(mending.end)) == 0 else {
                throw Problem(message: "cannot be changed: \(reason)")
            }
            do throws(Problem) {
                try write(mending.index, to: file, at: mending.end)
            } catch {
                _ = ftruncate(file, off_t(mending.end))
                throw error
            }
            // The index must be on the disk before the fragments stop to count.
            guard fdatasync(file) == 0 else { throw Problem(message: "cannot be written: \(reason)") }
        }
        for place in mending.unused { try write(FilmMending.unusedType, to: file, at: place) }
        _ = fdatasync(file)
    }

    private static func write(_ bytes: [UInt8], to file: Int32, at place: Int) throws(Problem) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(place + done)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Problem(message: "cannot be written: \(reason)") }
            done += count
        }
    }

    /// `F_SETLEASE`, which the headers define only with _GNU_SOURCE.
    private static let setLease: Int32 = 1_024

    private static var reason: String { String(cString: strerror(errno)) }
}
