import Testing

@testable import ReferenceModel
@testable import Uploading

@Suite struct UploadRecordTests {
    private static func random(_ chance: inout SplitMix64) -> UploadRecord {
        func text() -> String {
            let scalars = (0..<Int.random(in: 0...12, using: &chance)).map { _ in
                ["a", "Z", "0", " ", "%", "\n", "\r", "\t", "é", "🙂", "/", ":", "=", "\u{7F}", "end", "\u{1}"]
                    .randomElement(using: &chance)!
            }
            return scalars.joined()
        }
        func pairs() -> [UploadRecord.Pair] {
            (0..<Int.random(in: 0...3, using: &chance)).map { _ in .init(text(), text()) }
        }
        var options = UploadRecord.Options()
        options.method = UploadMachine.Method.allCases.randomElement(using: &chance)!
        options.field = text()
        options.form = pairs()
        options.headers = pairs()
        options.contentType = text()
        options.chunkSize = .random(in: 1 ... .max, using: &chance)
        options.rate = .random(in: 0 ... .max, using: &chance)
        options.sendsOnMetered = .random(using: &chance)
        options.deletesWhenDone = .random(using: &chance)
        options.hasChecksum = .random(using: &chance)
        options.tries = .random(in: 0...1_000, using: &chance)
        options.answerTimeout = Bool.random(using: &chance) ? .random(in: 1...86_400, using: &chance) : 600
        let size = UInt64.random(in: 0 ... .max, using: &chance)
        var record = UploadRecord(
            number: .random(in: 0 ... .max, using: &chance), path: text(), address: text(), options: options,
            identity: FileIdentity(
                inode: .random(in: 0 ... .max, using: &chance), size: size,
                modified: .random(in: .min ... .max, using: &chance)))
        record.method = UploadMachine.Method.allCases.randomElement(using: &chance)!
        record.target = text()
        record.uploadAddress = Bool.random(using: &chance) ? text() : nil
        record.confirmed = .random(in: 0...size, using: &chance)
        record.chunkSize = .random(in: 1 ... .max, using: &chance)
        record.isPaused = .random(using: &chance)
        record.mayBeThere = .random(using: &chance)
        return record
    }

    @Test func text_isReadAsItWasWritten() {
        var chance = SplitMix64(seed: 1)
        for _ in 0..<2_000 {
            let record = Self.random(&chance)
            #expect(UploadRecord(text: record.text) == record, "\(record.text)")
        }
    }

    @Test func textThatIsNotWhole_isNone() {
        var chance = SplitMix64(seed: 2)
        let text = Self.random(&chance).text
        for count in 0..<text.utf8.count {
            #expect(UploadRecord(text: String(decoding: text.utf8.prefix(count), as: UTF8.self)) == nil, "\(count)")
        }
        #expect(UploadRecord(text: text + "\n") == nil)
        #expect(UploadRecord(text: text.replacingFirst("sessiond upload 1", with: "sessiond upload 2")) == nil)
    }

    @Test func damagedText_isNoneOrAnotherRecord() {
        var chance = SplitMix64(seed: 3)
        for _ in 0..<5_000 {
            var bytes = Array(Self.random(&chance).text.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &chance) {
                bytes[Int.random(in: 0..<bytes.count, using: &chance)] = .random(in: 0...255, using: &chance)
            }
            if let record = UploadRecord(text: String(decoding: bytes, as: UTF8.self)) {
                #expect(record.confirmed <= record.identity.size && record.chunkSize > 0)
            }
        }
    }

    @Test func machine_goesOnWhereItWas() {
        var options = UploadRecord.Options()
        options.method = .auto
        var record = UploadRecord(
            number: 7, path: "/a", address: "http://host/up", options: options,
            identity: FileIdentity(inode: 2, size: 100, modified: 3))
        var machine = record.machine(spread: 0)
        for input: UploadMachine.Input in [
            .allowed(true), .answered(.init(204, speaksTus: true)), .answered(.init(201, location: "http://host/up/1")),
            .answered(.init(204, offset: 60)), .pause,
        ] { _ = machine.handle(input, at: 0) }
        record.take(machine)
        var next = UploadRecord(text: record.text)?.machine(spread: 0)
        #expect(next?.confirmed == 60)
        #expect(next?.isPaused == true)
        #expect(next?.handle(.allowed(true), at: 0) == [])
        #expect(next?.handle(.resume, at: 0) == [.save(mustSurvive: false), .request(.offset)])
    }
}

extension String {
    fileprivate func replacingFirst(_ part: String, with other: String) -> String {
        hasPrefix(part) ? other + dropFirst(part.count) : self
    }
}
