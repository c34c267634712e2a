import CDBus
import DBus
import FileFormats
import PluginAPI
import SessionBus

/// All decoders of bytes from outside. Each must accept any bytes without a trap and keep its documented guarantees.
public enum Decoder: String, CaseIterable, Sendable {
    /// The bytes are a D-Bus message. A valid one is decoded, encoded and decoded again.
    case message
    /// The bytes choose a dictionary of options. It is encoded, decoded, and accepted or refused.
    case options
    /// The bytes are a settings file.
    case settings
    /// The bytes are a plugin's manifest.
    case manifest
    /// The bytes are a state file or one record of it. The rules continue from this state.
    case state
    /// The bytes are a scenario, which is run.
    case scenario
    /// The bytes are an MP4 file, of which the shape is read.
    case index

    /// Traps if the decoder breaks a guarantee. It may always refuse the bytes.
    public func decode(_ bytes: [UInt8]) {
        switch self {
        case .message: Self.message(bytes)
        case .options: Self.options(bytes)
        case .settings: Self.settings(bytes)
        case .manifest: Self.manifest(bytes)
        case .state: Self.state(bytes)
        case .scenario: Self.scenario(bytes)
        case .index: Self.index(bytes)
        }
    }

    private static func message(_ bytes: [UInt8]) {
        guard let message = demarshal(bytes) else { return }
        guard let values = try? message.arguments() else { return }
        understand(values)
        guard let copy = carrier(values) else { preconditionFailure("the decoded message cannot be encoded") }
        precondition(same(try? copy.arguments(), values), "a message changes when it is encoded and decoded")
    }

    private static func options(_ bytes: [UInt8]) {
        var dice = Dice(bytes[...])
        let values = [dice.value(of: "s"), dice.value(of: "a{sv}", depth: 5)]
        guard let message = carrier(values), let sent = marshal(message), let received = demarshal(sent) else { return }
        guard let read = try? received.arguments() else { preconditionFailure("our own message is invalid") }
        precondition(read.map(\.signature) == ["s", "a{sv}"])
        precondition(same(read, values), "a value changes when it is encoded and decoded")
        understand(read)
    }

    /// Interprets the values as the exported objects interpret the arguments of a call.
    private static func understand(_ values: [Value]) {
        for value in values {
            _ = value.route
            _ = value.ports
            _ = value.unwrapped.asProperties?.mapValues(\.port)
            _ = ObjectPath.sessionID(value.objectPathValue ?? "")
        }
        guard let options = values.last else { return }
        let name = values.first?.stringValue ?? ""
        if let request = try? SessionRequest(name, options) {
            precondition(request.name == name)
            precondition(
                (try? Configuration(
                    category: request.configuration.category.rawValue, mode: request.configuration.mode.rawValue,
                    options: [])) != nil || request.configuration.mode != .default)
        }
        if let reader = try? OptionReader(options, known: ["notify-others", "sample-rate"]) {
            _ = try? reader.bool("notify-others")
            _ = try? reader.double("sample-rate")
            _ = try? reader.strings("notify-others")
        }
    }

    private static func settings(_ bytes: [UInt8]) {
        if let file = try? KeyFile(bytes: bytes, file: "fuzz") {
            precondition(Set(file.sections.map(\.name)).count == file.sections.count, "a section occurs twice")
        }
        var settings = Settings()
        do throws(KeyFileError) {
            try settings.merge(bytes: bytes, file: "fuzz")
        } catch {
            precondition(settings == Settings(), "a refused file changes the settings")
            precondition(error.description.hasPrefix("fuzz:"), "an error does not name its file")
            return
        }
        precondition(settings.interruption.grace.isFinite && settings.interruption.grace >= 0)
        precondition((-96...0).contains(settings.ducking.gain))
        precondition((1...65_536).contains(settings.limits.sessions))
    }

    private static func manifest(_ bytes: [UInt8]) {
        guard let manifest = try? PluginManifest(bytes: bytes, file: "fuzz.plugin") else { return }
        precondition(!manifest.id.isEmpty && manifest.id.utf8.count <= 128)
        precondition(!manifest.exec.isEmpty && !manifest.exec[0].isEmpty, "a plugin without a program")
        _ = manifest.opens(scheme: "file", mimeType: "audio/ogg")
    }

