import Glibc
import MediaValues

/// The arguments of the program, and paths among them.
enum FileArgument {
    /// The arguments without the name of the program. One that is not UTF-8 is the name of a file: it is passed on as the URI
    /// of that file, because a repaired text would name another file.
    static var all: [String] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            guard let argument = CommandLine.unsafeArgv[index] else { return nil }
            let bytes = UnsafeBufferPointer(start: argument, count: strlen(argument)).map { UInt8(bitPattern: $0) }
            return String(validating: bytes, as: UTF8.self) ?? uri(bytes)
        }
    }

    private static func uri(_ name: [UInt8]) -> String {
        let folder =
            name.first == UInt8(ascii: "/") ? [] : Array((FileURI.currentFolder ?? "").utf8) + [UInt8(ascii: "/")]
        return FileURI.shared(folder + name)
    }

    /// The absolute path of a file that a command writes, or that it passes on as a path.
    static func path(_ text: String) throws -> String {
        if text.hasPrefix("file:///") {
            throw Complaint.refused("\(text.escaped): the name must be a path in UTF-8; use another name")
        }
        guard let path = FileURI.absolute(text) else {
            throw Complaint.refused("\(text.escaped): the current folder no longer exists; use an absolute path")
        }
        return path
    }
}
