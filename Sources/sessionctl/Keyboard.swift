import EventLoop
import Glibc

/// Single keys from standard input, if it is a terminal and this process is in the foreground.
final class Keyboard {
    enum Key {
        case space, left, right, up, down
        case letter(Character)
    }

    private var watch: IOWatch?
    private let onKey: (Key) -> Void

    /// Nil if there is no such terminal.
    init?(_ loop: EventLoop, _ onKey: @escaping (Key) -> Void) {
        guard RawMode.isPossible else { return nil }
        self.onKey = onKey
        RawMode.enter()
        watch = IOWatch(on: loop, descriptor: STDIN_FILENO, events: .readable) { [unowned self] _ in read() }
    }

    deinit { RawMode.restore() }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
        guard count > 0 else {
            // The terminal is gone.
            watch = nil
            return
        }
        var rest = buffer[..<count]
        while let byte = rest.popFirst() {
            if byte == 0x1B, let kind = rest.first, kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") {
                rest = rest.dropFirst()
                // Up to the letter that ends an escape sequence.
                while let next = rest.popFirst() {
                    guard (0x40...0x7E).contains(next) else { continue }
                    if let key = Self.arrow(next) { onKey(key) }
                    break
                }
            } else if byte == UInt8(ascii: " ") {
                onKey(.space)
            } else {
                onKey(.letter(Character(UnicodeScalar(byte))))
            }
        }
    }

    private static func arrow(_ byte: UInt8) -> Key? {
        switch byte {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        default: nil
        }
    }
}
