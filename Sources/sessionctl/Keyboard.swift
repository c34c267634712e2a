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

    /// Seconds in which the rest of an escape sequence comes, which slow lines cut: else it was the key Escape.
    private static let escapeTime = 0.05

    private let descriptor: Int32
    private var watch: IOWatch?
    private let onKey: (Key) -> Void
    private let onGone: () -> Void
    /// The beginning of a sequence or a character.
    private var rest: [UInt8] = []
    private lazy var escape = Timer(on: loop) { [unowned self] in decode(isWhole: true) }
    private let loop: EventLoop

    /// Nil if there is no such terminal.
    /// - Parameters:
    ///   - descriptor: of the terminal.
    ///   - onGone: the terminal is gone.
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

    /// - Parameter isWhole: whether nothing more belongs to what is there.
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

    /// Bytes of the sequence that `rest` begins with; nil: its end is missing.
    private func escapeLength(_ isWhole: Bool) -> Int? {
        guard rest.count > 1 else { return isWhole ? 1 : nil }
        // Another key follows it: Alt and a letter, or Escape twice.
        guard rest[1] == UInt8(ascii: "[") || rest[1] == UInt8(ascii: "O") else { return rest[1] == 0x1B ? 1 : 2 }
        // Up to the letter that ends it.
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
