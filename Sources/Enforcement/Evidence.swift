import PluginAPI

/// What says whose stream it is: the one table, the strongest first. The first that names a session decides.
enum Evidence: CaseIterable {
    /// The process that owns the session's connection, or the `pid` it was created for, or a descendant; the nearest.
    case process
    /// The sandboxed application, which is the same for all its processes.
    case sandbox
    /// What the stream says of itself, `application.id`: a desktop entry.
    case application

    func owners(of facts: StreamFacts, among sessions: [SessionFacts]) -> [SessionID] {
        switch self {
        case .process:
            for process in facts.ancestry {
                let owners = sessions.filter { $0.process == process }
                if !owners.isEmpty { return owners.map(\.id) }
            }
            return []
        case .sandbox:
            guard let sandbox = facts.sandbox, !sandbox.isEmpty else { return [] }
            return sessions.filter { $0.application == sandbox }.map(\.id)
        case .application:
            guard let id = facts.stream.properties["application.id"], !id.isEmpty else { return [] }
            return sessions.filter { $0.application == id }.map(\.id)
        }
    }

    /// The told sessions that a stream belongs to; empty: its program never spoke to us.
    ///
    /// Of the same user alone, whatever a stream or a session says of itself.
    static func owners(of facts: StreamFacts, among told: [SessionFacts]) -> [SessionID] {
        let told = told.filter { $0.user == facts.user }
        for evidence in allCases {
            let owners = evidence.owners(of: facts, among: told)
            if !owners.isEmpty { return owners }
        }
        return []
    }
}
