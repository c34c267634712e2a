import DBus
import EventLoop
import GStreamerBackend
import Glibc
import PluginAPI
import PulseBackend
import SessionKit

// Wiring: arguments in, sound effects on the bus, an exit code out: 0 done, 1 failed or refused, 64 wrong usage, 69 no bus.

func complain(_ text: String) {
    let bytes = Array("sessiond-effects: \(text)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}

func serve(_ arguments: PluginArguments) throws(Failure) -> Int32 {
    let host: PluginHost
    do throws(Failure) {
        host = try PluginHost(endsWithParent: arguments.endsWithParent)
    } catch {
        complain("no session bus: \(error.message)")
        return 69
    }
    let effects = SoundEffectsPlugin(
        decoder: GStreamerDecoder(loop: host.loop),
        cache: PulseSampleCache(loop: host.loop, name: arguments.session.name), arguments.session,
        on: host.connection, host.loop)
    if let item = arguments.item {
        func refused(_ failure: Failure) {
            complain("\(failure.name): \(failure.message)")
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
    }
    try host.claim("org.sessiond1.SoundEffects.instance\(PluginHost.processID)")
    if let id = arguments.pluginID {
        host.register(
            id, kind: .soundEffects, object: SoundEffectsPlugin.objectPath, name: arguments.session.name)
    }
    return host.run(effects)
}

switch PluginArguments.parse(
    Array(CommandLine.arguments.dropFirst()), program: "sessiond-effects", kind: .soundEffects, category: .ambient)
{
case .print(let text): print(text, terminator: "")
case .wrong(let message):
    complain(message)
    exit(64)
case .run(let arguments):
    do throws(Failure) {
        exit(try serve(arguments))
    } catch {
        complain("\(error.name): \(error.message)")
        exit(1)
    }
}
