import EventLoop
import Foundation
import TestSupport
import Testing

@testable import HTTP

/// Requests to a server of our own that misbehaves on command.
@Suite struct HTTPClientTests {
    private final class Stage {
        let loop = EventLoop()
        let server: UploadServer
        let client: HTTPClient
        let folder: PrivateFolder

        init() throws {
            server = try UploadServer()
            client = HTTPClient(on: loop)
            folder = try PrivateFolder()
        }

        func address(_ path: String) throws -> WebAddress { try #require(WebAddress(server.url(path))) }

        /// A file of that many bytes, no two of its blocks alike.
        func file(_ size: Int) throws -> (file: BodyFile, path: String, bytes: Data) {
            let bytes = randomBytes(size)
            let path = folder.path + "/file"
            try bytes.write(to: URL(fileURLWithPath: path))
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            var before = stat()
            fstat(descriptor, &before)
            let (length, seconds, nanoseconds) = (before.st_size, before.st_mtim.tv_sec, before.st_mtim.tv_nsec)
            let file = BodyFile(owning: descriptor) { descriptor in
                var now = stat()
                return fstat(descriptor, &now) == 0 && now.st_size == length && now.st_mtim.tv_sec == seconds
                    && now.st_mtim.tv_nsec == nanoseconds
            }
            return (file, path, bytes)
        }

        func ask(
            _ request: HTTPRequest, onProgress: @escaping (HTTPTransfer) -> Void = { _ in }
        ) throws -> Result<HTTPResponse, HTTPError> {
            var outcome: Result<HTTPResponse, HTTPError>?
            client.start(request, onProgress: onProgress) { outcome = $0 }
            try #require(loop.iterate(timeout: 30) { outcome != nil }, "no answer")
            return try #require(outcome)
        }

        func put(_ body: HTTPBody, to path: String = "file") throws -> HTTPRequest {
            HTTPRequest("PUT", try address(path), body: body)
        }
    }

    @Test func fileIsPut_itsBytesAreThere() throws {
        let stage = try Stage()
        let (file, _, bytes) = try stage.file(3_000_001)
        var reports: [UInt64] = []
        let answer = try stage.ask(stage.put(HTTPBody([.file(file, offset: 0, length: 3_000_001)]))) {
            reports.append($0.bytesDelivered)
        }.get()
        #expect(answer.status == 201)
        #expect(answer.fields["etag"] == "\"1\"")
        #expect(answer.bytesSent == 3_000_001)
        #expect(stage.server.stored("file") == bytes)
        #expect(reports == reports.sorted() && (reports.last ?? 0) <= 3_000_001)
    }

    @Test func connection_isNotInheritedByChildren() throws {
        let stage = try Stage()
        var outcome: Result<HTTPResponse, HTTPError>?
        let transfer = stage.client.start(HTTPRequest("GET", try stage.address("file"))) { outcome = $0 }
        var flags: Int32?
        _ = stage.loop.iterate(timeout: 30) {
            if let socket = transfer.socket { flags = fcntl(socket, F_GETFD) }
            return outcome != nil
        }
        #expect(flags == FD_CLOEXEC)
    }

    @Test func partOfAFileBetweenBytes_isSentInOrder() throws {
        let stage = try Stage()
        let (file, _, bytes) = try stage.file(500_000)
        let body = HTTPBody([.bytes([1, 2]), .file(file, offset: 1_000, length: 300_000), .bytes([]), .bytes([3])])
        #expect(body.length == 300_003)
        #expect(try stage.ask(stage.put(body)).get().status == 201)
        #expect(stage.server.stored("file") == Data([1, 2]) + bytes[1_000..<301_000] + Data([3]))
    }

    @Test func emptyBody_isSentAsOne() throws {
        let stage = try Stage()
        #expect(try stage.ask(stage.put(HTTPBody())).get().status == 201)
        #expect(stage.server.stored("file") == Data())
    }

