import PluginAPI

extension Wording {
    /// The message of an error as users of this program need it: the words of D-Bus and of programs become commands and
    /// options.
    static func withCommands(_ message: String) -> String {
        phrases.reduce(message) { $0.replacing(first: $1.old, with: $1.new) }
    }

    private static let phrases = [
        (old: "; use a uid of AvailableInputs (sessionctl route)", new: "; 'sessionctl route' lists the inputs"),
        (
            old: "there is no sound server; start PulseAudio or PipeWire, and wait for ServicesReset",
            new: "there is no sound server: 'sessionctl doctor' tells how to start one"
        ),
        (old: "or give the key apart", new: "or give the key with --key-file"),
        (old: "with a key apart, the address", new: "with --key-file, the address"),
        (old: "choose another name, or let it be replaced", new: replacement),
    ]

    /// After "exists already: ".
    static let replacement = "choose another name, or replace it with --overwrite"
}
