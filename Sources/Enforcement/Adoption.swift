import PluginAPI

/// What a program that never spoke to us counts as, by the settings and by what it plays.
struct Adoption {
    let settings: Settings

    /// Nil where it is left alone.
    func role(of facts: StreamFacts) -> Settings.Role? {
        guard facts.stream.direction == .playback, let program = facts.program, let extent = extent(of: program) else {
            return nil
        }
        let role = facts.stream.role.flatMap { settings.roles[$0.lowercased()] } ?? Adoption.unlabelled
        switch role.sessionClass {
        case .call where program.mayCall, .alert where program.mayAlert: return role
        // Whoever may not take the class is an app all the same.
        case .call, .alert: return isolated(Adoption.unlabelled, extent)
        case .app: return isolated(role, extent)
        }
    }

    private enum Extent {
        case gentle
        case full
    }

    private func extent(of program: Program) -> Extent? {
        if settings.adoption.never.contains(where: program.names.contains) { return nil }
        if settings.adoption.always.contains(where: program.names.contains) { return .full }
        switch settings.adoption.streams {
        case .off: return nil
        case .calls: return .gentle
        case .all: return .full
        }
    }

    /// Gently adopted apps mix: they give way to calls and alerts alone.
    private func isolated(_ role: Settings.Role, _ extent: Extent) -> Settings.Role {
        let configuration = role.configuration
        guard extent == .gentle, !configuration.isMixable else { return role }
        let mixing = try? Configuration(
            category: configuration.category, mode: configuration.mode,
            options: configuration.requestedOptions.union(.mixWithOthers))
        // A category that never mixes becomes the one that does what an unlabelled program does.
        return mixing.map { Settings.Role($0) } ?? Adoption.mixingPlayback
    }

    /// A program that plays and does not say what.
    private static let unlabelled = Settings.Role(known(.playback, []))
    private static let mixingPlayback = Settings.Role(known(.playback, .mixWithOthers))

    private static func known(_ category: Category, _ options: Options) -> Configuration {
        guard let configuration = try? Configuration(category: category, options: options) else {
            preconditionFailure("playback may mix")
        }
        return configuration
    }
}
