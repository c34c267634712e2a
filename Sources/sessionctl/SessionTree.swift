import PluginAPI

/// The sessions in the order of `status`: each session is followed by those that wait for it or that it ducks.
struct SessionTree {
    struct Row {
        let session: SessionInfo
        /// Lines that connect it with the session above it; empty for a session that waits for nobody.
        let branch: String
    }

    let rows: [Row]

    /// Active sessions come first, then interrupted ones, then the others; of each, the newest first.
    init(_ sessions: [SessionInfo]) {
        let parents = SessionTree.parents(of: sessions)
        let ordered = SessionTree.sorted(sessions)
        let children = Dictionary(grouping: ordered.filter { parents[$0.path] != nil }) { parents[$0.path] ?? "" }
        var rows: [Row] = []
        func add(_ session: SessionInfo, _ branch: String, _ margin: String) {
            rows.append(Row(session: session, branch: branch))
            let own = children[session.path] ?? []
            for (index, child) in own.enumerated() {
                let isLast = index == own.count - 1
                add(child, margin + (isLast ? "└ " : "├ "), margin + (isLast ? "  " : "│ "))
            }
        }
        // An inactive session that others wait for belongs to those that are in use.
        let roots = ordered.filter { parents[$0.path] == nil }
        func isIdle(_ root: SessionInfo) -> Bool { root.state == .inactive && children[root.path] == nil }
        for root in roots.filter({ !isIdle($0) }) + roots.filter(isIdle) { add(root, "", "") }
        self.rows = rows
    }

    private static func sorted(_ sessions: [SessionInfo]) -> [SessionInfo] {
        func rank(_ session: SessionInfo) -> Int {
            switch session.state {
            case .active: 0
            case .interrupted: 1
            case .inactive, nil: 2
            }
        }
        return sessions.sorted { (rank($0), $1.since, $1.number) < (rank($1), $0.since, $0.number) }
    }

    /// For each session, the one that it is shown below. Of several that it waits for, the one that waits itself the longest
    /// chain: whoever ends first is at the top.
    private static func parents(of sessions: [SessionInfo]) -> [String: String] {
        let byPath = Dictionary(sessions.map { ($0.path, $0) }) { first, _ in first }
        let duckers = sessions.filter { $0.isDucker && $0.state == .active }
        func depth(_ path: String, _ seen: Set<String>) -> Int {
            guard let session = byPath[path], !seen.contains(path) else { return 0 }
            return 1 + (session.waitingFor.map { depth($0, seen.union([path])) }.max() ?? 0)
        }
        var parents: [String: String] = [:]
        // With very many waiting sessions, the chains are not followed.
        let isDeep = sessions.count <= mostFollowed
        for session in sessions {
            let others = session.waitingFor.filter { byPath[$0] != nil && $0 != session.path }
            let ranked = others.map { ($0, isDeep ? depth($0, [session.path]) : 0, byPath[$0]?.since ?? 0) }
            if let parent = ranked.max(by: { ($0.1, $0.2) < ($1.1, $1.2) })?.0 {
                parents[session.path] = parent
            } else if session.isDucked, !session.isDucker,
                let ducker = duckers.filter({ $0.path != session.path }).max(by: { $0.since < $1.since })
            {
                parents[session.path] = ducker.path
            }
        }
        return withoutCircles(parents)
    }

    private static let mostFollowed = 40

    /// The service never reports a circle. If the answers are of different moments, a session in a circle is shown at the
    /// left.
    private static func withoutCircles(_ parents: [String: String]) -> [String: String] {
        var result = parents
        for path in parents.keys.sorted() {
            var seen: Set<String> = [path]
            var next = result[path]
            while let parent = next {
                guard seen.insert(parent).inserted else {
                    result[path] = nil
                    break
                }
                next = result[parent]
            }
        }
        return result
    }
}
