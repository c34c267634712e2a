/// Rules that a sound server applies itself, independent of sessiond; PulseAudio's by the names of its modules.
public enum ServerPolicy: String, Sendable, Hashable, CaseIterable {
    /// Mutes and corks streams of some roles while a stream of another role plays.
    case roleCork = "module-role-cork"
    /// Ducks them.
    case roleDucking = "module-role-ducking"
    /// WirePlumber's role policy: corks and ducks by role.
    case wirePlumberRoles = "wireplumber-roles"
    /// WirePlumber from 0.5.11 on: pauses players whose device is removed (`linking.pause-playback`).
    case wirePlumberPause = "wireplumber-pause-playback"
}
