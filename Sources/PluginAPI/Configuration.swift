/// A valid combination of category, mode and options, which `setCategory` sets together.
///
/// Only valid combinations exist, so only the initializer checks them.
public struct Configuration: Sendable, Hashable, Codable {
    public let category: Category
    public let mode: Mode
    /// The options including everything that the category, the mode and other options imply.
    public let options: Options

    /// The default of a new session: solo-ambient, default mode, no options.
    public static let initial = Configuration(legal: .soloAmbient, .default, [])

    private init(legal category: Category, _ mode: Mode, _ options: Options) {
        self.category = category
        self.mode = mode
        self.options = options
    }

    /// Throws `badParameter`, naming both values, if the mode or an option is not allowed with the category.
    public init(category: Category, mode: Mode = .default, options: Options = []) throws(SessionError) {
        guard mode.legalCategories.contains(category) else {
            throw illegal("mode '\(mode.rawValue)'", with: category, mode.legalCategories)
        }
        var effective = options.union(mode.impliedOptions)
        for entry in Options.table where options.contains(entry.option) {
            guard entry.legalCategories.contains(category) else {
                throw illegal("option '\(entry.name)'", with: category, entry.legalCategories)
            }
            effective.formUnion(entry.implies)
        }
        if category == .ambient { effective.insert(.mixWithOthers) }
        self.init(legal: category, mode, effective)
    }

    /// The same from wire names. Throws `badParameter` naming an unknown value.
    public init(category: String, mode: String, options: [String]) throws(SessionError) {
        guard let known = Category(rawValue: category) else {
            throw .badParameter(
                "unknown category \(quoted(category)); use one of "
                    + Category.allCases.map(\.rawValue).joined(separator: ", "))
        }
        guard let knownMode = Mode(rawValue: mode) else {
            throw .badParameter(
                "unknown mode \(quoted(mode)); use one of " + Mode.allCases.map(\.rawValue).joined(separator: ", "))
        }
        var set: Options = []
        for name in options {
            guard let option = Options(name: name) else {
                throw .badParameter(
                    "unknown option \(quoted(name)); use any of "
                        + Options.table.map(\.name).joined(separator: ", "))
            }
            set.insert(option)
        }
        try self.init(category: known, mode: knownMode, options: set)
    }

    /// The options to request for this configuration: all options without those that the category itself implies.
    public var requestedOptions: Options { category == .ambient ? options.subtracting(.mixWithOthers) : options }

    /// Neither interrupts nor is interrupted by other app sessions.
    public var isMixable: Bool { options.contains(.mixWithOthers) }
    /// Ducks other sessions while active.
    public var ducksOthers: Bool { options.contains(.duckOthers) }
}

private func illegal(_ what: String, with category: Category, _ legal: Set<Category>) -> SessionError {
    let names = Category.allCases.filter(legal.contains).map(\.rawValue).joined(separator: ", ")
    return .badParameter("\(what) is not allowed with category '\(category.rawValue)'; use it with \(names)")
}
