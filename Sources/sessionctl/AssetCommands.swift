import ArgumentParser
import DBus
import Glibc
import MediaValues
import PluginAPI
import SessionBus

/// `sessionctl inspect`.
struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Show the properties of a film or a sound.")

    @Argument(help: "The file.", completion: .file())
    var file: String
    @Flag(help: "Compute the exact duration from the times of all packets; reads the whole file.")
    var precise = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try AssetPlace(file, Service(bus))
        let options: [(String, Value)] = precise ? [("precise", .bool(true))] : []
        let answer = try place.ask("Inspect", [.string(place.uri), .properties(options)]).first ?? .properties([])
        let facts = answer.asProperties ?? [:]
        if output.json {
            return Output.line(JSON.object(.inspect, facts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
        }
        var table = Table()
        func add(_ title: String, _ text: String) {
            if !text.isEmpty { table.add([Table.Cell(title, .dim), Table.Cell(text)]) }
        }
        add("duration", Self.duration(facts["duration"]?.doubleValue ?? 0))
        add("container", (facts["container"]?.stringValue ?? "").escaped)
        add("type", (facts["mime-type"]?.stringValue ?? "").escaped)
        add("size", Self.size(facts["size"]?.uint64Value ?? 0))
        for (index, track) in (facts["tracks"]?.arrayValue ?? []).compactMap(\.asProperties).enumerated() {
            add("track \(index + 1)", Self.track(track).escaped)
        }
        for chapter in (facts["chapters"]?.arrayValue ?? []).compactMap(\.structureValue) where chapter.count == 2 {
            let title = (chapter[1].stringValue ?? "").escaped
            add("chapter", Wording.clock(chapter[0].doubleValue ?? 0) + (title.isEmpty ? "" : "  \(title)"))
        }
        for (name, value) in (facts["tags"]?.asProperties ?? [:]).sorted(by: { $0.key < $1.key })
        where !Self.technicalTags.contains(name) {
            add(name.escaped, (value.stringValue ?? JSON.text(value)).escaped)
        }
        if facts["complete"]?.boolValue == false {
            table.add([Table.Cell("end", .dim), Table.Cell("missing: the file was cut off", .warning)])
        }
        for missing in facts["missing"]?.stringsValue ?? [] {
            table.add([Table.Cell("missing", .dim), Table.Cell(missing.escaped, .warning)])
        }
        Output.write(table)
    }

    private static func duration(_ seconds: Double) -> String {
        seconds > 0 ? "\(Wording.clock(seconds)) (\(String((seconds * 1000).rounded() / 1000)) s)" : "unknown"
    }

    static func size(_ bytes: UInt64) -> String {
        switch bytes {
        case 0..<1_000: "\(bytes) B"
        case 1_000..<1_000_000: Wording.tenths(Double(bytes) / 1e3) + " kB"
        case 1_000_000..<1_000_000_000: Wording.tenths(Double(bytes) / 1e6) + " MB"
        default: Wording.tenths(Double(bytes) / 1e9) + " GB"
        }
    }

    /// Tags for programs, and those that repeat what the lines of the file and of its tracks say. `--json` has all.
    private static let technicalTags: Set = [
        "application-name", "audio-codec", "bitrate", "channel-mode", "codec", "container-format",
        "container-specific-track-id", "encoder", "encoder-version", "extended-comment", "has-crc", "language-code",
        "layer",
        "maximum-bitrate", "minimum-bitrate", "mode", "nominal-bitrate", "private-data", "serial", "subtitle-codec",
        "video-codec",
    ]

    private static func track(_ track: [String: Value]) -> String {
        func count(_ key: String) -> UInt32 { track[key]?.uint32Value ?? 0 }
        var parts = [track["type"]?.stringValue ?? "", track["description"]?.stringValue ?? ""]
        if parts[1].isEmpty { parts[1] = track["codec"]?.stringValue ?? "" }
        if count("width") > 0 { parts.append("\(count("width")) × \(count("height"))") }
        if let rate = track["frame-rate"]?.structureValue?.compactMap(\.uint32Value), rate.count == 2, rate[0] > 0 {
            parts.append(Wording.tenths(Double(rate[0]) / Double(max(1, rate[1]))) + " per second")
        }
        if count("rotation") > 0 { parts.append("turned by \(count("rotation"))°") }
        if track["still"]?.boolValue == true { parts.append("cover") }
        if count("channels") > 0 { parts.append("\(count("channels")) channels, \(count("sample-rate")) Hz") }
        if count("bitrate") > 0 { parts.append("\(count("bitrate") / 1000) kbit/s") }
        if let language = track["language"]?.stringValue { parts.append(language) }
        return parts.filter { !$0.isEmpty }.joined(separator: ", ")
    }
}

