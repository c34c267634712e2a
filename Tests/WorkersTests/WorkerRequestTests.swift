import Testing

@testable import Workers

/// Tests that a request is exactly what it says: nothing is missing, nothing is there that nobody reads.
@Suite struct WorkerRequestTests {
    private enum Size: String {
        case small, large
    }

    private struct Part: WorkerRequest {
        static let name = "part"
        var path: [UInt8] = []

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) { try coder.bytes("path", &path) }
    }

    private struct Work: WorkerRequest {
        static let name = "work"
        var count = 0
        var limit: Int?
        var share: Double?
        var stripsLocation = true
        var size = Size.small
        var title: String?
        var names: [String: String] = [:]
        var parts: [Part] = []

        mutating func code(_ coder: inout RequestCoder) throws(BadRequest) {
            try coder.whole("count", &count)
            try coder.whole("limit", &limit)
            try coder.number("share", &share)
            try coder.flag("strip-location", &stripsLocation)
            try coder.word("size", &size)
            try coder.text("title", &title)
            try coder.texts("names", &names)
            try coder.list("parts", &parts)
        }
    }

    private static let full = Work(
        count: -3, limit: 9, share: 0.5, stripsLocation: false, size: .large, title: "é", names: ["a": "b", "c": ""],
        parts: [Part(path: [1, 2]), Part(path: [])])

    @Test func request_isTheSameAfterItsMessage() throws {
        for work in [Work(), Self.full] {
            let message = WorkerMessage(work)
            #expect(message.name == "work")
            #expect(try message.request(Work.self) == work)
            // Also as bytes.
            let read = try #require(WorkerMessage(message.frame.dropFirst(4), .request))
            #expect(try read.request(Work.self) == work)
        }
    }

    /// A program with another coding must not fall back to a default: a film's place would be sent.
    @Test func misspeltField_isAnError() throws {
        var message = WorkerMessage(Self.full)
        message.fields["strip_location"] = message.fields.removeValue(forKey: "strip-location")
        #expect(throws: BadRequest.self) { try message.request(Work.self) }
    }

    @Test func missingField_isAnErrorUnlessItMayBeAbsent() throws {
        let optional = ["limit", "share", "title"]
        for key in WorkerMessage(Self.full).fields.keys {
            var message = WorkerMessage(Self.full)
            message.fields[key] = nil
            if optional.contains(key) {
                #expect(throws: Never.self, "\(key)") { try message.request(Work.self) }
            } else {
                #expect(throws: BadRequest.self, "\(key)") { try message.request(Work.self) }
            }
        }
    }

    @Test func fieldOfAnotherType_isAnErrorAlsoIfItMayBeAbsent() throws {
        for key in WorkerMessage(Self.full).fields.keys {
            for field in [.flag(true), .whole(1), .number(1), .text("x"), .bytes([1]), .list([])]
                as [WorkerMessage.Field]
            {
                var message = WorkerMessage(Self.full)
                if let old = message.fields[key], old.isSameKind(as: field) { continue }
                message.fields[key] = field
                #expect(throws: BadRequest.self, "\(key)") { try message.request(Work.self) }
            }
        }
        var message = WorkerMessage(Self.full)
        message.fields["size"] = .text("huge")
        #expect(throws: BadRequest.self) { try message.request(Work.self) }
    }

    @Test func unknownField_isAnErrorAlsoInAPart() throws {
        var message = WorkerMessage(Self.full)
        message.fields["more"] = .flag(true)
        #expect(throws: BadRequest.self) { try message.request(Work.self) }
        message = WorkerMessage(Self.full)
        message.fields["parts"] = .list([WorkerMessage("part", ["path": .bytes([]), "more": .flag(true)])])
        #expect(throws: BadRequest.self) { try message.request(Work.self) }
        message.fields["parts"] = .list([WorkerMessage("other", ["path": .bytes([])])])
        #expect(throws: BadRequest.self) { try message.request(Work.self) }
    }

    @Test func otherRequest_isAnError() throws {
        #expect(throws: BadRequest.self) { try WorkerMessage(Self.full).request(Part.self) }
    }
}

extension WorkerMessage.Field {
    fileprivate func isSameKind(as other: Self) -> Bool {
        switch (self, other) {
        case (.flag, .flag), (.whole, .whole), (.number, .number), (.text, .text), (.bytes, .bytes), (.list, .list):
            true
        case (.flag, _), (.whole, _), (.number, _), (.text, _), (.bytes, _), (.list, _): false
        }
    }
}
