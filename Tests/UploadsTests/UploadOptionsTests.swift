import DBus
import SessionBus
import Testing
import Uploading

@testable import Uploads

/// The options of `Upload`: what an upload does with them, and what is refused.
@Suite struct UploadOptionsTests {
    private typealias Options = UploadRecord.Options

    private static func read(_ options: [(String, Value)]) throws -> (options: Options, isDetached: Bool) {
        let (read, isDetached) = try Options.read(.properties(options))
        return (read, isDetached)
    }

    private static func refusal(_ options: [(String, Value)]) -> String {
        do throws(Failure) {
            _ = try Options.read(.properties(options))
            return "none"
        } catch {
            return error.message
        }
    }

    private static func texts(_ pairs: [(String, String)]) -> Value {
        .dictionary(
            key: "s", value: "s", pairs.map { DictionaryEntry(key: .string($0.0), value: .string($0.1)) })
    }

    @Test func withoutOptions_itIsDetachedAndUsesTheUsualValues() throws {
        let (options, isDetached) = try Self.read([])
        #expect(isDetached && options == Options())
    }

    @Test func eachOption_isRead() throws {
        let (options, isDetached) = try Self.read([
            ("method", .string("tus")), ("field", .string("photo")), ("content-type", .string("video/mp4")),
            ("form", Self.texts([("album", "Summer")])), ("headers", Self.texts([("Authorization", "Bearer x")])),
            ("chunk-size", .uint64(UploadMachine.leastChunkSize)), ("rate", .uint64(5)), ("metered", .string("send")),
            ("delete-when-done", .bool(true)), ("checksum", .bool(true)), ("tries", .uint32(2)),
            ("detached", .bool(false)), ("answer-timeout", .uint32(86_400)),
        ])
        var expected = Options()
        expected.method = .tus
        (expected.field, expected.contentType) = ("photo", "video/mp4")
        expected.form = [.init("album", "Summer")]
        expected.headers = [.init("Authorization", "Bearer x")]
        (expected.chunkSize, expected.rate) = (UploadMachine.leastChunkSize, 5)
        (expected.sendsOnMetered, expected.deletesWhenDone, expected.hasChecksum) = (true, true, true)
        (expected.tries, expected.answerTimeout) = (2, 86_400)
        #expect(options == expected && !isDetached)
    }

    @Test func tries_areLimited() throws {
        #expect(try Self.read([("tries", .uint32(.max))]).options.tries == 1_000)
    }

    @Test(arguments: [
        ("method", Value.string("ftp"), "use one of|must be one of"), ("metered", .string("maybe"), "wait or send"),
        ("chunk-size", .uint64(1), "must be at least"), ("answer-timeout", .uint32(0), "from 1 to 86400"),
        ("answer-timeout", .uint32(86_401), "from 1 to 86400"), ("checksum", .bool(true), "set 'method' to tus"),
        ("content-type", .string("text/plain\r\nX: y"), "no type"), ("chunksize", .uint64(1 << 20), "unknown option"),
        ("rate", .uint32(5), "'rate'"), ("field", .string(String(repeating: "x", count: 4_097)), "at most 4096"),
    ]) func valueThatIsNone_isRefusedWithAWayOut(_ key: String, _ value: Value, _ reason: String) {
        let message = Self.refusal([(key, value)])
        #expect(reason.split(separator: "|").contains { message.contains($0) }, "\(message)")
    }

    @Test(arguments: ["Host", "content-length", "Upload-Offset", "TUS-Resumable", "Content-Type"])
    func headerOfTheUpload_isNotForCallers(_ name: String) {
        #expect(Self.refusal([("headers", Self.texts([(name, "1")]))]).contains("sets the header"))
    }

    @Test func headerThatWouldAddAnother_isRefused_andItsSecretIsNotRepeated() {
        let message = Self.refusal([("headers", Self.texts([("Authorization", "secret\r\nX: y")]))])
        #expect(message.contains("Authorization") && !message.contains("secret"))
    }

    @Test(arguments: ["", "two words", "a,b", "tab\t"]) func formFieldWithoutAName_isRefused(_ name: String) {
        #expect(Self.refusal([("form", Self.texts([(name, "1")]))]).contains("needs a name"))
    }

    @Test func tooManyPairs_areRefused() {
        let pairs = (0...64).map { ("k\($0)", "v") }
        #expect(Self.refusal([("form", Self.texts(pairs))]).contains("at most 64 entries"))
        #expect(Self.refusal([("form", Self.texts(Array(pairs.dropLast())))]) == "none")
        let long = [("k", String(repeating: "x", count: 32 << 10))]
        #expect(Self.refusal([("headers", Self.texts(long))]).contains("32 KiB"))
    }
}
