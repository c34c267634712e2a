import DBus
import HTTP
import PluginAPI
import PluginKit
import SessionBus
import Uploading

// Implements `org.sessiond1.Uploads`.

extension UploadsPlugin {
    static let properties: [Announcement<UploadsPlugin>.Property] = [
        .init("Sending", "u") { .uint32(UInt32(clamping: $0.sendingCount)) },
        .init("Waiting", "u") { .uint32(UInt32(clamping: $0.waitingCount)) },
        .init("WaitsForNetwork", "b") { .bool($0.waitsForNetwork) },
    ]

    private func describe(_ task: UploadTask) -> Value {
        let status = task.job.status
        return .properties([
            ("job", .objectPath(task.job.path)), ("path", .string(task.record.path)),
            ("url", .string(task.shown)),
            ("method", .string(task.machine.method.rawValue)), ("state", .string(status.state.rawValue)),
            ("done", .uint64(status.done)), ("total", .uint64(status.total)),
            ("error", .string(status.error.map { BusName.errorPrefix + $0.code.rawValue } ?? "")),
            ("message", .string(status.message)), ("tries", .uint32(UInt32(clamping: task.machine.troubles))),
        ])
    }

    private func answer(_ path: String, for caller: String) throws(Failure) -> [Value] {
        guard let task = task(path) else {
            throw Failure(SessionError(.notFound, "there is no upload \(quoted(path)); see List"))
        }
        if caller != task.job.owner {
            guard task.job.isDetached else {
                throw Failure(SessionError(.notOwner, "only the program that uploads may read the answer to it"))
            }
            try callers.require(caller, to: "read the answer to an upload")
        }
        guard !task.isAnswerGone else {
            throw Failure(
                SessionError(
                    .notFound, "the answer was discarded to make room for those of later uploads; ask for it earlier"))
        }
        let answer = task.answer
        let fields = answer?.fields ?? []
        // A header may occur several times, but a dictionary key only once.
        var merged: [(String, String)] = []
        for field in fields {
            if let index = merged.firstIndex(where: { $0.0 == field.name }) {
                merged[index].1 += ", " + field.value
            } else {
                merged.append((field.name, field.value))
            }
        }
        return [
            .uint32(UInt32(clamping: answer?.status ?? 0)),
            .dictionary(
                key: "s", value: "s", merged.map { DictionaryEntry(key: .string($0.0), value: .string($0.1)) }),
            .array(of: "y", (answer?.body ?? []).map { .byte($0) }), .string(task.location),
        ]
    }

    static let interface = Interface<UploadsPlugin>(
        name: PluginKind.uploads.interface, introspection: PluginXML.uploads,
        methods: [
            .init("Upload", "ssa{sv}") { uploads, call in
                do throws(Failure) {
                    let (options, isDetached) = try UploadRecord.Options.read(call.arguments[2])
                    let job = try uploads.upload(
                        call.arguments[0].stringValue ?? "", to: call.arguments[1].stringValue ?? "", options,
                        isDetached: isDetached, for: call.sender)
                    call.reply([.objectPath(job)])
                } catch {
                    call.fail(error)
                }
            },
            .init("List", "") { uploads, call in
                do throws(Failure) {
                    try uploads.callers.require(call.sender, to: "list the uploads of other programs")
                    call.reply([.array(of: "a{sv}", uploads.listed.map(uploads.describe))])
                } catch {
                    call.fail(error)
                }
            },
            .init("Answer", "o") { uploads, call in
                do throws(Failure) {
                    call.reply(try uploads.answer(call.arguments[0].objectPathValue ?? "", for: call.sender))
                } catch {
                    call.fail(error)
                }
            },
        ],
        properties: properties.map(\.exported))
}

extension UploadRecord.Options {
    private static let limits = (text: 4 << 10, pairs: 64, bytes: 32 << 10, tries: UInt32(1_000))
    /// The upload sets these headers itself; a caller may not set them.
    private static let own = [
        "connection", "content-length", "content-type", "expect", "host", "transfer-encoding", "upload-offset",
        "upload-length", "upload-metadata", "upload-checksum", "tus-resumable",
    ]

