public import ArgumentParser
import DBus
import EventLoop
import Glibc
import MediaValues
import PluginAPI
public import SessionKit

extension Upload.Method: ExpressibleByArgument {}

/// `sessionctl upload`.
struct UploadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Send a file to a web server, and wait for the end of the upload.",
        discussion: """
            The upload continues after a cut, and after a restart of the plugin or of the machine. Ctrl-C cancels it; with \
            --detach it runs in the background, see 'jobs' and 'cancel'. On a terminal: space pauses and resumes.
            """)

    @Argument(help: "The file.", completion: .file())
    var file: String
    @Argument(help: "The address, which begins with http:// or https://.")
    var url: String
    @Option(
        help:
            "After a cut, tus continues; put and post start again. Default: tus if the server supports it, otherwise put."
    )
    var method: Upload.Method?
    @Flag(help: "The same as --method tus.")
    var tus = false
    @Option(
        help: ArgumentHelp(
            "A header as 'Name: value', or @FILE with one header on each line; may be repeated.", valueName: "header"))
    var header: [String] = []
    @Option(
        help: ArgumentHelp(
            "Another field of the form (post), or metadata (tus), as NAME=VALUE; may be repeated.", valueName: "field"))
    var field: [String] = []
    @Option(help: "The name of the form field that contains the file; default: file.")
    var fileField: String?
    @Option(help: "The type of the content; default: the one of the file's extension.")
    var contentType: String?
    @Option(help: "The largest rate in bytes per second, such as 500k or 2M.")
    var rate: Size?
    @Option(help: "The largest piece in one request of tus, in bytes; default: 8M.")
    var chunkSize: Size?
    @Option(help: "How often it tries again without progress; 0: without limit; default: 5.")
    var tries: UInt32?
    @Option(
        help: ArgumentHelp(
            "The longest time for the answer after the last byte of a file was sent by put or post; default: 600.",
            valueName: "seconds"))
    var answerTimeout: UInt32?
    @Flag(help: "Also send while the network is metered.")
    var metered = false
    @Flag(help: "Send a checksum with each request of tus.")
    var checksum = false
    @Flag(help: "Delete the file after the upload.")
    var delete = false
    @Flag(help: "Do not wait: print the job and exit.")
    var detach = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    /// A number of bytes, with a unit of 1024.
    struct Size: ExpressibleByArgument {
        let bytes: UInt64

        init?(argument: String) {
            let units: [Character: UInt64] = ["k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
            let unit = argument.last.flatMap { units[$0] }
            guard let number = UInt64(unit == nil ? argument : String(argument.dropLast())), number > 0,
                case let (bytes, isTooMuch) = number.multipliedReportingOverflow(by: unit ?? 1), !isTooMuch
            else { return nil }
            self.bytes = bytes
        }
    }

    func validate() throws {
        guard ["http://", "https://"].contains(where: { url.lowercased().hasPrefix($0) && url.count > $0.count }) else {
            throw ValidationError("'\(url.escaped)' is no address: it must begin with http:// or https://")
        }
        if tus, let method, method != .tus { throw ValidationError("--tus and --method \(method.rawValue) contradict") }
        if let answerTimeout, !(1...86_400 ~= answerTimeout) {
            throw ValidationError("--answer-timeout needs 1 to 86400 seconds")
        }
        if checksum, !tus, method != .tus { throw ValidationError("--checksum needs --tus") }
    }

    func run() throws {
        let options = try options()
        let service = try Service(bus)
        let path = try FileArgument.path(file)
        UploadRun(path, to: url, options, isDetached: detach, asJSON: output.json, service).run()
    }

    private func options() throws -> Upload.Options {
        var options = Upload.Options()
        options.method = tus ? .tus : method ?? .auto
        for header in try header.flatMap(HeaderArgument.lines).map(HeaderArgument.pair) {
            options.headers[header.name] = header.value
        }
        for text in field {
            guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
                throw Complaint.usage("'\(text.escaped)': a --field must be NAME=VALUE")
            }
            options.form[String(text[..<sign])] = String(text[text.index(after: sign)...])
        }
        options.field = fileField
        options.contentType = contentType
        options.rate = rate?.bytes
        options.chunkSize = chunkSize?.bytes
        options.tries = tries
        options.answerTimeout = answerTimeout
        options.allowsMeteredNetwork = metered
        options.hasChecksum = checksum
        options.deletesWhenDone = delete
        return options
    }
}

/// One upload on the command line.
final class UploadRun {
    private static let help = "space pause · q cancel"

    private let service: Service
    private let path: String
    private let url: String
    private let options: Upload.Options
    private let isDetached: Bool
    private let asJSON: Bool
    private let isInteractive: Bool
    private var line = ProgressLine()
    private var isDrawing = false
    private var upload: UploadClient?
    private var keyboard: Keyboard?
    private var signals: [SignalWatch] = []
    private var lastMessage = ""
    private var code: Int32 = 0

    init(
        _ path: String, to url: String, _ options: Upload.Options, isDetached: Bool, asJSON: Bool, _ service: Service
    ) {
        (self.path, self.url, self.options, self.service) = (path, url, options, service)
        (self.isDetached, self.asJSON) = (isDetached, asJSON)
        isInteractive = !asJSON && Terminal.standard.canRedraw && tcgetpgrp(STDOUT_FILENO) == getpgrp()
        line.title = path.split(separator: "/").last.map { String($0).escaped } ?? path.escaped
    }

