import Glibc
import Processes

/// The value of the variable; nil if unset or empty.
public func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

/// The files in the folder with that extension, without hidden ones, sorted by name.
public func filesIn(_ folder: String, suffix: String) -> [String] {
    namesIn(folder).filter { $0.hasSuffix(suffix) && !$0.hasPrefix(".") }.map { folder + "/" + $0 }.sorted()
}
