import EventLoop
import Glibc
import HTTP
import PluginAPI
import PluginKit
import Uploading

/// One upload. Carries out the decisions of its machine, and shows it as a job.
final class UploadTask {
    let job: Job
    private(set) var record: UploadRecord
    private(set) var machine: UploadMachine
    /// The latest answer that the program that uploads may read.
    private(set) var answer: HTTPResponse?
    /// Whether the answer was discarded to make room for those of later uploads.
    private(set) var isAnswerGone = false
    /// Whether the upload continues after a restart.
    let isKept: Bool

    private unowned let plugin: UploadsPlugin
    /// The address from the caller. Its secrets are sent only to this origin.
    private let origin: WebAddress
    private var transfer: HTTPTransfer?
    private var file: BodyFile?
    private lazy var timer = Timer(on: plugin.loop) { [unowned self] in take(.timePassed) }
    /// Inputs that arrived while another input was handled.
    private var inputs: [UploadMachine.Input] = []
    private var isHandling = false

    init(_ record: UploadRecord, to origin: WebAddress, as job: Job, isKept: Bool, in plugin: UploadsPlugin) {
        (self.record, self.origin, self.job, self.isKept, self.plugin) = (record, origin, job, isKept, plugin)
        machine = record.machine(spread: Double.random(in: 0...1))
        job.onCancel = { [unowned self] in take(.cancel) }
        job.onPause = { [unowned self] in take(.pause) }
        job.onResume = { [unowned self] in take(.resume) }
    }

    /// Whether a request is running.
    var isSending: Bool {
        if case .working = machine.stage { true } else { false }
    }

    /// The address of the uploaded file: as the server named it, otherwise without user, password and query.
    var location: String { record.uploadAddress ?? (record.target == record.address ? shown : record.target) }

    /// The address from the caller, without its secret parts.
    private(set) lazy var shown = origin.shown

    /// Starts an upload that waits for its turn. A stored record is not written again, because there may be thousands.
    func begin(isNew: Bool) {
        if isNew { save(mustSurvive: true) }
        show()
    }

    /// Called when the process ends: the next process continues stored uploads.
    func stop() {
        transfer?.cancel()
        transfer = nil
        timer.disarm()
    }

    func forgetAnswer() {
        answer = nil
        isAnswerGone = true
    }

    func take(_ input: UploadMachine.Input) {
        inputs.append(input)
        guard !isHandling else { return }
        isHandling = true
        defer { isHandling = false }
        while !inputs.isEmpty {
            for effect in machine.handle(inputs.removeFirst(), at: MonotonicClock.now()) { carry(out: effect) }
        }
        plugin.changed(self)
        if !machine.isOver { show() }
    }

    private func carry(out effect: UploadMachine.Effect) {
        switch effect {
        case .request(let request): start(request)
        case .abort:
            transfer?.cancel()
            transfer = nil
            file = nil
        case .wait(let until):
            file = nil
            timer.arm(at: until)
        case .save(let mustSurvive): save(mustSurvive: mustSurvive)
        case .remove(let address): remove(address)
        case .end(let end): ended(end)
        }
    }

    private func save(mustSurvive: Bool) {
        record.take(machine)
        if isKept { plugin.store?.save(record, mustSurvive: mustSurvive) }
    }

    private func ended(_ end: UploadMachine.End) {
        record.take(machine)
        (transfer, file) = (nil, nil)
        timer.disarm()
        if isKept { plugin.store?.remove(record.number) }
        switch end {
        case .done:
            if record.options.deletesWhenDone, (try? SourceFile.identity(of: record.path)) == record.identity {
                unlink(record.path)
            }
            job.finish()
        case .failed(let error): job.fail(error)
        // Its job has already ended.
        case .cancelled: break
        }
        plugin.ended(self)
    }

    // MARK: The job

    /// Shows the state of the upload, and the reason why it waits.
    func show() {
        switch machine.stage {
        case .working: job.begin()
        case .ready: if !machine.isPaused { job.wait(plugin.reasonToWait(machine, record)) }
        case .waiting(_, let until, let why):
            let seconds = Int((Double(until &- min(until, MonotonicClock.now())) / 1_000_000).rounded())
            job.wait("\(why); the next try is in \(seconds) s")
        case .over: return
        }
        job.progressed(done: machine.confirmed, total: machine.size)
    }

