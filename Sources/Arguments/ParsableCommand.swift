/// A value that a word of the command line can be.
public protocol ExpressibleByArgument {
    /// Nil: the word is no such value.
    init?(argument: String)
    /// The words that are values, if there are only so many; help and completions list them.
    static var allValueStrings: [String] { get }
}

extension ExpressibleByArgument {
    public static var allValueStrings: [String] { [] }
}

extension ExpressibleByArgument where Self: RawRepresentable, RawValue == String {
    public init?(argument: String) { self.init(rawValue: argument) }
}

extension ExpressibleByArgument where Self: RawRepresentable & CaseIterable, RawValue == String {
    public static var allValueStrings: [String] { allCases.map(\.rawValue) }
}

extension String: ExpressibleByArgument {
    public init?(argument: String) { self = argument }
}

extension Double: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

extension UInt32: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

/// A type with declared arguments (``Option``, ``Flag``, ``Argument``, ``OptionGroup``).
public protocol ParsableArguments {
    init()
    /// Called after parsing; throws a ``ValidationError`` if the arguments contradict each other.
    func validate() throws
}

extension ParsableArguments {
    public func validate() throws {}
}

/// A command, or a group of commands.
public protocol ParsableCommand: ParsableArguments, SendableMetatype {
    static var configuration: CommandConfiguration { get }
    mutating func run() throws
}

extension ParsableCommand {
    /// For a group: there is nothing to run.
    public mutating func run() throws {}
}

public struct CommandConfiguration: Sendable {
    let commandName: String
    let abstract: String
    let usage: String?
    let discussion: String
    let version: String
    let subcommands: [any ParsableCommand.Type]
    let defaultSubcommand: (any ParsableCommand.Type)?

    /// - Parameters:
    ///   - usage: instead of the usage line made of the arguments.
    ///   - defaultSubcommand: the one that is run if none is named.
    public init(
        commandName: String, abstract: String = "", usage: String? = nil, discussion: String = "", version: String = "",
        subcommands: [any ParsableCommand.Type] = [], defaultSubcommand: (any ParsableCommand.Type)? = nil
    ) {
        self.commandName = commandName
        self.abstract = abstract
        self.usage = usage
        self.discussion = discussion
        self.version = version
        self.subcommands = subcommands
        self.defaultSubcommand = defaultSubcommand
    }
}

/// The arguments are wrong: exit 64 with this message and the usage.
public struct ValidationError: Error {
    public let message: String

    public init(_ message: String) { self.message = message }
}

/// What a shell offers for a value.
public struct CompletionKind: Sendable {
    enum Source: Sendable {
        case values
        case list([String])
        case files
        case custom(@Sendable ([String], Int, String) -> [String])
    }

    let source: Source

    /// The words that are values of the type.
    public static let `default` = CompletionKind(source: .values)
    public static func list(_ words: [String]) -> CompletionKind { CompletionKind(source: .list(words)) }
    public static func file() -> CompletionKind { CompletionKind(source: .files) }
    /// Calls `words` with the words so far, the index of the word to complete and its beginning.
    public static func custom(_ words: @escaping @Sendable ([String], Int, String) -> [String]) -> CompletionKind {
        CompletionKind(source: .custom(words))
    }
}