    private static func index(_ bytes: [UInt8]) {
        func read(_ place: Int, _ count: Int) -> [UInt8] {
            precondition(place >= 0 && count >= 0, "it reads before the begin of the file")
            return place < bytes.count ? Array(bytes[place...].prefix(count)) : []
        }
        _ = MovieIndex.patch(
            size: bytes.count, chapters: MovieIndex.chapters(size: bytes.count, read: read), read: read)
        _ = CutFile.isCut(size: bytes.count, read: read)
        for part in MovieIndex.partsWithIndexFirst(size: bytes.count, read: read) ?? [] {
            guard case .range(let place, let count) = part else { continue }
            precondition(place >= 0 && count > 0 && place + count <= bytes.count, "a part outside of the file")
        }
        mending(bytes, read)
        guard let found = MovieIndex(size: bytes.count, read: read) else { return }
        for number in (found.length.map { [$0] } ?? []) + found.firstPieces {
            precondition(number.place > 0 && number.place + number.size <= bytes.count, "a number outside of the file")
            let value = bytes[number.place..<(number.place + number.size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            precondition(UInt64(number.value) == value & UInt64(Int.max), "a number that is not in the file")
        }
        precondition(found.cut.isFinite && found.cut >= 0 && found.timescale >= 0)
        if let matrix = found.matrix { precondition(matrix > 0 && matrix + 36 <= bytes.count) }
    }

    /// A mended film is an ordinary film, of the same bytes.
    private static func mending(_ bytes: [UInt8], _ read: (Int, Int) -> [UInt8]) {
        guard let mending = try? FilmMending(size: bytes.count, read: read) else { return }
        precondition(mending.end > 0 && mending.end <= bytes.count && mending.lost >= 0)
        precondition(mending.unused.allSatisfy { $0 > 0 && $0 + 4 <= bytes.count }, "a header outside of the file")
        var film = mending.index.isEmpty ? bytes : Array(bytes[..<mending.end]) + mending.index
        for place in mending.unused { film.replaceSubrange(place..<(place + 4), with: FilmMending.unusedType) }
        func readFilm(_ place: Int, _ count: Int) -> [UInt8] {
            place < film.count ? Array(film[place...].prefix(count)) : []
        }
        do throws(FilmMending.Refusal) {
            _ = try FilmMending(size: film.count, read: readFilm)
            preconditionFailure("it is still fragmented")
        } catch {
            precondition(error == .ordinary || mending.index.isEmpty, "a mended film is refused: \(error)")
        }
    }

    // MARK: Messages

    private static func demarshal(_ bytes: [UInt8]) -> Message? {
        guard let count = Int32(exactly: bytes.count) else { return nil }
        let raw = bytes.withUnsafeBytes { buffer in
            dbus_message_demarshal(buffer.bindMemory(to: CChar.self).baseAddress, count, nil)
        }
        return raw.map { Message(owning: $0) }
    }

    private static func marshal(_ message: Message) -> [UInt8]? {
        var pointer: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        dbus_message_set_serial(message.raw, 1)
        guard dbus_message_marshal(message.raw, &pointer, &count) != 0, let pointer else { return nil }
        defer { dbus_free(pointer) }
        return UnsafeRawBufferPointer(start: pointer, count: Int(count)).map { $0 }
    }

    private static func carrier(_ values: [Value]) -> Message? {
        guard
            let message = try? Message.methodCall(
                destination: "org.sessiond1", path: "/org/sessiond1", interface: "org.sessiond1.Manager",
                member: "CreateSession")
        else { return nil }
        message.append(values)
        return message.failure == nil ? message : nil
    }

    /// Whether the values are equal. A NaN counts as equal to itself.
    private static func same(_ left: [Value]?, _ right: [Value]) -> Bool {
        guard let left else { return false }
        return left == right || left.map { "\($0)" } == right.map { "\($0)" }
    }
}
