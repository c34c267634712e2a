import ArgumentParser
import PluginAPI

/// The name of the file that `export` writes: its ending tells the format.
enum ExportName {
    /// Throws if the name promises a format that no export writes. A name without an ending is allowed.
    static func check(_ path: String) throws {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex, ExportFileType(path: path) == nil else {
            return
        }
        let endings = ExportFileType.allCases.map { "." + $0.rawValue }.joined(separator: ", ")
        throw ValidationError(
            "\(path.escaped): no export writes '\(String(name[dot...]).escaped)'; "
                + "use a name that ends with one of \(endings), or name the format with --type")
    }
}
