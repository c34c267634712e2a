import Glibc
import Installation
import PluginAPI

/// What every command says if there is no sound server.
enum SoundServerAdvice {
    /// The command that starts the installed sound server of the user, or that installs one.
    static func command(_ verb: String) -> String {
        let hasSystemd = access("/run/systemd/system", F_OK) == 0
        // A server that is only started is not there after the next login.
        let words = verb == "start" ? "enable --now" : verb
        if has("pipewire-pulse") {
            return hasSystemd ? "systemctl --user \(words) pipewire-pulse" : "pipewire-pulse &"
        }
        if has("pulseaudio") { return hasSystemd ? "systemctl --user \(words) pulseaudio" : "pulseaudio --start" }
        return "apt install pipewire-audio"
    }

    /// For a machine without a login: the unit that is installed with sessiond, see sessiond(8).
    static var systemCommand: String {
        guard has("pulseaudio") else {
            return "apt install pulseaudio && systemctl enable --now sessiond-pulseaudio"
        }
        return access("/run/systemd/system", F_OK) == 0
            ? "systemctl enable --now sessiond-pulseaudio" : "pulseaudio --system --daemonize"
    }

    private static func has(_ program: String) -> Bool { ManifestFiles.executable(program, beside: nil) != nil }

    /// No sound server runs; `purpose` is what was wanted, such as "play".
    static func absent(isSystem: Bool, _ purpose: String) -> String {
        "no sound server is running: start one with '\(isSystem ? systemCommand : command("start"))', "
            + "then \(purpose) again"
    }

    /// One runs, because sessiond uses it, but it cannot be reached from here.
    static var elsewhere: String {
        let server = getenv("PULSE_SERVER").map { "'\(String(cString: $0).escaped)' (PULSE_SERVER) " }
        return "the sound server \(server ?? "")cannot be reached from here, but sessiond is connected to one: "
            + (server == nil ? "set PULSE_SERVER to the same value as sessiond" : "correct PULSE_SERVER, or unset it")
    }

    /// Whether a message of a plugin, or of sessiond, says that there is no server.
    static func concerns(_ message: String) -> Bool {
        let starts = ["there is no sound server", "no sound server", "no connection to the sound server"]
        return starts.contains { message.hasPrefix($0) }
            || message.hasPrefix("the sound server ")
                && ["Connection refused", "No such file", "Connection terminated"].contains { message.includes($0) }
    }
}
