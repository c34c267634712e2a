package import DBus
package import PluginAPI
import SessionBus

/// The options of a live stream on the wire.
package struct LiveOptions {
    package var settings: LiveSettings
    /// Of an output of a capture session.
    package private(set) var url = ""
    package var key = ""
    /// The server's name of the microphone; nil: that of the route.
    package var input: String?
    var category = Category.playAndRecord
    package var interruption = LiveInterruption.silence
    package var name = ""
    var desktopEntry = ""

    /// How it is encoded and sent.
    private static let sending = [
        "stream-key", "bitrate", "audio-bitrate", "adaptive", "filter", "gop", "latency", "give-up",
    ]
    private static let known =
        sending + [
            "source", "file", "display", "camera", "microphone", "input", "category", "on-interruption", "size",
            "frame-rate", "record", "overwrite", "name", "desktop-entry",
        ]

    /// Those of `CreateStream`.
    /// - Throws: `BadParameter` that names the option, `InvalidArgs` for a wrong type.
    package init(_ dictionary: Value) throws(Failure) {
        let reader = try OptionReader(dictionary, known: Self.known)
        let file = try reader.string("file")
        let display = try reader.string("display")
        let camera = try reader.string("camera")
        let source = try reader.string("source") ?? (file != nil ? "file" : camera != nil ? "camera" : "test")
        switch source {
        case "file":
            guard let file else { throw Failure(.badParameter("with the source 'file', 'file' names the film")) }
            settings = LiveSettings(.file(try Self.path(file, "file")))
        case "screen": settings = LiveSettings(.screen(display: display))
        case "camera": settings = LiveSettings(.camera(camera))
        case "test": settings = LiveSettings(.test)
        case let other:
            throw Failure(.badParameter("'source' must be file, screen, camera or test, not \(quoted(other))"))
        }
        guard file == nil || source == "file", display == nil || source == "screen", camera == nil || source == "camera"
        else {
            throw Failure(
                .badParameter(
                    "'file', 'display' and 'camera' belong to the sources file, screen and camera, not to '\(source)'"))
        }
        settings.hasMicrophone = try reader.bool("microphone") ?? false
        input = try reader.string("input")
        if let word = try reader.string("category") {
            guard let known = Category(rawValue: word), [.playAndRecord, .record].contains(known) else {
                throw Failure(.badParameter("'category' must be play-and-record or record, not \(quoted(word))"))
            }
            category = known
        }
        if let word = try reader.string("on-interruption") {
            guard let known = LiveInterruption(rawValue: word) else {
                throw Failure(.badParameter("'on-interruption' must be silence or stop, not \(quoted(word))"))
            }
            interruption = known
        }
        try readSending(reader)
        settings.frameRate = try Self.number(reader, "frame-rate", 1...60)
        settings.size = try Self.size(reader)
        settings.recording = try reader.string("record").map { (text) throws(Failure) in try Self.path(text, "record") }
        settings.overwrites = try reader.bool("overwrite") ?? false
        name = try reader.string("name") ?? ""
        desktopEntry = try reader.string("desktop-entry") ?? ""
    }

    /// Those of an output `live` of a capture session, which has the pictures and the sound.
    package init(output dictionary: Value) throws(Failure) {
        let reader = try OptionReader(dictionary, known: ["url"] + Self.sending)
        settings = LiveSettings(.camera(nil))
        url = try reader.string("url") ?? ""
        try readSending(reader)
    }

    package init(_ settings: LiveSettings) { self.settings = settings }

    private mutating func readSending(_ reader: OptionReader) throws(Failure) {
        key = try reader.string("stream-key") ?? ""
        settings.bitrate = try Self.number(reader, "bitrate", 64_000...100_000_000) ?? settings.bitrate
        settings.audioBitrate = try Self.number(reader, "audio-bitrate", 32_000...320_000) ?? settings.audioBitrate
        settings.isAdaptive = try reader.bool("adaptive") ?? true
        settings.keyFrameInterval = try Self.seconds(reader, "gop", 0.5...10) ?? settings.keyFrameInterval
        settings.latency = try Self.number(reader, "latency", 0...60_000) ?? settings.latency
        settings.giveUp = try Self.seconds(reader, "give-up", 1...86_400) ?? settings.giveUp
        settings.filters = try Self.filters(reader)
    }

    private static func filters(_ reader: OptionReader) throws(Failure) -> [LiveFilter] {
        let words = try reader.strings("filter") ?? []
        guard words.count <= 16 else {
            throw Failure(.badParameter("a stream has at most 16 filters, not \(words.count)"))
        }
        do throws(SessionError) {
            return try words.map { (word) throws(SessionError) in try LiveFilter(word) }
        } catch {
            throw Failure(error)
        }
    }

    private static func path(_ text: String, _ option: String) throws(Failure) -> String {
        guard text.hasPrefix("/"), !text.utf8.contains(0), text.utf8.count < 4_096 else {
            throw Failure(.badParameter("'\(option)' must be an absolute path, not \(quoted(text))"))
        }
        return text
    }

    private static func number(
        _ reader: OptionReader, _ option: String, _ range: ClosedRange<UInt32>
    ) throws(Failure) -> Int? {
        guard let number = try reader.uint32(option) else { return nil }
        guard range.contains(number) else {
            throw Failure(
                .badParameter("'\(option)' must be from \(range.lowerBound) to \(range.upperBound), not \(number)"))
        }
        return Int(number)
    }

    private static func seconds(
        _ reader: OptionReader, _ option: String, _ range: ClosedRange<Double>
    ) throws(Failure) -> Double? {
        guard let number = try reader.double(option) else { return nil }
        guard range.contains(number) else {
            throw Failure(
                .badParameter(
                    "'\(option)' must be from \(range.lowerBound) to \(range.upperBound) seconds, not \(number)"))
        }
        return number
    }

    private static func size(_ reader: OptionReader) throws(Failure) -> PictureSize? {
        guard let (width, height) = try reader.uint32s("size") else { return nil }
        let isPossible = [width, height].allSatisfy { (16...4_096).contains($0) && $0 % 2 == 0 }
        guard isPossible else {
            throw Failure(.badParameter("'size' must be two even numbers from 16 to 4096, not \(width) × \(height)"))
        }
        return PictureSize(width: Int(width), height: Int(height))
    }
}
