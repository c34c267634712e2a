import Glibc
import Processes

/// A header on the command line.
enum HeaderArgument {
    /// A header, or the headers in a file (`@FILE`). Every user can read a command line.
    static func lines(_ text: String) throws -> [String] {
        guard text.hasPrefix("@") else { return [text] }
        let path = String(text.dropFirst())
        guard let bytes = readFile(path, limit: 64 << 10) else {
            throw Complaint.refused("\(path.escaped): \(String(cString: strerror(errno)))")
        }
        return String(decoding: bytes, as: UTF8.self).split { $0 == "\n" || $0 == "\r\n" }.map(String.init)
    }

    /// Its name and its value.
    static func pair(_ text: String) throws -> (name: String, value: String) {
        guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else {
            // The message does not contain the text, which may be a secret.
            throw Complaint.usage("a --header must be 'Name: value'")
        }
        return (String(text[..<colon]), String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
