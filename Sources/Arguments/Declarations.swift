/// The name of an option; without one it is the name of the property, with dashes.
public struct NameSpecification: Sendable {
    let name: String

    public static func customLong(_ name: String) -> NameSpecification { NameSpecification(name: name) }
}

/// Which words an argument takes.
public enum ArgumentParsing: Sendable {
    case remaining
    /// Only the words after `--`, all of them.
    case postTerminator
}

/// One declared argument and its value, apart from its type.
class Declaration {
    enum Kind {
        case positional(ArgumentParsing)
        case option
        case flag
    }

    let kind: Kind
    let help: String
    let name: String?
    let completion: CompletionKind
    /// The words that are its values.
    let words: [String]
    /// Whether it may be given more than once.
    let isRepeated: Bool
    /// How the help shows its default; nil: it has none to show.
    let defaultText: String?
    var wasGiven = false

    init(
        _ kind: Kind, _ help: String, name: String? = nil, completion: CompletionKind = .default, words: [String] = [],
        isRepeated: Bool = false, defaultText: String? = nil
    ) {
        self.kind = kind
        self.help = help
        self.name = name
        self.completion = completion
        self.words = words
        self.isRepeated = isRepeated
        self.defaultText = defaultText
    }

    var isMissing: Bool { false }
    /// False: that is no value of it. A flag takes the empty text.
    func take(_ text: String) -> Bool { false }
}

/// The value of a declared argument. The copies of a property wrapper share it, which is how the parser sets what it
/// found by reflection.
final class Slot<Value>: Declaration {
    /// Nil until a required argument is parsed.
    var value: Value?
    private let reading: (String, Value?) -> Value?

    init(
        _ kind: Kind, _ help: String, name: String? = nil, completion: CompletionKind = .default, words: [String] = [],
        isRepeated: Bool = false, defaultText: String? = nil, value: Value?,
        reading: @escaping (String, Value?) -> Value?
    ) {
        self.value = value
        self.reading = reading
        super.init(
            kind, help, name: name, completion: completion, words: words, isRepeated: isRepeated,
            defaultText: defaultText)
    }

    override var isMissing: Bool { value == nil }

    override func take(_ text: String) -> Bool {
        guard let new = reading(text, value) else { return false }
        value = new
        wasGiven = true
        return true
    }

    /// What the program reads, after parsing.
    var parsed: Value {
        guard let value else { fatalError("an argument is read before the command line is parsed") }
        return value
    }
}

/// A property wrapper that declares one argument.
protocol Declaring {
    var declaration: Declaration { get }
}

/// A value with a name: `--name VALUE`.
@propertyWrapper public struct Option<Value>: Declaring {
    let slot: Slot<Value>
    var declaration: Declaration { slot }
    public var wrappedValue: Value {
        get { slot.parsed }
        set { slot.value = newValue }
    }

    /// With a default.
    public init(
        wrappedValue: Value, name: NameSpecification? = nil, help: String, completion: CompletionKind = .default
    ) where Value: ExpressibleByArgument {
        slot = Slot(
            .option, help, name: name?.name, completion: completion, words: Value.allValueStrings,
            defaultText: (wrappedValue as? any RawRepresentable).map { "\($0.rawValue)" } ?? "\(wrappedValue)",
            value: wrappedValue, reading: { text, _ in Value(argument: text) })
    }

    /// Nil where it is not given.
    public init<Element: ExpressibleByArgument>(
        wrappedValue: Value = nil, name: NameSpecification? = nil, help: String, completion: CompletionKind = .default
    ) where Value == Element? {
        slot = Slot(
            .option, help, name: name?.name, completion: completion, words: Element.allValueStrings,
            value: .some(wrappedValue), reading: { text, _ in Element(argument: text).map { .some($0) } })
    }

    /// May be given more than once.
    public init<Element: ExpressibleByArgument>(
        wrappedValue: Value, name: NameSpecification? = nil, help: String, completion: CompletionKind = .default
    ) where Value == [Element] {
        slot = Slot(
            .option, help, name: name?.name, completion: completion, words: Element.allValueStrings, isRepeated: true,
            value: wrappedValue, reading: { text, old in Element(argument: text).map { (old ?? []) + [$0] } })
    }
}

/// A switch: `--name`.
@propertyWrapper public struct Flag: Declaring {
    let slot: Slot<Bool>
    var declaration: Declaration { slot }
    public var wrappedValue: Bool {
        get { slot.parsed }
        set { slot.value = newValue }
    }

    public init(wrappedValue: Bool, help: String) {
        slot = Slot(.flag, help, value: wrappedValue, reading: { _, _ in true })
    }
}

/// A word without a name, at its place in the order of declaration.
@propertyWrapper public struct Argument<Value>: Declaring {
    let slot: Slot<Value>
    var declaration: Declaration { slot }
    public var wrappedValue: Value {
        get { slot.parsed }
        set { slot.value = newValue }
    }

    public init(help: String, completion: CompletionKind = .default) where Value: ExpressibleByArgument {
        slot = Slot(
            .positional(.remaining), help, completion: completion, words: Value.allValueStrings, value: nil,
            reading: { text, _ in Value(argument: text) })
    }

    /// At least one; all words that are left.
    public init<Element: ExpressibleByArgument>(
        parsing: ArgumentParsing = .remaining, help: String, completion: CompletionKind = .default
    ) where Value == [Element] {
        slot = Slot(
            .positional(parsing), help, completion: completion, words: Element.allValueStrings, isRepeated: true,
            value: nil, reading: { text, old in Element(argument: text).map { (old ?? []) + [$0] } })
    }
}

/// A property wrapper around declared arguments of another type.
protocol Grouping {
    var group: any ParsableArguments { get }
}

/// The arguments of another type.
@propertyWrapper public struct OptionGroup<Value: ParsableArguments>: Grouping {
    public var wrappedValue = Value()
    var group: any ParsableArguments { wrappedValue }

    public init() {}
}

/// A declared argument under its name.
struct NamedDeclaration {
    let name: String
    let declaration: Declaration

    var isPositional: Bool { if case .positional = declaration.kind { true } else { false } }
    var takesOnlyTheTerminated: Bool {
        if case .positional(.postTerminator) = declaration.kind { true } else { false }
    }
    var isFlag: Bool { if case .flag = declaration.kind { true } else { false } }

    /// As usage and messages show it.
    var shown: String {
        switch declaration.kind {
        case .positional: "<\(name)>"
        case .option: "--\(name) <\(name)>"
        case .flag: "--\(name)"
        }
    }

    /// All that are declared in `arguments` and its groups, in order.
    static func all(in arguments: any ParsableArguments) -> [NamedDeclaration] {
        Mirror(reflecting: arguments).children.flatMap { child -> [NamedDeclaration] in
            if let declaring = child.value as? any Declaring {
                // The storage of a property wrapper is named with an underscore.
                let name = declaring.declaration.name ?? dashed((child.label ?? "_").dropFirst())
                return [NamedDeclaration(name: name, declaration: declaring.declaration)]
            }
            return (child.value as? any Grouping).map { all(in: $0.group) } ?? []
        }
    }

    /// The groups in it, which are validated before it is.
    static func groups(in arguments: any ParsableArguments) -> [any ParsableArguments] {
        Mirror(reflecting: arguments).children.compactMap { ($0.value as? any Grouping)?.group }
    }

    private static func dashed(_ name: Substring) -> String {
        name.reduce(into: "") { text, letter in
            if letter.isUppercase { text += "-" }
            text += letter.lowercased()
        }
    }
}