    /// Reads the options of `Upload`, and whether the upload is detached.
    static func read(_ dictionary: Value) throws(Failure) -> (UploadRecord.Options, isDetached: Bool) {
        let reader = try OptionReader(
            dictionary,
            known: [
                "method", "field", "form", "headers", "content-type", "chunk-size", "rate", "metered",
                "delete-when-done", "checksum", "tries", "detached", "answer-timeout",
            ])
        for key in ["method", "field", "content-type", "metered"] {
            try check(reader.string(key) ?? "", key, limits.text)
        }
        var options = UploadRecord.Options()
        options.method = try reader.word("method") ?? options.method
        options.field = try reader.string("field") ?? options.field
        options.form = try pairs(reader, "form")
        options.headers = try pairs(reader, "headers")
        for header in options.headers {
            // The value may be a credential, so the error message does not contain it.
            guard HTTPField(header.name, header.value) != nil else {
                throw bad(
                    "the header \(quoted(header.name)) cannot be sent: remove line ends and other control characters")
            }
            guard !own.contains(header.name.lowercased()) else {
                throw bad(
                    "the upload sets the header \(quoted(header.name)) itself; to set the type, use 'content-type'")
            }
        }
        options.contentType = try reader.string("content-type") ?? ""
        guard HTTPField("Content-Type", options.contentType) != nil else { throw bad("'content-type' is no type") }
        for pair in options.form {
            guard !pair.name.isEmpty, !pair.name.utf8.contains(where: { $0 <= 0x20 || $0 == 0x2C || $0 == 0x7F }) else {
                throw bad("the form's field \(quoted(pair.name)) needs a name without spaces and commas")
            }
        }
        if let size = try reader.uint64("chunk-size") {
            guard size >= UploadMachine.leastChunkSize else {
                throw bad("'chunk-size' must be at least \(UploadMachine.leastChunkSize) bytes, not \(size)")
            }
            options.chunkSize = size
        }
        options.rate = try reader.uint64("rate") ?? 0
        if let metered = try reader.string("metered") {
            guard metered == "wait" || metered == "send" else {
                throw bad("'metered' must be wait or send, not \(quoted(metered))")
            }
            options.sendsOnMetered = metered == "send"
        }
        options.deletesWhenDone = try reader.bool("delete-when-done") ?? false
        options.hasChecksum = try reader.bool("checksum") ?? false
        guard !options.hasChecksum || options.method == .tus else {
            throw bad("'checksum' is a part of tus; set 'method' to tus, too")
        }
        options.tries = Int(min(try reader.uint32("tries") ?? 5, limits.tries))
        if let seconds = try reader.uint32("answer-timeout") {
            guard 1...86_400 ~= seconds else {
                throw bad("'answer-timeout' must be from 1 to 86400 seconds, not \(seconds)")
            }
            options.answerTimeout = Int(seconds)
        }
        return (options, try reader.bool("detached") ?? true)
    }

    private static func pairs(_ reader: OptionReader, _ key: String) throws(Failure) -> [UploadRecord.Pair] {
        let pairs = try reader.texts(key) ?? []
        guard pairs.count <= limits.pairs,
            pairs.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count }) <= limits.bytes
        else {
            throw .invalidArgs("'\(key)' may have at most \(limits.pairs) entries and \(limits.bytes >> 10) KiB")
        }
        return pairs.map { UploadRecord.Pair($0.name, $0.value) }
    }

    /// - Throws: `InvalidArgs` if the text is too long.
    static func check(_ text: String, _ name: String, _ limit: Int) throws(Failure) {
        guard text.utf8.count <= limit else {
            throw .invalidArgs("'\(name)' has \(text.utf8.count) bytes; at most \(limit) are allowed")
        }
    }

    private static func bad(_ message: String) -> Failure { Failure(.badParameter(message)) }
}
