import PluginAPI

/// How a stream is assigned to a session: the most reliable way first. The first that matches decides.
enum StreamOwnership: CaseIterable {
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
    static func owners(of facts: StreamFacts, among clients: [SessionFacts]) -> [SessionID] {
        let clients = clients.filter { $0.user == facts.user }
        for ownership in allCases {
            let owners = ownership.owners(of: facts, among: clients)
            if !owners.isEmpty { return owners }
        }
        return []
    }
}
