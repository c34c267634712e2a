import PluginAPI

/// How a stream is assigned to a session: the strongest evidence first. The first match decides.
enum Evidence: CaseIterable {
    /// The process that owns the session's connection, or the `pid` it was created for, or a descendant; the nearest.
    case process
    /// The sandboxed application, which is the same for all its processes.
    case sandbox
    /// `application.id` as stated by the stream: a desktop entry.
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

    /// The clients' sessions to which a stream belongs; empty: its program does not use sessiond.
    ///
    /// Only of the same user, whatever a stream or a session states.
    static func owners(of facts: StreamFacts, among told: [SessionFacts]) -> [SessionID] {
        let told = told.filter { $0.user == facts.user }
        for evidence in allCases {
            let owners = evidence.owners(of: facts, among: told)
            if !owners.isEmpty { return owners }
        }
        return []
    }
}