    @Test func form_isReadAsOne() throws {
        let stage = try Stage()
        let (file, _, bytes) = try stage.file(100_000)
        let form = MultipartForm(
            fields: [("title", "A \"b\"\r\nc"), ("empty", "")],
            file: ("upload", "odd \"name\".wav", "audio/x-wav", .file(file, offset: 0, length: 100_000)))
        var request = HTTPRequest(
            "POST", try stage.address("form"), [HTTPField(known: "Content-Type", form.contentType)], body: form.body)
        request.answerLimit = 6
        let answer = try stage.ask(request).get()
        #expect(answer.status == 200)
        #expect(String(decoding: answer.body, as: UTF8.self) == "<html>")
        // Python's reader of mail knows the same format.
        let program = """
            import email, sys
            folder = sys.argv[1]
            head = b"Content-Type: " + open(folder + "/form.type", "rb").read() + b"\\r\\n\\r\\n"
            for part in email.message_from_bytes(head + open(folder + "/form", "rb").read()).get_payload():
                content = part.get_payload(decode=True)
                print(part.get_param("name", header="content-disposition"), part.get_filename(), part.get_content_type(),
                      len(content), sum(content) % 65521)
            """
        let text = try Child.run("/usr/bin/python3", ["-c", program, stage.server.folder.path])
        let sum = bytes.reduce(0) { ($0 + Int($1)) % 65_521 }
        let title = "A \"b\"\r\nc".utf8.reduce(0) { $0 + Int($1) }
        #expect(
            text.split(separator: "\n") == [
                "title None text/plain 8 \(title)", "empty None text/plain 0 0",
                "upload odd %22name%22.wav audio/x-wav 100000 \(sum)",
            ])
    }

    @Test func statusAndFields_areThoseOfTheLastHead() throws {
        let stage = try Stage()
        let (file, _, _) = try stage.file(2 << 20)
        var request = try stage.put(HTTPBody([.file(file, offset: 0, length: 2 << 20)]))
        request.asksBeforeSending = true
        #expect(try stage.ask(request).get().status == 201)
        #expect(stage.server.requests.last?.fields?["expect"] == "100-continue")
        try stage.server.tell("answer PUT 429 1 7")
        let answer = try stage.ask(request).get()
        #expect(answer.status == 429)
        #expect(answer.retryAfter == 7)
        #expect(answer.bytesSent == 0, "it was refused before it was sent")
        #expect(String(decoding: answer.body, as: UTF8.self) == "as I was told\n")
    }

    @Test(arguments: [401, 403, 408, 409, 413, 423, 425, 429, 500, 503])
    func refusedWhileItSends_isAnAnswer(_ status: Int) throws {
        let stage = try Stage()
        let (file, _, _) = try stage.file(20 << 20)
        try stage.server.tell("answer PUT \(status) 1")
        let answer = try stage.ask(stage.put(HTTPBody([.file(file, offset: 0, length: 20 << 20)]))).get()
        #expect(answer.status == status)
    }

    @Test func cutWhileItSends_isACut() throws {
        let stage = try Stage()
        let (file, _, _) = try stage.file(20 << 20)
        try stage.server.tell("cut 5000000")
        let outcome = try stage.ask(stage.put(HTTPBody([.file(file, offset: 0, length: 20 << 20)])))
        guard case .failure(let error) = outcome else { throw SupportError("\(outcome)") }
        #expect(error.kind == .cut)
        #expect(error.kind.isPassing)
        #expect(error.message.hasPrefix("127.0.0.1 ended the connection"), "\(error.message)")
    }

