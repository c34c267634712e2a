import SessionManager

extension SessionProperties {
    /// The names of the properties on the bus.
    var names: [String] {
        var names: [String] = []
        if contains(.category) { names.append("Category") }
        if contains(.mode) { names.append("Mode") }
        if contains(.options) { names.append("Options") }
        if contains(.state) { names.append("State") }
        if contains(.interruptionReason) { names.append("InterruptionReason") }
        if contains(.waitingFor) { names.append("WaitingFor") }
        if contains(.foreground) { names.append("Foreground") }
        if contains(.ducked) { names.append("Ducked") }
        if contains(.duckGain) { names.append("DuckGain") }
        if contains(.muted) { names.append("Muted") }
        if contains(.otherAudioPlaying) { names.append("OtherAudioPlaying") }
        if contains(.silenceHint) { names.append("SecondaryAudioShouldBeSilencedHint") }
        if contains(.route) { names += ["CurrentRoute", "SampleRate"] }
        if contains(.availableInputs) { names.append("AvailableInputs") }
        if contains(.preferredInput) { names.append("PreferredInput") }
        if contains(.ignored) { names.append("IgnoredInterruption") }
        if contains(.preferences) || contains(.route) { names.append("IOBufferDuration") }
        return names
    }
}

extension ManagerProperties {
    var names: [String] {
        var names: [String] = []
        if contains(.silentMode) { names.append("SilentMode") }
        if contains(.screenLocked) { names.append("ScreenLocked") }
        if contains(.nowPlaying) { names.append("NowPlaying") }
        if contains(.route) { names.append("CurrentRoute") }
        if contains(.inputs) { names.append("AvailableInputs") }
        if contains(.outputs) { names.append("AvailableOutputs") }
        if contains(.server) { names += ["ServerConnected", "ServerName"] }
        return names
    }
}
