import DBus
import EventLoop
import GStreamerBackend
import Glibc
import PluginAPI
import SessionKit

// Wiring: arguments in, a recorder on the bus, an exit code out: 0 done, 1 failed or refused, 64 wrong usage, 69 no bus.

func complain(_ text: String) {
    let bytes = Array("sessiond-recorder: \(text)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}

func record(_ arguments: PluginArguments) throws(Failure) -> Int32 {
    let host: PluginHost
    do throws(Failure) {
        host = try PluginHost(endsWithParent: arguments.endsWithParent)
    } catch {
        complain("no session bus: \(error.message)")
        return 69
    }
    let engine = GStreamerRecorder(loop: host.loop, identity: StreamIdentity(clientName: arguments.session.name))
    let recorder = RecorderPlugin(engine, arguments.session, on: host.connection, input: arguments.input)
    if let item = arguments.item {
        func refused(_ result: Result<Void, Failure>) -> Bool {
            guard case .failure(let failure) = result else { return false }
            complain("\(failure.name): \(failure.message)")
            host.quit(1, ending: recorder)
            return true
        }
        recorder.onFinished = { whole in host.quit(whole ? 0 : 1, ending: recorder) }
        recorder.onFailed = { message in
            complain(message)
            host.quit(1, ending: recorder)
        }
        recorder.prepare(path: FileURI.absolute(item) ?? item, settings: RecordingSettings()) { result in
            guard !refused(result) else { return }
            recorder.record(for: arguments.duration) { _ = refused($0) }
        }
    }
    try host.claim("org.sessiond1.Recorder.instance\(PluginHost.processID)")
    if let id = arguments.pluginID {
        host.register(id, kind: .recorder, object: RecorderPlugin.objectPath, name: arguments.session.name)
    }
    return host.run(recorder)
}

switch PluginArguments.parse(
    Array(CommandLine.arguments.dropFirst()), program: "sessiond-recorder", kind: .recorder, category: .record)
{
case .print(let text): print(text, terminator: "")
case .wrong(let message):
    complain(message)
    exit(64)
case .run(let arguments):
    do throws(Failure) {
        exit(try record(arguments))
    } catch {
        complain("\(error.name): \(error.message)")
        exit(1)
    }
}
