import Glibc
import PluginAPI

/// The abilities of standard output, or of another terminal.
struct Terminal {
    private let descriptor: Int32
    /// Whether it is a terminal, not a pipe or a file.
    let isTerminal: Bool
    /// Whether the terminal can move the cursor.
    let canRedraw: Bool
    let usesColour: Bool

    static let standard = Terminal(STDOUT_FILENO)

    /// Whether the locale supports more than ASCII.
    static let isUnicode: Bool = {
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            guard let value = getenv(name).map({ String(cString: $0).uppercased() }), !value.isEmpty else { continue }
            return value.includes("UTF-8") || value.includes("UTF8")
        }
        return false
    }()

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
        isTerminal = isatty(descriptor) == 1
        let isDumb = ["", "dumb"].contains(variable("TERM"))
        canRedraw = isTerminal && !isDumb
        // no-color.org and bixense.com/clicolors: NO_COLOR counts if it is not empty, CLICOLOR_FORCE also if it is not
        // "0".
        let isForced = !["", "0"].contains(variable("CLICOLOR_FORCE"))
        usesColour = variable("NO_COLOR").isEmpty && (canRedraw || isForced)
    }

    /// Columns and rows; nil if it has no limits.
    var size: (columns: Int, rows: Int)? {
        guard isTerminal else { return nil }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    func styled(_ text: String, _ style: Style) -> String {
        guard usesColour, let code = style.code, !text.isEmpty else { return text }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}

/// The meaning of a piece of text, which determines its colour.
enum Style {
    case plain, strong, dim, good, warning, bad

    /// The parameters of Select Graphic Rendition. Only the basic colours, which are readable with every palette.
    fileprivate var code: String? {
        switch self {
        case .plain: nil
        case .strong: "1"
        case .dim: "2"
        case .good: "32"
        case .warning: "33"
        case .bad: "31"
        }
    }
}
