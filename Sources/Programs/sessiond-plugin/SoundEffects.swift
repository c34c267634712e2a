import DBus
import GStreamerBackend
import MediaValues
import PluginAPI
import PluginKit
import PulseBackend

/// Creates the sound effects with the sound server's cache, and plays the effect of the command line.
func serveSoundEffects(_ host: PluginHost, _ arguments: PluginArguments) throws(Failure) -> any Plugin {
    let effects = SoundEffectsPlugin(
        decoder: GStreamerDecoder(loop: host.loop),
        cache: PulseSampleCache(loop: host.loop, name: arguments.session.name), arguments.session,
        on: host.connection, host.loop)
    guard let item = arguments.item else { return effects }
    func refused(_ failure: Failure) {
        host.complain(failure)
        host.quit(1, ending: effects)
    }
    effects.onCompleted = { _, _, wasWhole in host.quit(wasWhole ? 0 : 1, ending: effects) }
    effects.load(path: FileURI.absolute(item) ?? item) { result in
        switch result {
        case .failure(let failure): refused(failure)
        case .success(let (effect, _)):
            effects.play(effect) { if case .failure(let failure) = $0 { refused(failure) } }
        }
    }
    return effects
}