    @Test func serverSaysNothing_isATimeOut() throws {
        let stage = try Stage()
        try stage.server.tell("silent PUT 1")
        var request = try stage.put(HTTPBody([.bytes([1])]))
        (request.silence, request.connecting) = (0.4, 0.4)
        let outcome = try stage.ask(request)
        #expect(
            outcome
                == .failure(
                    HTTPError(.timedOut, "127.0.0.1 did not answer in time: check the network, or try again later")))
        // Another one is not held up.
        #expect(try stage.ask(stage.put(HTTPBody([.bytes([1])]))).get().status == 201)
    }

    @Test func answerAfterALargeBody_hasItsOwnLimit() throws {
        let stage = try Stage()
        try stage.server.tell("late PUT 1.5 1")
        var request = try stage.put(HTTPBody([.bytes([1])]))
        (request.silence, request.answering) = (0.4, 50)
        #expect(try stage.ask(request).get().status == 201)
        // A stall before the last byte is noticed as before.
        let (file, _, _) = try stage.file(20 << 20)
        try stage.server.tell("hold 100000")
        var stalled = try stage.put(HTTPBody([.file(file, offset: 0, length: 20 << 20)]))
        (stalled.silence, stalled.connecting, stalled.answering) = (0.4, 0.4, 3_600)
        guard case .failure(let error) = try stage.ask(stalled) else { throw SupportError("an answer") }
        #expect(error.kind == .timedOut)
    }

    @Test(arguments: ["head", "body"]) func answerThatDrips_isATimeOut(_ part: String) throws {
        let stage = try Stage()
        try stage.server.tell("drip PUT \(part) 1")
        var request = try stage.put(HTTPBody([.bytes([1])]))
        (request.silence, request.connecting) = (0.4, 0.4)
        guard case .failure(let error) = try stage.ask(request) else { throw SupportError("an answer") }
        #expect(error.kind == .timedOut)
    }

    @Test func answerThatIsNoHTTP_isToldAndMayPass() throws {
        let stage = try Stage()
        try stage.server.tell("garbage PUT 1")
        guard case .failure(let error) = try stage.ask(stage.put(HTTPBody([.bytes([1])]))) else {
            throw SupportError("an answer")
        }
        #expect(error.kind == .notHTTP)
        #expect(error.kind.isPassing)
        #expect(error.message == "the answer of 127.0.0.1 is not HTTP: check the address and the port")
    }

    @Test func answerWithoutEnd_endsWhereItIsAllowedTo() throws {
        let stage = try Stage()
        try stage.server.tell("endless GET 1")
        let answer = try stage.ask(HTTPRequest("GET", stage.address("x"))).get()
        #expect(answer.status == 200)
        #expect(answer.body.count == 64 << 10)
    }

    @Test func nobodyThere_isToldWithWhatToDo() throws {
        let stage = try Stage()
        stage.server.kill()
        guard case .failure(let refused) = try stage.ask(stage.put(HTTPBody())) else { throw SupportError("an answer") }
        #expect(refused.kind == .notReachable)
        #expect(refused.message.contains("check the port"), "\(refused.message)")
        let nowhere = try #require(WebAddress("http://nowhere.invalid/x"))
        guard case .failure(let unknown) = try stage.ask(HTTPRequest("GET", nowhere)) else {
            throw SupportError("an answer")
        }
        #expect(unknown.kind == .hostNotFound)
        #expect(unknown.message.contains("nowhere.invalid"))
    }

    @Test func certificateOfNobody_isNotTrusted() throws {
        let folder = try PrivateFolder()
        try Child.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2", "-keyout",
                folder.path + "/key", "-out", folder.path + "/certificate",
            ])
        let both = try ["key", "certificate"].map {
            try String(contentsOfFile: folder.path + "/" + $0, encoding: .utf8)
        }
        let server = try UploadServer(certificate: folder.file("both.pem", both.joined()))
        let stage = try Stage()
        let address = try #require(WebAddress("https://localhost:\(server.port)/x"))
        guard case .failure(let error) = try stage.ask(HTTPRequest("GET", address)) else {
            throw SupportError("an answer")
        }
        #expect(error.kind == .notTrusted)
        #expect(!error.kind.isPassing)
    }

    @Test(arguments: [false, true]) func fileChangesWhileItIsSent_nothingElseIsSent(grows: Bool) throws {
        let stage = try Stage()
        let (file, path, _) = try stage.file(20 << 20)
        try stage.server.tell("slow 4000000")
        var isChanged = false
        let outcome = try stage.ask(stage.put(HTTPBody([.file(file, offset: 0, length: 20 << 20)]))) { _ in
            if !isChanged {
                isChanged = true
                if grows {
                    let end = open(path, O_WRONLY | O_APPEND)
                    _ = write(end, "more", 4)
                    close(end)
                } else {
                    truncate(path, 1 << 20)
                }
            }
        }
        guard case .failure(let error) = outcome else { throw SupportError("\(outcome)") }
        #expect(error.kind == .changed)
        #expect(stage.server.stored("file") == nil, "the server has no whole body")
    }

    @Test func cancelled_endsAtOnceAndSaysNothing() throws {
        let stage = try Stage()
        let (file, _, _) = try stage.file(20 << 20)
        try stage.server.tell("slow 1000000")
        var isDone = false
        var isCancelled = false
        stage.client.start(try stage.put(HTTPBody([.file(file, offset: 0, length: 20 << 20)]))) {
            $0.cancel()
            isCancelled = true
        } onDone: { _ in
            isDone = true
        }
        #expect(stage.loop.iterate(timeout: 10) { isCancelled })
        #expect(stage.client.count == 0)
        #expect(!stage.loop.iterate(timeout: 0.2) { isDone })
        #expect(eventually { stage.server.received > 0 }, "the server sees that nobody is there")
    }

    @Test func clientGoes_soDoItsTransfers() throws {
        let loop = EventLoop()
        let server = try UploadServer()
        try server.tell("silent GET 1")
        var client: HTTPClient? = HTTPClient(on: loop)
        var isDone = false
        client?.start(HTTPRequest("GET", try #require(WebAddress(server.url("x"))))) { _ in isDone = true }
        #expect(loop.iterate(timeout: 10) { !server.requests.isEmpty })
        client = nil
        #expect(!loop.iterate(timeout: 0.2) { isDone })
    }

    @Test func rate_isKept() throws {
        let stage = try Stage()
        let (file, _, _) = try stage.file(600_000)
        var request = try stage.put(HTTPBody([.file(file, offset: 0, length: 600_000)]))
        request.rate = 300_000
        let start = monotonicNow()
        #expect(try stage.ask(request).get().status == 201)
        // Unlimited it takes milliseconds; how much longer than two seconds is the machine's affair.
        #expect(monotonicNow() - start > 1)
    }

    @Test func manyAtOnce_allAreAnswered() throws {
        let stage = try Stage()
        var answers: [String: Int] = [:]
        for number in 0..<60 {
            let name = "many-\(number)"
            stage.client.start(try stage.put(HTTPBody([.bytes(Array(name.utf8))]), to: name)) {
                answers[name] = (try? $0.get())?.status ?? 0
            }
        }
        #expect(stage.loop.iterate(timeout: 30) { answers.count == 60 })
        #expect(answers.values.allSatisfy { $0 == 201 })
        #expect((0..<60).allSatisfy { stage.server.stored("many-\($0)") == Data("many-\($0)".utf8) })
        #expect(stage.client.count == 0)
    }

    @Test func connection_isUsedAgain() throws {
        let stage = try Stage()
        for _ in 0..<5 { #expect(try stage.ask(stage.put(HTTPBody([.bytes([1])]))).get().status == 201) }
        #expect(stage.server.received == 0, "no connection has ended")
    }

    /// A web server of others.
    @Test(.enabled(if: Child.hasNginx, "nginx is not installed")) func nginx_takesTheFile() throws {
        let stage = try Stage()
        let nginx = try Nginx()
        let (file, _, bytes) = try stage.file(9 << 20)
        var request = HTTPRequest(
            "PUT", try #require(WebAddress(nginx.url("folder/file"))),
            body: HTTPBody([.file(file, offset: 0, length: 9 << 20)]))
        request.asksBeforeSending = true
        #expect(try stage.ask(request).get().status == 201)
        #expect(nginx.stored("folder/file") == bytes)
        let head = try stage.ask(HTTPRequest("HEAD", try #require(WebAddress(nginx.url("folder/file"))))).get()
        #expect(head.fields["content-length"] == "\(9 << 20)")
        #expect(try stage.ask(HTTPRequest("GET", try #require(WebAddress(nginx.url("nothing"))))).get().status == 404)
    }
}