    /// Runs until the upload has ended; never returns.
    func run() -> Never {
        if isInteractive, !isDetached { keyboard = Keyboard(service.loop) { [unowned self] in pressed($0) } }
        signals = [SIGINT, SIGTERM, SIGQUIT].map { number in
            service.loop.watch(signal: number) { [unowned self] in interrupted(by: number) }
        }
        // The terminal was closed; the upload continues.
        signals.append(service.loop.watch(signal: SIGHUP) { [unowned self] in service.loop.quit(128 + SIGHUP) })
        signals.append(service.loop.watch(signal: SIGWINCH) { [unowned self] in draw() })
        service.connection.onDisconnect = { [unowned self] in
            fail(Complaint.unreachable("the bus connection was lost; the upload continues if its plugin still runs"))
        }
        upload = UploadClient(path, to: url, options: options, on: service.connection) { [unowned self] in heard($0) }
        let code = service.loop.run()
        finishScreen()
        RawMode.restore()
        Output.end(code, keeping: self)
    }

    // MARK: Events

    private func heard(_ event: UploadClient.Event) {
        switch event {
        case .began(let job): began(job)
        case .changed(let progress): changed(progress)
        case .interrupted: if !asJSON { note("the plugin for uploads ended; it is started again") }
        case .ended(let result): ended(result)
        }
    }

    private func began(_ job: String) {
        guard !isDetached else {
            let label = job.split(separator: "/").suffix(3).filter { $0 != "job" }.joined(separator: "/")
            let text = "uploading \(line.title) as job \(label)"
            Output.line(asJSON ? JSON.object(.upload, [("job", .objectPath(job))]) : text)
            return service.loop.quit(0)
        }
        guard isInteractive, !isDrawing else { return }
        if keyboard != nil { Output.line(Terminal.standard.styled(Self.help, .dim)) }
        isDrawing = true
        draw()
    }

    private func changed(_ progress: Upload.Progress) {
        line.state = progress.state.rawValue
        line.style = progress.state == .running ? .good : .warning
        line.position = Double(progress.completedBytes)
        line.duration = Double(max(1, progress.totalBytes))
        line.figures = "\(Wording.bytes(progress.completedBytes)) of \(Wording.bytes(progress.totalBytes))"
        line.remark = progress.state == .running ? "" : Wording.forPeople(progress.message).escaped
        line.note = progress.state == .running ? Self.pace(progress) : ""
        if !progress.message.isEmpty, !progress.state.isEnd, progress.message != lastMessage, !isDrawing, !asJSON {
            Output.complain(progress.message.escaped)
        }
        lastMessage = progress.message
        draw()
    }

    private static func pace(_ progress: Upload.Progress) -> String {
        guard progress.bytesPerSecond > 0 else { return "" }
        let speed = Wording.bytes(UInt64(min(progress.bytesPerSecond, 1e18))) + "/s"
        guard let left = progress.estimatedTimeRemaining else { return speed }
        return "\(speed), \(Wording.clock(left.rounded(.up))) left"
    }

    private func ended(_ result: Result<Upload.Response, SessionError>) {
        finishScreen()
        guard let upload else { return service.loop.quit(1) }
        let progress = upload.progress
        switch result {
        case .success(let response):
            if asJSON {
                say(
                    "finished", response.status, progress,
                    [
                        ("location", .string(response.location)),
                        ("body", .string(String(decoding: response.body, as: UTF8.self))),
                    ])
            } else {
                Output.line(
                    "\(line.title)  \(Wording.bytes(progress.totalBytes))  \(FileURI.shown(response.location).escaped)"
                )
            }
            service.loop.quit(code)
        case .failure(let error):
            if asJSON {
                say(
                    error.code == .cancelled ? "cancelled" : "failed", 0, progress,
                    [("error", .string(error.code.rawValue)), ("message", .string(error.message))])
            }
            if error.code == .cancelled {
                if !asJSON { Output.complain("cancelled") }
                return service.loop.quit(code == 0 ? 1 : code)
            }
            fail(Complaint.refused(error.reason.escaped))
        }
    }

    private func say(_ state: String, _ status: Int, _ progress: Upload.Progress, _ more: [(String, Value)]) {
        let job = upload?.job ?? "/"
        Output.line(
            JSON.object(
                .upload,
                [
                    ("job", .objectPath(job)), ("state", .string(state)), ("done", .uint64(progress.completedBytes)),
                    ("total", .uint64(progress.totalBytes)), ("status", .uint32(UInt32(clamping: status))),
                ] + more))
    }

    private func fail(_ complaint: Complaint) {
        finishScreen()
        Output.complain(complaint.message)
        service.loop.quit(complaint.code)
    }

    // MARK: Keys and signals

    private func pressed(_ key: Keyboard.Key) {
        switch key {
        case .space: if upload?.progress.state == .paused { upload?.resume() } else { upload?.pause() }
        case .letter("q"): interrupted(by: SIGINT)
        case .letter, .left, .right, .up, .down, .editing: break
        }
    }

    private func interrupted(by signal: Int32) {
        // At a second signal, the command ends even if the plugin does not answer.
        guard code == 0, upload?.job != nil else { return service.loop.quit(128 + signal) }
        code = 128 + signal
        upload?.cancel()
    }

    // MARK: The screen

    private func note(_ text: String) {
        if isDrawing { ProgressLine.clear() }
        Output.complain(text)
        draw()
    }

    private func draw() { if isDrawing { line.draw() } }

    private func finishScreen() {
        guard isDrawing else { return }
        isDrawing = false
        ProgressLine.clear()
    }
}
