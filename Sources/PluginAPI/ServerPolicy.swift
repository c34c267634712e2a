/// Arbitration that a sound server does by itself, beside ours; PulseAudio's by the names of its modules.
public enum ServerPolicy: String, Sendable, Hashable, CaseIterable {
    /// Mutes and corks streams of some roles while one of others plays.
    case roleCork = "module-role-cork"
    /// Lowers them.
    case roleDucking = "module-role-ducking"
    /// WirePlumber's role policy: corks and lowers by role.
    case wirePlumberRoles = "wireplumber-roles"
    /// WirePlumber from 0.5.11 on: pauses players whose device is removed (`linking.pause-playback`).
    case wirePlumberPause = "wireplumber-pause-playback"
}
