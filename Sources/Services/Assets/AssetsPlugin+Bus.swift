import DBus
import FilmRequests
import PluginAPI
import PluginKit
import SessionBus
import Workers

// Implements `org.sessiond1.Assets`.

extension AssetsPlugin {
    func export() {
        connection.objects.export(self, at: ObjectPath.assets, interfaces: [AssetsPlugin.interface])
    }

    private static let interface = Interface<AssetsPlugin>(
        name: BusName.assets, introspection: PluginXML.assets,
        methods: [
            .init("Inspect", "sa{sv}") { assets, call in assets.answer(call) { try assets.inspect(call) } },
            .init("GenerateImages", "sada{sv}") { assets, call in assets.answer(call) { try assets.generate(call) } },
            .init("Thumbnail", "ss") { assets, call in assets.answer(call) { try assets.thumbnail(call) } },
            .init("ExportPresets", "s") { assets, call in assets.answer(call) { try assets.presets(call) } },
            .init("Export", "ssa{sv}") { assets, call in assets.answer(call) { try assets.export(call) } },
            .init("EstimateExport", "sa{sv}") { assets, call in assets.answer(call) { try assets.estimate(call) } },
        ])

    /// Runs the start of a task; if it throws, answers the call with the error.
    private func answer(_ call: Invocation, _ body: () throws -> Void) {
        do {
            try body()
        } catch let failure as Failure {
            call.fail(failure)
        } catch let error as SessionError {
            call.fail(Failure(error))
        } catch {
            call.fail(.failed("\(error)"))
        }
    }

    private func source(_ call: Invocation) throws(Failure) -> Source {
        try source(call.arguments[0].stringValue ?? "", for: call.sender)
    }

    private func inspect(_ call: Invocation) throws {
        let options = try OptionReader(call.arguments[1], known: ["precise"])
        let isPrecise = try options.bool("precise") ?? false
        let source = try source(call)
        let request = WorkerMessage(FilmRequest.Inspect(source.path, isPrecise: isPrecise))
        ask(request, about: source, isLong: isPrecise) { result in
            switch result {
            case .success(let message): call.reply([message.inspection])
            case .failure(let error): call.fail(Failure(error))
            }
        }
    }

    private func generate(_ call: Invocation) throws {
        let times = call.arguments[1].arrayValue?.compactMap(\.doubleValue) ?? []
        let request = try ImageRequest(times, OptionReader(call.arguments[2], known: ImageRequest.options))
        call.reply([.objectPath(try generate(try source(call), request, for: call.sender))])
    }

    private func thumbnail(_ call: Invocation) throws {
        let word = call.arguments[1].stringValue ?? ""
        guard let flavor = ThumbnailFlavor(rawValue: word) else {
            let names = ThumbnailFlavor.allCases.map(\.rawValue).joined(separator: ", ")
            throw SessionError.badParameter("unknown flavor \(quoted(word)); use one of \(names)")
        }
        thumbnail(try source(call), flavor) { result in
            switch result {
            case .success(let path): call.reply([.string(path)])
            case .failure(let failure): call.fail(failure)
            }
        }
    }

    private func presets(_ call: Invocation) throws {
        let source = try source(call)
        ask(WorkerMessage(FilmRequest.Presets(source.path)), about: source) { result in
            switch result {
            case .success(let message): call.reply([.strings((message.list("presets") ?? []).map(\.name))])
            case .failure(let error): call.fail(Failure(error))
            }
        }
    }

    private func export(_ call: Invocation) throws {
        let options = try OptionReader(call.arguments[2], known: ExportRequest.options)
        let request = try ExportRequest(call.arguments[1].stringValue ?? "", options)
        call.reply([.objectPath(try export(try source(call), request, for: call.sender))])
    }

    private func estimate(_ call: Invocation) throws {
        let options = try OptionReader(call.arguments[1], known: ["preset", "file-type", "time-range"])
        let request = try ExportRequest("/", options)
        estimate(try source(call), request) { result in
            switch result {
            case .success((let bytes, let seconds, let confidence)):
                call.reply([.uint64(bytes), .double(seconds), .uint32(confidence)])
            case .failure(let failure): call.fail(failure)
            }
        }
    }
}

extension WorkerMessage {
    /// The answer of `Inspect`, made from the answer of a worker.
    fileprivate var inspection: Value {
        .properties([
            ("duration", .double(number("duration") ?? 0)), ("seekable", .bool(flag("seekable") ?? false)),
            ("live", .bool(flag("live") ?? false)), ("container", .string(text("container") ?? "")),
            ("mime-type", .string(text("mime-type") ?? "")), ("size", .uint64(UInt64(clamping: whole("size") ?? 0))),
            ("bitrate", .uint32(UInt32(clamping: whole("bitrate") ?? 0))),
            ("tags", .properties((list("tags")?.first?.fields ?? [:]).sorted { $0.key < $1.key }.compactMap(Self.tag))),
            ("tracks", .array(of: "a{sv}", (list("tracks") ?? []).map(\.track))),
            (
                "chapters",
                .array(
                    of: "(ds)",
                    (list("chapters") ?? []).map { .structure([.double($0.number("start") ?? 0), .string($0.name)]) })
            ), ("playable", .bool(flag("playable") ?? false)),
            ("complete", .bool(flag("complete") ?? true)),
            ("missing", .strings((list("missing") ?? []).map(\.name))),
        ])
    }

    private static func tag(_ name: String, _ field: Field) -> (String, Value)? {
        switch field {
        case .text(let text): (name, .string(text))
        case .whole(let number): (name, .uint32(UInt32(clamping: number)))
        case .number(let number): (name, .double(number))
        case .flag, .bytes, .list: nil
        }
    }

    private var track: Value {
        func count(_ key: String) -> Value { .uint32(UInt32(clamping: whole(key) ?? 0)) }
        var values: [(String, Value)] = []
        for key in ["type", "codec", "description", "language"] {
            if let text = text(key) { values.append((key, .string(text))) }
        }
        for key in ["bitrate", "width", "height", "rotation", "channels", "sample-rate"] where fields[key] != nil {
            values.append((key, count(key)))
        }
        if fields["rate-number"] != nil {
            values.append(("frame-rate", .structure([count("rate-number"), count("rate-divisor")])))
        }
        if let isStill = flag("still") { values.append(("still", .bool(isStill))) }
        return .properties(values)
    }
}