/// `sessionctl thumbnail`.
struct ThumbnailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnail", abstract: "Take pictures of a film.",
        discussion: """
            Without --at and --every: prints the path of the thumbnail in the cache that programs share. Otherwise each \
            picture is a file, and a line shows the requested time, the time of the picture, and its path.
            """)

    @Argument(help: "The film.", completion: .file())
    var file: String
    @Option(help: "Times in seconds, or in percent of the film such as 50%, separated by commas.")
    var at: String?
    @Option(help: "The time between two pictures, in seconds.")
    var every: Double?
    @Flag(help: "The picture at exactly that time, not the nearest key frame.")
    var exact = false
    @Option(help: "The longer side in pixels, at most; the pictures are never made larger.")
    var size: UInt32?
    @Option(
        name: [.short, .customLong("output")],
        help: "The names of the files (default: \(NumberedName.standard)); %d or %03d is the number of the picture.")
    var output: String?
    @Option(help: "The size of the shared thumbnail.")
    var flavor = ThumbnailFlavor.large
    @Flag(help: "Print JSON, one line for each picture.")
    var json = false
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if at != nil, every != nil { throw ValidationError("give either --at or --every") }
        if let every, !(every > 0) { throw ValidationError("--every needs a number of seconds above 0") }
        if let size, size == 0 || size > 16_384 { throw ValidationError("--size needs 1 to 16384 pixels") }
        if at == nil, every == nil, size != nil || exact || output != nil {
            throw ValidationError("--size, --exact and --output need --at or --every; see also --flavor")
        }
        let times = try at.map(Self.words) ?? []
        if at != nil, times.isEmpty { throw ValidationError("--at needs a time, in seconds or percent") }
        if let output {
            // How many pictures --every takes is not known yet; only the name counts here, and not its folder.
            guard let names = NumberedName("/" + output), names.isNumbered || times.count <= 1 else {
                throw ValidationError(Self.numberNeeded)
            }
        }
    }

    private static let numberNeeded =
        "--output needs a %d for the number of the picture, such as '\(NumberedName.standard)'"

    func run() throws {
        let place = try AssetPlace(file, Service(bus))
        guard at != nil || every != nil else {
            let answer = try place.ask("Thumbnail", [.string(place.uri), .string(flavor.rawValue)])
            let path = answer.first?.stringValue ?? ""
            return Output.line(json ? JSON.object(.thumbnail, [("path", .string(path))]) : path.escaped)
        }
        let times = try self.times(place)
        guard let names = NumberedName(try FileArgument.path(output ?? NumberedName.standard)),
            names.isNumbered || times.count == 1
        else {
            throw Complaint.usage(Self.numberNeeded)
        }
        var options: [(String, Value)] = [
            ("mode", .string(exact ? "exact" : "nearest-key-frame")), ("format", .string(names.format)),
            ("folder", .string(names.folder)),
        ]
        if let size { options.append(("maximum-size", .structure([.uint32(size), .uint32(size)]))) }
        let job = FollowedJob(place)
        var count = 0
        var failures = 0
        // The plugin writes to names of its own, which are changed afterwards.
        job.wording = { names.withTarget($0) }
        job.onImage = { requested, actual, path, error in
            count += 1
            let name = names.path(count)
            if error.isEmpty, rename(path, name) != 0 {
                Output.complain("\(name.escaped): \(String(cString: strerror(errno)))")
                failures += 1
                return
            }
            if !error.isEmpty { failures += 1 }
            tell(requested, actual, error.isEmpty ? name : "", error)
        }
        let code = try job.run(
            "GenerateImages",
            [.string(place.uri), .array(of: "d", times.map(Value.double)), .properties(options)])
        Output.end(code != 0 ? code : failures > 0 ? 1 : 0, keeping: job)
    }

    private func tell(_ requested: Double, _ actual: Double, _ path: String, _ error: String) {
        if json {
            return Output.line(
                JSON.object(
                    .image,
                    [
                        ("requested", .double(requested)), ("actual", .double(actual)), ("path", .string(path)),
                        ("error", .string(error)),
                    ]))
        }
        Output.line(
            error.isEmpty ? "\(requested) \(actual) \(path.escaped)" : "\(requested) – \(Self.reason(error))")
    }

    /// Why there is no picture, from the name of the error.
    private static func reason(_ error: String) -> String {
        switch SessionError.Code(rawValue: error.split(separator: ".").last.map(String.init) ?? "") {
        case .noImageAtTime: "the film has no picture at that time"
        case .decodeFailed: "the film is damaged there, or takes too long to read"
        case .decoderNotFound: "no installed plugin decodes it"
        case .cancelled: "cancelled"
        case .diskFull: "the disk is full"
        case _: "no picture could be made"
        }
    }

    private func times(_ place: AssetPlace) throws -> [Double] {
        var length: Double?
        func duration() throws -> Double {
            if let length { return length }
            let facts = try place.ask("Inspect", [.string(place.uri), .properties([])]).first?.asProperties ?? [:]
            guard let seconds = facts["duration"]?.doubleValue, seconds > 0 else {
                throw Complaint.refused("\(file.escaped): its duration is not known; give --at in seconds")
            }
            length = seconds
            return seconds
        }
        if let every {
            let count = Int(min(10_000, try duration() / every))
            return (0...max(0, count)).map { Double($0) * every }.filter { $0 < length ?? 0 }
        }
        return try Self.words(at ?? "").map { $0.isShare ? $0.number / 100 * (try duration()) : $0.number }
    }

    /// The words of `--at`: seconds, or shares of the film in percent.
    private static func words(_ text: String) throws -> [(number: Double, isShare: Bool)] {
        try text.split(separator: ",").map { word in
            let isShare = word.hasSuffix("%")
            guard let number = Double(isShare ? word.dropLast() : word), number >= 0, number < 1e9 else {
                throw ValidationError("--at needs numbers of seconds or percent, not '\(String(word).escaped)'")
            }
            return (number, isShare)
        }
    }
}

