extension Settings.Adoption {
    /// Programs that are known to make calls, by application name or id, or by the executable's file name; in lower case,
    /// `*` at the end matches anything. This is the only list; the manual page describes it.
    ///
    /// It does not contain programs that record and play at the same time without a call (OBS, Audacity, mpv,
    /// gst-launch, assistants), and Mumble, which keeps the microphone open outside of conversations.
    public static let knownCallPrograms = [
        // Browsers, by name and as Flatpak or snap.
        "chromium*", "google-chrome*", "chrome", "org.chromium.chromium", "com.google.chrome*", "msedge*",
        "microsoft-edge*", "com.microsoft.edge*", "brave*", "com.brave.browser", "vivaldi*", "com.vivaldi.vivaldi",
        "opera*", "com.opera.opera", "firefox*", "org.mozilla.firefox*", "librewolf*", "io.gitlab.librewolf-community",
        "zen", "zen-bin", "app.zen_browser.zen", "waterfox*", "net.waterfox.waterfox", "epiphany", "org.gnome.epiphany",
        // Programs for calls and meetings.
        "zoom", "zoom voiceengine", "us.zoom.zoom", "webrtc voiceengine", "discord*", "com.discordapp.discord*",
        "vesktop*", "dev.vencord.vesktop", "slack", "com.slack.slack", "teams", "teams-for-linux",
        "com.github.ismaelmartinez.teams_for_linux", "element-desktop*", "im.riot.riot", "signal-desktop*", "ringrtc*",
        "org.signal.signal", "wire-desktop*", "com.wire.wiredesktop", "telegram-desktop*", "telegram desktop",
        "org.telegram.desktop", "linphone*", "com.belledonnecommunications.linphone", "baresip",
        "alsa plug-in [baresip]", "twinkle", "jami*", "net.jami.jami", "dino*", "im.dino.dino", "gajim*",
        "org.gajim.gajim", "skypeforlinux", "jitsi-meet*", "org.jitsi.jitsi-meet", "webex*", "gnome-calls", "calls",
        "org.gnome.calls", "sip-communicator",
    ]

    /// Programs that read the screen aloud, as above. They are adopted only if the settings list them.
    private static let screenReaders = ["speech-dispatcher*", "sd_*", "espeak*", "orca"]

    /// Whether one of the names is among the programs that read the screen aloud.
    public static func isScreenReader(_ names: Set<String>) -> Bool { matches(names, screenReaders) }

    /// Whether one of the names is among the programs that are known to make calls.
    public static func isKnown(_ names: Set<String>) -> Bool { matches(names, knownCallPrograms) }

    /// Whether one of the names is among ``callPrograms``.
    public func namesCallProgram(_ names: Set<String>) -> Bool {
        !callPrograms.isEmpty && Self.matches(names, callPrograms.map { $0.lowercased() })
    }

    private static func matches(_ names: Set<String>, _ patterns: [String]) -> Bool {
        names.contains { name in
            let name = name.lowercased()
            return !name.isEmpty
                && patterns.contains { $0.hasSuffix("*") ? name.hasPrefix($0.dropLast()) : name == $0 }
        }
    }
}
