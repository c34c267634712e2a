import Foundation

/// The compiler that builds what the tests need in C: clang, which Swift brings along, or the system's.
public enum CompilerOfC {
    public static let name: String = {
        let folders = searchPath.split(separator: ":")
        return folders.contains { FileManager.default.isExecutableFile(atPath: $0 + "/clang") } ? "clang" : "cc"
    }()

    /// Compiles `source` of Tests/FakeCard with all warnings into a file of that name, which is kept for as long as the
    /// tests run, and returns its path.
    static func build(_ source: String, into name: String, _ flags: [String]) throws -> String {
        let folder = try Unmanaged.passRetained(PrivateFolder()).takeUnretainedValue()
        let file = repository.appendingPathComponent("Tests/FakeCard/" + source).path
        let result = folder.path + "/" + name
        try Child.run(CompilerOfC.name, ["-O1", "-Wall", "-Wextra", "-Werror", "-o", result, file] + flags)
        return result
    }
}
