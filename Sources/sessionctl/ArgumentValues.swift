public import ArgumentParser
import DBus
public import PluginAPI
import SessionBus

// The types of the contract as arguments: unknown values are wrong usage, and completions offer the known ones.

extension Category: ExpressibleByArgument {}
extension LiveInterruption: ExpressibleByArgument {}
extension CaptureInterruption: ExpressibleByArgument {}
extension CapturePixels: ExpressibleByArgument {}
extension Mode: ExpressibleByArgument {}
extension SessionClass: ExpressibleByArgument {}
extension OutputOverride: ExpressibleByArgument {}
extension RecordingFormat: ExpressibleByArgument {}
extension RecordingQuality: ExpressibleByArgument {}
extension ExportPreset: ExpressibleByArgument {}
extension ExportFileType: ExpressibleByArgument {}
extension ThumbnailFlavor: ExpressibleByArgument {}

extension Options: ExpressibleByArgument {
    public init?(argument: String) { self.init(name: argument) }
    public static var allValueStrings: [String] { table.map(\.name) }
}

extension CompletionKind {
    /// The names of the existing sessions.
    static var sessions: CompletionKind {
        .custom { words, _, _ in ((try? service(words).sessions()) ?? []).map(\.name) }
    }

    /// The names of the existing sessions, and of the programs that play or record without one.
    static var sessionsAndPrograms: CompletionKind {
        .custom { words, _, _ in
            guard let service = try? service(words) else { return [] }
            let sessions = ((try? service.sessions()) ?? []).map(\.name)
            let strangers = ((try? service.streams()) ?? []).filter(\.isStranger).map(\.program)
            return (sessions + strangers).reduce(into: []) { names, name in
                if !name.isEmpty, !names.contains(where: { $0 == name }) { names.append(name) }
            }
        }
    }

    /// The uids of the existing inputs.
    static var inputs: CompletionKind {
        .custom { words, _, _ in
            let answer = try? service(words).ask(
                "Get", [.string(BusName.manager), .string("AvailableInputs")], interface: StandardName.properties)
            return (answer?.first?.unwrapped.ports ?? []).map(\.uid)
        }
    }

    /// The jobs that have not ended.
    static var jobs: CompletionKind {
        .custom { words, _, _ in ((try? service(words).jobs()) ?? []).filter { !$0.isOver }.map(\.label) }
    }

    private static func service(_ words: [String]) throws -> Service {
        var options = BusOptions()
        options.system = words.contains("--system")
        return try Service(options)
    }
}

/// The parameters of a session on the command line.
struct SessionOptions: ParsableArguments {
    @Option(help: "What the session does with sound.")
    var category: Category?
    @Option(help: "A refinement of the category.")
    var mode: Mode?
    @Option(help: "How it treats others; may be repeated.", completion: .list(Options.allValueStrings))
    var option: [Options] = []
    @Option(help: "The name that users see.")
    var name: String?

    /// Whether none was given.
    var isEmpty: Bool { category == nil && mode == nil && option.isEmpty && name == nil }

    var options: Options { option.reduce(into: []) { $0.formUnion($1) } }

    func validate() throws {
        guard name != "" else { throw ValidationError("--name must not be empty; users will see it") }
    }

    /// The same arguments for a plugin program, whose default category is `usual`.
    func arguments(name fallback: String, in usual: Category) throws(Complaint) -> [String] {
        do throws(SessionError) {
            _ = try Configuration(
                category: (category ?? usual).rawValue, mode: (mode ?? .default).rawValue,
                options: option.flatMap(\.names))
        } catch {
            throw Complaint(Failure(error))
        }
        var words = ["--name", name ?? fallback]
        if let category { words += ["--category", category.rawValue] }
        if let mode { words += ["--mode", mode.rawValue] }
        for option in option { words += option.names.flatMap { ["--option", $0] } }
        return words
    }
}
