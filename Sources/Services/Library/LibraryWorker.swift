import FileFormats
import Glibc
import MediaLibrary
import TagFormats
import Workers

/// The work of a worker for the library: it lists folders, and reads tags, playlists and covers. Untrusted files are
/// opened only here.
final class LibraryWorker {
    private let process: WorkerProcess
    private var texts: OldTexts?

    /// The most that a worker answers. A path has at most 4,096 bytes.
    static let answers = AnswerLimits([
        "folder": MessageLimit(fields: 16, data: FolderWalk.nameLimit + (1 << 20)),
        "gone": MessageLimit(fields: 2, text: 4_096, data: 8_192),
        "lost": MessageLimit(fields: 2, text: 4_096, data: 8_192),
        "closed": MessageLimit(fields: 2, text: 4_096, data: 8_192),
        "full": MessageLimit(fields: 1, data: 8_192),
        "tag": MessageLimit(fields: 32, text: 2 << 20),
        "list": MessageLimit(fields: 20_016, data: ListFile.sizeLimit + (1 << 20)),
        "bad": MessageLimit(fields: 2, text: 4_096),
        "done": MessageLimit(fields: 3, data: 64 << 20),
        "failed": MessageLimit(fields: 1, text: 4_096),
    ])

    static func main(socket: Int32) -> Never {
        let process = WorkerProcess(socket: socket, answers)
        process.limit()
        WorkerProcess.isolate()
        let worker = LibraryWorker(process)
        process.serve { request, _ in worker.perform(request) }
        _exit(0)
    }

    private init(_ process: WorkerProcess) { self.process = process }

    private func perform(_ request: WorkerMessage) -> WorkerMessage {
        do throws(BadRequest) {
            switch request.name {
            case LibraryRequest.Walk.name: return FolderWalk(process, try request.request()).run()
            case LibraryRequest.Tags.name:
                let tags: LibraryRequest.Tags = try request.request()
                if texts?.encoding != tags.encoding { texts = OldTexts(tags.encoding) }
                for file in tags.files {
                    let answer = read(file)
                    process.send(process.fits(answer) ? answer : Self.bad(file, "it states too much"))
                }
                return WorkerMessage("done")
            case LibraryRequest.Art.name: return picture(try request.request())
            default: return WorkerMessage("failed")
            }
        } catch {
            return WorkerMessage("failed", ["message": .text(error.message)])
        }
    }

    // MARK: Tags

    private func read(_ file: LibraryRequest.File) -> WorkerMessage {
        let path = file.path
        let id = WorkerMessage.Field.whole(Int64(file.id))
        func failed(_ reason: String) -> WorkerMessage { Self.bad(file, reason) }
        guard let open = OpenFile(path) else { return failed(String(cString: strerror(errno))) }
        guard open.isRegular else { return failed("it is not a regular file") }
        if MusicFile.isList(path) {
            guard open.size <= ListFile.sizeLimit else { return failed("a playlist of more than 4 MB") }
            guard let entries = ListFile.entries(open.read(0, Int(open.size)), path: path) else {
                return failed("it is no playlist")
            }
            let list = entries.map { WorkerMessage("", ["path": .bytes($0)]) }
            return WorkerMessage(
                "list", ["id": id, "sound": .whole(Int64(bitPattern: open.fingerprint)), "entries": .list(list)])
        }
        guard let facts = SoundFile.read(open.source(texts)) else {
            return failed(open.size == 0 ? "it is empty" : "it has no format that is known here")
        }
        let type = file.type.flatMap(ItemType.init(word:))
        var message = Track(facts, path: Array(path.dropFirst(file.base)), type: type).message
        message.fields["id"] = id
        // Without any sound, a file is known by its content.
        let sound = SoundSample(open.source(nil)).map(\.fingerprint) ?? open.fingerprint
        message.fields["sound"] = .whole(Int64(bitPattern: sound))
        if file.wantsFormer { message.fields["former"] = .whole(Int64(bitPattern: open.fingerprint)) }
        return message
    }

    private static func bad(_ file: LibraryRequest.File, _ reason: String) -> WorkerMessage {
        WorkerMessage("bad", ["id": .whole(Int64(file.id)), "reason": .text(reason)])
    }

    // MARK: Covers

    private static let pictureLimit = 16 << 20

