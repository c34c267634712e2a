import Enforcement
import PluginAPI
import SessionManager

/// What the settings say about unplugs, in terms of sessions.
extension Decider {
    /// The sessions of programs that an unplug never pauses.
    func unplugExempt(_ owners: [AudioStream.ID: [SessionID]]) -> Set<SessionID> {
        let names = settings.routes.noUnplug
        if names.isEmpty { return [] }
        var exempt: Set<SessionID> = []
        for facts in seen.streams where facts.program.map({ names.contains(where: $0.names.contains) }) ?? false {
            exempt.formUnion(owners[facts.stream.id] ?? [])
        }
        return exempt
    }

    /// The adopted sessions whose streams are held when their output is unplugged: those that play, but not games, prompts,
    /// alerts and calls.
    var holdable: Set<SessionID> {
        guard settings.routes.unplug == .all, settings.enforcement.mode == .full, seen.canHold else { return [] }
        let held = members.filter { id, member in
            guard let role = member.adopted?.role, role.sessionClass == .app else { return false }
            return role.configuration.category == .playback && !role.configuration.ducksOthers
        }
        return Set(held.keys)
    }
}
