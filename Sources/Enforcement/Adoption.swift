import PluginAPI

/// What a program that never spoke to us counts as, by the settings and by what it plays.
struct Adoption {
    let settings: Settings

    /// Nil where it is left alone.
    func role(of facts: StreamFacts) -> Settings.Role? {
        guard facts.stream.direction == .playback, let program = facts.program, let ground = ground(for: program) else {
            return nil
        }
        guard let role = labelled(facts.stream) else { return isolated(Adoption.unlabelled, ground) }
        // Whoever may not take the class is an app all the same.
        guard Adoption.may(program, role.sessionClass) else { return isolated(Adoption.unlabelled, ground) }
        return role.sessionClass == .app ? isolated(role, ground) : role
    }

    /// Why a program counts as that, for people. `facts`: of a stream of its; nil where it has none now.
    func reason(for role: Settings.Role, of facts: StreamFacts?) -> String {
        let why = facts.flatMap(label(of:)) ?? "by [adoption] and [roles]"
        return "its program never spoke to sessiond, and counts as \(role.words): \(why)"
    }

    private func label(of facts: StreamFacts) -> String? {
        guard let program = facts.program, let ground = ground(for: program) else { return nil }
        var label = facts.stream.role.map { "media.role \(quoted($0))" } ?? "no media.role"
        if let role = labelled(facts.stream) {
            let isRefused = !Adoption.may(program, role.sessionClass)
            if isRefused { label += ", but it may not take the class \(role.sessionClass.rawValue)" }
        } else if facts.stream.role != nil {
            label += ", which [roles] does not name"
        }
        switch ground {
        case .named: return "\(label); [adoption] always names it"
        case .everybody(let streams): return "\(label); [adoption] streams = \(streams.rawValue)"
        }
    }

    private func labelled(_ stream: AudioStream) -> Settings.Role? {
        stream.role.flatMap { settings.roles[$0.lowercased()] }
    }

    private static func may(_ program: Program, _ sessionClass: SessionClass) -> Bool {
        switch sessionClass {
        case .app: true
        case .alert: program.mayAlert
        case .call: program.mayCall
        }
    }

    /// By which setting a program counts.
    private enum Ground {
        /// In `always`.
        case named
        case everybody(Settings.Adoption.Streams)

        var isGentle: Bool {
            switch self {
            case .named, .everybody(.all), .everybody(.off): false
            case .everybody(.calls): true
            }
        }
    }

    private func ground(for program: Program) -> Ground? {
        if settings.adoption.never.contains(where: program.names.contains) { return nil }
        if settings.adoption.always.contains(where: program.names.contains) { return .named }
        return settings.adoption.streams == .off ? nil : .everybody(settings.adoption.streams)
    }

    /// Gently adopted apps mix: they give way to calls and alerts alone.
    private func isolated(_ role: Settings.Role, _ ground: Ground) -> Settings.Role {
        let configuration = role.configuration
        guard ground.isGentle, !configuration.isMixable else { return role }
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

extension Settings.Role {
    /// For people: class, category, mode and options, as far as they are not what everybody has.
    fileprivate var words: String {
        let parts =
            [sessionClass == .app ? "" : sessionClass.rawValue, configuration.category.rawValue]
            + [configuration.mode == .default ? "" : configuration.mode.rawValue] + configuration.requestedOptions.names
        return parts.filter { !$0.isEmpty }.joined(separator: ", ")
    }
}