    private func progressed(_ transfer: HTTPTransfer) {
        guard transfer === self.transfer, case .working(let request) = machine.stage else { return }
        let sent =
            switch request {
            case .send(let offset, let count): offset + min(count, transfer.bytesDelivered)
            case .whole: min(machine.size, transfer.bytesDelivered)
            case .ask, .create, .offset, .proof: machine.confirmed
            }
        job.progressed(done: sent, total: machine.size)
    }

    // MARK: Requests

    private func start(_ request: UploadMachine.Request) {
        do throws(SessionError) {
            guard try SourceFile.identity(of: record.path) == record.identity else {
                throw SourceFile.changed(record.path)
            }
            let made = try message(for: request)
            transfer = plugin.client.start(made, onProgress: { [weak self] in self?.progressed($0) }) { [weak self] in
                self?.answered(request, at: made.address, $0)
            }
            guard request == .whole else { return }
            transfer?.onBodySent = { [weak self] in self?.take(.sent) }
            if transfer?.isBodySent == true { take(.sent) }
        } catch {
            take(.sourceLost(error))
        }
    }

    private func message(for request: UploadMachine.Request) throws(SessionError) -> HTTPRequest {
        let text =
            switch request {
            case .ask, .create: machine.address
            case .whole, .proof:
                machine.method == .put ? UploadMachine.placeOfFile(named: name, at: machine.address) : machine.address
            case .offset, .send: machine.uploadAddress ?? machine.address
            }
        guard let address = WebAddress(text) else {
            throw SessionError(.networkFailed, "the server named an invalid address: upload the file again")
        }
        switch request {
        case .ask: return addressed("OPTIONS", address)
        case .create:
            return addressed(
                "POST", address,
                [UploadTask.version, .init(known: "Upload-Length", "\(machine.size)")]
                    + fields("Upload-Metadata", Base64.metadata(metadata(for: address))))
        case .offset: return addressed("HEAD", address, [UploadTask.version])
        case .proof: return addressed("HEAD", address)
        case .send(let offset, let count):
            let file = try opened()
            var fields: [HTTPField] = [
                UploadTask.version, .init(known: "Upload-Offset", "\(offset)"),
                .init(known: "Content-Type", "application/offset+octet-stream"),
            ]
            if record.options.hasChecksum {
                var hash = SHA1()
                guard file.read(offset: offset, count: count, { hash.update($0) }) else {
                    throw SourceFile.changed(record.path)
                }
                fields.append(.init(known: "Upload-Checksum", "sha1 \(Base64.text(of: hash.digest()))"))
            }
            var made = sending("PATCH", address, fields, HTTPBody([.file(file, offset: offset, length: count)]))
            made.mayRepeat = false
            return made
        case .whole:
            let content = HTTPBody.Part.file(try opened(), offset: 0, length: machine.size)
            var made: HTTPRequest
            if machine.method == .post {
                let form = MultipartForm(
                    fields: form(for: address),
                    file: (record.options.field, name, type, content))
                made = sending("POST", address, fields("Content-Type", form.contentType), form.body)
            } else {
                made = sending("PUT", address, fields("Content-Type", type), HTTPBody([content]))
            }
            // The upload cannot be continued after a cut, so the server may refuse it before the body is sent.
            made.asksBeforeSending = machine.size > 1 << 20
            made.answering = Double(record.options.answerTimeout)
            // Nobody sends it a second time: two forms are two files.
            (made.mayRepeat, made.needsNewConnection) = (machine.method == .put, machine.method != .put)
            return made
        }
    }

    private func opened() throws(SessionError) -> BodyFile {
        if let file { return file }
        let opened = try SourceFile.open(record.path, as: record.identity)
        file = opened
        return opened
    }

    private func sending(_ method: String, _ address: WebAddress, _ fields: [HTTPField], _ body: HTTPBody)
        -> HTTPRequest
    {
        var request = addressed(method, address, fields)
        request.body = body
        request.rate = record.options.rate
        return request
    }

    /// Adds the caller's headers, user and password, and allows `~/.netrc`, only for the origin of the caller's
    /// address.
    private func addressed(_ method: String, _ address: WebAddress, _ fields: [HTTPField] = []) -> HTTPRequest {
        guard address.origin == origin.origin else {
            var request = HTTPRequest(method, address, fields)
            request.usesNetrc = false
            return request
        }
        let own = record.options.headers.compactMap { HTTPField($0.name, $0.value) }
        return HTTPRequest(method, address.authorized(like: origin), fields + own)
    }