/// The names of several files: a path with `%d` or `%03d` in its last part.
private struct NumberedName {
    static let standard = "shot-%03d.jpg"

    let folder: String
    let isNumbered: Bool
    private let head: String
    private let tail: String
    private let width: Int

    init?(_ path: String) {
        guard let slash = path.lastIndex(of: "/") else { return nil }
        folder = slash == path.startIndex ? "/" : String(path[..<slash])
        let name = path[path.index(after: slash)...]
        guard !name.isEmpty else { return nil }
        guard let sign = name.firstIndex(of: "%") else {
            (isNumbered, head, tail, width) = (false, path, "", 0)
            return
        }
        let digits = name[name.index(after: sign)...].prefix { $0.isASCII && $0.isNumber }
        let rest = name[name.index(after: sign)...].dropFirst(digits.count)
        guard rest.first == "d", digits.count <= 2 else { return nil }
        (isNumbered, width) = (true, Int(digits) ?? 0)
        head = String(path[..<sign])
        tail = String(rest.dropFirst())
    }

    func path(_ number: Int) -> String {
        guard isNumbered else { return head }
        let text = String(number)
        return head + String(repeating: "0", count: max(0, width - text.count)) + text + tail
    }

    /// A message about a file of the plugin, with the name that was asked for.
    ///
    /// The plugin's names end with the number of the picture, such as `-00001.jpg`.
    func withTarget(_ message: String) -> String {
        let start = "'\((folder == "/" ? "" : folder).escaped)/sessiond-"
        guard message.hasPrefix(start) else { return message }
        let rest = message.dropFirst(start.count)
        guard let end = rest.firstIndex(of: "'"),
            let number = rest[..<end].prefix(while: { $0 != "." }).split(separator: "-").last.flatMap({ Int($0) })
        else { return message }
        return "'\(path(number).escaped)" + rest[end...]
    }

    /// The format of the picture, from the extension.
    var format: String {
        let ending = (isNumbered ? tail : head).split(separator: ".").last?.lowercased() ?? ""
        return ending == "png" ? "png" : ending == "webp" ? "webp" : "jpeg"
    }
}

