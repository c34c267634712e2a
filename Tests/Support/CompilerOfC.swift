import Foundation

/// The compiler for the C parts of the tests: clang, which comes with Swift, or the system's.
public enum CompilerOfC {
    public static let name: String = {
        let folders = searchPath.split(separator: ":")
        return folders.contains { FileManager.default.isExecutableFile(atPath: $0 + "/clang") } ? "clang" : "cc"
    }()

    /// Compiles `source` in Tests/FakeCard with all warnings. Returns the path of the result, which exists as long as
    /// the tests run.
    static func build(_ source: String, into name: String, _ flags: [String]) throws -> String {
        let folder = try Unmanaged.passRetained(PrivateFolder()).takeUnretainedValue()
        let file = repository.appendingPathComponent("Tests/FakeCard/" + source).path
        let result = folder.path + "/" + name
        try Child.run(CompilerOfC.name, ["-O1", "-Wall", "-Wextra", "-Werror", "-o", result, file] + flags)
        return result
    }
}