    private func fields(_ name: String, _ value: String) -> [HTTPField] { HTTPField(name, value).map { [$0] } ?? [] }

    private static let version = HTTPField(known: "Tus-Resumable", "1.0.0")

    /// The file name without its folders.
    private var name: String { UploadTask.name(of: record.path) }

    static func name(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

    private var type: String {
        record.options.contentType.isEmpty
            ? MediaType.ofFile(record.path) ?? "application/octet-stream" : record.options.contentType
    }

    private func metadata(for address: WebAddress) -> [(name: String, value: String)] {
        [("filename", name), ("filetype", type)]
            + form(for: address).filter { !["filename", "filetype"].contains($0.name) }
    }

    /// The caller's fields, which may contain a token: only for the origin of the caller's address.
    private func form(for address: WebAddress) -> [(name: String, value: String)] {
        address.origin == origin.origin ? record.options.form.map { ($0.name, $0.value) } : []
    }

    // MARK: Answers

    private func answered(
        _ request: UploadMachine.Request, at address: WebAddress, _ outcome: Result<HTTPResponse, HTTPError>
    ) {
        transfer = nil
        switch outcome {
        case .success(let response):
            switch request {
            case .ask, .offset, .proof: break
            case .create, .send, .whole: answer = response
            }
            take(.answered(UploadTask.answer(response, to: request, at: address, showsWords: !hasSecrets)))
        case .failure(let error):
            switch error.kind {
            case .changed, .unreadable: take(.sourceLost(SessionError(.invalidSource, error.message)))
            case .badAddress: take(.broke(.badParameter(error.message)))
            case .notTrusted: take(.broke(SessionError(.networkFailed, error.message)))
            case .notHTTP: take(.notStored(error.message, counts: !plugin.machine.isOffline))
            case .hostNotFound, .notReachable, .timedOut, .cut, .other:
                take(.cut(error.message, counts: !plugin.machine.isOffline))
            case .cancelled: break
            }
        }
    }

    /// Whether the server knows a secret. It may repeat a secret in any form, so other programs must not see the
    /// server's words. An address that a server has named for an upload is a secret too: with it, any program can
    /// change the upload.
    private var hasSecrets: Bool {
        !origin.secrets.isEmpty || !record.options.headers.isEmpty || !record.options.form.isEmpty
            || machine.uploadAddress != nil || machine.address != record.address || Netrc.isThere
    }

    private static func answer(
        _ response: HTTPResponse, to request: UploadMachine.Request, at address: WebAddress, showsWords: Bool
    ) -> UploadMachine.Answer {
        let fields = response.fields
        var answer = UploadMachine.Answer(response.status)
        answer.retryAfter = response.retryAfter
        if let location = fields["Location"].flatMap(address.resolving), location.isEncrypted || !address.isEncrypted {
            answer.location = location.text
        }
        answer.offset = fields["Upload-Offset"].flatMap { UInt64($0) }
        answer.length = fields[request == .proof ? "Content-Length" : "Upload-Length"].flatMap { UInt64($0) }
        let versions = (fields["Tus-Version"] ?? fields["Tus-Resumable"] ?? "").split(separator: ",")
        let extensions = (fields["Tus-Extension"] ?? "").split(separator: ",")
        answer.speaksTus =
            versions.contains { $0.drop { $0 == " " } == "1.0.0" }
            && extensions.contains { $0.drop { $0 == " " } == "creation" }
        let type = fields["Content-Type"]?.lowercased() ?? ""
        answer.isPage = type.hasPrefix("text/html")
        if showsWords, type.hasPrefix("text/plain") {
            let words = String(decoding: response.body.prefix { $0 != 10 && $0 != 13 }.prefix(200), as: UTF8.self)
            answer.words = String(String.UnicodeScalarView(words.unicodeScalars.filter(isForPeople)))
        }
        return answer
    }

    /// Whether a character is printable and does not change how other characters are shown.
    private static func isForPeople(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }

    // MARK: Removing uploads from the server

    /// Asks the server to remove an upload that is no longer needed.
    private func remove(_ text: String) {
        guard let address = WebAddress(text) else { return }
        plugin.removeAtServer(addressed("DELETE", address, [UploadTask.version]))
    }
}