/// `sessionctl export`.
struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Export a film or a sound to a new file.",
        discussion: "The new file appears when it is complete. Ctrl-C cancels the export and leaves no file.")

    @Argument(help: "The film or sound.", completion: .file())
    var file: String
    @Argument(help: "The new file; its extension sets the type: mp4, mov, m4a or webm.", completion: .file())
    var target: String
    @Option(help: "The preset; default: medium.")
    var preset: ExportPreset?
    @Option(help: "The type of the new file; default: the one of its extension.")
    var type: ExportFileType?
    @Flag(help: "Put the index first, so that the film can play while it is downloaded.")
    var network = false
    @Option(help: "Start at this time, in seconds.")
    var from: Double?
    @Option(help: "End at this time, in seconds.")
    var to: Double?
    @Flag(help: "Replace an existing file.")
    var overwrite = false
    @Flag(help: "Leave out tags with the location of the recording.")
    var stripLocation = false
    @Flag(help: "Only estimate the size of the new file and the duration of the export.")
    var estimate = false
    @Flag(help: "Return at once; 'sessionctl jobs' shows the progress.")
    var detach = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if type == nil { try ExportName.check(target) }
        if let from, !(from >= 0) { throw ValidationError("--from needs a number of seconds from 0 on") }
        if let to, !(to > from ?? 0) { throw ValidationError("--to needs a later time than --from") }
    }

    func run() throws {
        let path = try FileArgument.path(target)
        let place = try AssetPlace(file, Service(bus))
        if estimate { return try tellEstimate(place) }
        let arguments: [Value] = [.string(place.uri), .string(path), .properties(options)]
        if detach {
            let job = try place.ask("Export", arguments).first?.objectPathValue ?? ""
            return Output.line(
                output.json ? JSON.object(.export, [("Job", .objectPath(job))]) : JobInfo.label(of: job).escaped)
        }
        let job = FollowedJob(place)
        var line = ProgressLine()
        line.title = target.escaped
        let isDrawn = Terminal.standard.canRedraw && !output.json && tcgetpgrp(STDOUT_FILENO) == getpgrp()
        job.onChanged = {
            guard isDrawn else { return }
            line.show(job.properties)
            line.draw()
            ProgressLine.isDrawn = true
        }
        let code = try job.run("Export", arguments)
        ProgressLine.clearIfDrawn()
        if output.json {
            Output.line(JSON.object(.export, job.properties.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
        } else if code == 0 {
            var status = stat()
            let size = stat(path, &status) == 0 ? UInt64(clamping: status.st_size) : 0
            Output.line("\(target.escaped): \(InspectCommand.size(size))")
            let leftOut = job.properties["LeftOut"]?.stringsValue ?? []
            if !leftOut.isEmpty {
                Output.complain("\(target.escaped) does not have: \(leftOut.map(\.escaped).joined(separator: "; "))")
            }
        }
        Output.end(code, keeping: job)
    }

    private var options: [(String, Value)] {
        var options: [(String, Value)] = []
        if let preset { options.append(("preset", .string(preset.rawValue))) }
        if let type { options.append(("file-type", .string(type.rawValue))) }
        if network { options.append(("optimize-for-network", .bool(true))) }
        if from != nil || to != nil {
            options.append(("time-range", .structure([.double(from ?? 0), .double(to ?? 0)])))
        }
        if overwrite { options.append(("overwrite", .bool(true))) }
        if stripLocation { options.append(("strip-location", .bool(true))) }
        if detach { options.append(("detached", .bool(true))) }
        return options
    }

    private func tellEstimate(_ place: AssetPlace) throws {
        var known = options.filter { ["preset", "file-type", "time-range"].contains($0.0) }
        if type == nil, let type = ExportFileType(path: target) {
            known.append(("file-type", .string(type.rawValue)))
        }
        let answer = try place.ask("EstimateExport", [.string(place.uri), .properties(known)])
        guard answer.count == 3, let bytes = answer[0].uint64Value, let seconds = answer[1].doubleValue,
            let confidence = answer[2].uint32Value
        else { throw Complaint.refused("the plugin gave no estimate") }
        if output.json {
            return Output.line(
                JSON.object(.estimate, [("bytes", answer[0]), ("seconds", answer[1]), ("confidence", answer[2])]))
        }
        let time = seconds < 0 ? "" : ", \(Wording.clock(seconds))"
        Output.line("about \(InspectCommand.size(bytes))\(time) (\(confidence) % sure)")
    }
}

extension ProgressLine {
    // SAFETY: a command has one thread.
    nonisolated(unsafe) static var isDrawn = false

    static func clearIfDrawn() {
        if isDrawn { clear() }
        isDrawn = false
    }

    /// Shows the state of a job that counts milliseconds of media.
    mutating func show(_ job: [String: Value]) {
        state = (job["State"]?.stringValue ?? "").escaped
        let progress = job["Progress"]?.doubleValue ?? -1
        let total = Double(job["Total"]?.uint64Value ?? 0) / 1000
        duration = total > 0 ? total : nil
        position = progress >= 0 && total > 0 ? progress * total : Double(job["Done"]?.uint64Value ?? 0) / 1000
        let left = job["Remaining"]?.doubleValue ?? -1
        note = progress >= 0 ? "\(Wording.whole((progress * 100).rounded(.down), 0...100)) %" : ""
        if left >= 0 { note += ", \(Wording.clock(left.rounded(.up))) left" }
    }
}