    /// The cover in the file, or an image file in its folder, in the requested size.
    private func picture(_ request: LibraryRequest.Art) -> WorkerMessage {
        let path = request.path
        var found: [UInt8]?
        if let open = OpenFile(path), open.isRegular {
            found = SoundFile.read(open.source(nil), wantsPicture: true)?.picture
        }
        if found == nil, let slash = path.lastIndex(of: UInt8(ascii: "/")) {
            let folder = Array(path[..<slash])
            if let best = CoverFile.name(in: folder), let open = OpenFile(folder + [UInt8(ascii: "/")] + best),
                open.isRegular,
                open.size <= Self.pictureLimit
            {
                found = open.read(0, Int(open.size))
            }
        }
        guard let found, let type = Pixbuf.ending(found) else { return WorkerMessage("done") }
        let header = PictureHeader.size(found)
        // Every program that shows it would decode it.
        if let header, PictureHeader.isTooLarge(header) { return WorkerMessage("done") }
        let size = request.size
        if size > 0, header != nil, let scaled = Pixbuf.scaled(found, to: size) {
            return WorkerMessage("done", ["data": .bytes(scaled.data), "ending": .text(scaled.ending)])
        }
        return WorkerMessage("done", ["data": .bytes(found), "ending": .text(type), "original": .flag(true)])
    }
}

/// A file that is open for reading. Opening a FIFO does not block.
final class OpenFile {
    let size: UInt64
    let isRegular: Bool
    private let descriptor: Int32
    private static let part = 65_536

    init?(_ path: [UInt8]) {
        descriptor = (path + [0]).withUnsafeBytes {
            open($0.baseAddress!.assumingMemoryBound(to: CChar.self), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        }
        guard descriptor >= 0 else { return nil }
        var status = stat()
        isRegular = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        size = UInt64(max(0, status.st_size))
    }

    deinit { close(descriptor) }

    func read(_ place: UInt64, _ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            while done < count {
                let more = pread(descriptor, buffer.baseAddress! + done, count - done, Int(place) + done)
                guard more > 0 else { break }
                done += more
            }
        }
    }

    private lazy var head = read(0, Int(min(size, UInt64(Self.part))))
    private lazy var tail: [UInt8] = {
        let count = min(size - UInt64(head.count), UInt64(Self.part))
        return count > 0 ? read(size - count, Int(count)) : []
    }()

    /// - Parameter texts: reads texts in tags that do not state their encoding.
    func source(_ texts: OldTexts?) -> SoundSource {
        SoundSource(size: size, head: head, tail: tail, oldText: texts.map { texts in { texts.text($0) } }) {
            [unowned self] in self.read($0, $1)
        }
    }

    /// A hash of the size and of the bytes at both ends. Files with different content almost always differ in it.
    var fingerprint: UInt64 {
        var hash = Hash64()
        hash.add(size)
        hash.add(head)
        hash.add(tail)
        return hash.value
    }
}

extension SoundSample {
    /// A hash of the sound. Files with different sounds almost always differ in it.
    fileprivate var fingerprint: UInt64 {
        var hash = Hash64()
        hash.add(length)
        hash.add(first)
        hash.add(last)
        return hash.value
    }
}

extension Track {
    /// The message from the worker to the plugin. Empty fields are left out.
    var message: WorkerMessage {
        var fields: [String: WorkerMessage.Field] = [:]
        for (key, text) in [
            ("title", title), ("title-sort", titleSort), ("album", album), ("album-sort", albumSort),
            ("artist", artist),
            ("artist-sort", artistSort), ("album-artist", albumArtist), ("album-artist-sort", albumArtistSort),
            ("album-key", albumKey),
        ] where !text.isEmpty { fields[key] = .text(text) }
        for (key, texts) in [
            ("artists", artists), ("album-artists", albumArtists), ("composers", composers), ("genres", genres),
        ] where !texts.isEmpty { fields[key] = .text(texts.joined(separator: "\0")) }
        for (key, number) in [("disc", disc), ("number", number), ("released", released)] where number != 0 {
            fields[key] = .whole(Int64(number))
        }
        fields["duration"] = .number(duration)
        fields["type"] = .whole(mediaType.rawValue)
        if isCompilation { fields["compilation"] = .flag(true) }
        if hasPicture { fields["picture"] = .flag(true) }
        return WorkerMessage("tag", fields)
    }

    init(_ message: WorkerMessage) {
        self.init()
        func text(_ key: String) -> String { message.text(key) ?? "" }
        func texts(_ key: String) -> [String] { text(key).unicodeScalars.split(separator: "\0").map { String($0) } }
        func number(_ key: String) -> Int { Int(clamping: message.whole(key) ?? 0) }
        (title, titleSort, album, albumSort) = (text("title"), text("title-sort"), text("album"), text("album-sort"))
        (artist, artistSort, artists) = (text("artist"), text("artist-sort"), texts("artists"))
        (albumArtist, albumArtistSort) = (text("album-artist"), text("album-artist-sort"))
        (albumArtists, composers, genres) = (texts("album-artists"), texts("composers"), texts("genres"))
        (albumKey, disc, self.number, released) = (
            text("album-key"), number("disc"), number("number"), number("released")
        )
        duration = message.number("duration") ?? 0
        mediaType = ItemType(rawValue: message.whole("type") ?? 0) ?? .music
        isCompilation = message.flag("compilation") ?? false
        hasPicture = message.flag("picture") ?? false
    }
}
