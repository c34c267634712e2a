import EventLoop
import Glibc

/// Single keys from a terminal, if this process is in the foreground there.
final class Keyboard {
    enum Key: Equatable {
        case space, left, right, up, down
        case letter(Character)
        case editing(Editing)
    }

    /// Keys of a list and of a line of text.
    enum Editing {
        case enter, tab, escape, backspace, deleteAll, pageUp, pageDown, home, end
    }

    /// The time in which the rest of an escape sequence must arrive, in seconds: slow lines may split it. Otherwise the
    /// key was Escape.
    private static let escapeTime = 0.05

    private let descriptor: Int32
    private var watch: IOWatch?
    private let onKey: (Key) -> Void
    private let onGone: () -> Void
    /// The start of an incomplete sequence or character.
    private var rest: [UInt8] = []
    private lazy var escape = Timer(on: loop) { [unowned self] in decode(isWhole: true) }
    private let loop: EventLoop

    /// Nil if there is no such terminal.
    /// - Parameters:
    ///   - descriptor: of the terminal.
    ///   - onGone: called when the terminal is closed.
    init?(
        _ loop: EventLoop, descriptor: Int32 = STDIN_FILENO, onGone: @escaping () -> Void = {},
        _ onKey: @escaping (Key) -> Void
    ) {
        guard RawMode.isPossible(on: descriptor) else { return nil }
        (self.loop, self.descriptor, self.onKey, self.onGone) = (loop, descriptor, onKey, onGone)
        RawMode.enter(on: descriptor)
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [unowned self] _ in read() }
    }

    deinit { RawMode.restore() }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        guard count > 0 else {
            watch = nil
            return onGone()
        }
        rest += buffer[..<count]
        decode(isWhole: false)
    }

    /// - Parameter isWhole: whether no more bytes belong to the input.
    private func decode(isWhole: Bool) {
        escape.disarm()
        while let first = rest.first {
            if first == 0x1B {
                guard let length = escapeLength(isWhole) else { return escape.arm(after: Self.escapeTime) }
                let sequence = Array(rest.prefix(length))
                rest.removeFirst(length)
                if let key = Self.key(sequence) { onKey(key) }
            } else {
                let length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
                guard rest.count >= length || isWhole else { return escape.arm(after: Self.escapeTime) }
                let text = String(decoding: rest.prefix(length), as: UTF8.self)
                rest.removeFirst(min(length, rest.count))
                for character in text { onKey(Self.key(character)) }
            }
        }
    }

    /// The length of the sequence at the start of `rest`, in bytes; nil: its end is missing.
    private func escapeLength(_ isWhole: Bool) -> Int? {
        guard rest.count > 1 else { return isWhole ? 1 : nil }
        // Another key follows: Alt with a letter, or Escape twice.
        guard rest[1] == UInt8(ascii: "[") || rest[1] == UInt8(ascii: "O") else { return rest[1] == 0x1B ? 1 : 2 }
        // The sequence ends with a letter.
        if let end = rest.dropFirst(2).firstIndex(where: { (0x40...0x7E).contains($0) }) { return end + 1 }
        return isWhole ? rest.count : nil
    }

    private static func key(_ sequence: [UInt8]) -> Key? {
        guard sequence.count > 1 else { return .editing(.escape) }
        switch String(decoding: sequence.dropFirst(), as: UTF8.self) {
        case "[A", "OA": return .up
        case "[B", "OB": return .down
        case "[C", "OC": return .right
        case "[D", "OD": return .left
        case "[5~": return .editing(.pageUp)
        case "[6~": return .editing(.pageDown)
        case "[H", "OH", "[1~", "[7~": return .editing(.home)
        case "[F", "OF", "[4~", "[8~": return .editing(.end)
        default: return nil
        }
    }

    private static func key(_ character: Character) -> Key {
        switch character {
        case " ": .space
        case "\r", "\n": .editing(.enter)
        case "\t": .editing(.tab)
        case "\u{7F}", "\u{8}": .editing(.backspace)
        // Control-U, as in shells.
        case "\u{15}": .editing(.deleteAll)
        default: .letter(character)
        }
    }
}
