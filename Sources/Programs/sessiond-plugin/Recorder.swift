import DBus
import GStreamerBackend
import MediaValues
import PluginAPI
import PluginKit

/// Creates the recorder with GStreamer, and records the file of the command line.
func serveRecorder(_ host: PluginHost, _ arguments: PluginArguments) throws(Failure) -> any Plugin {
    let engine = GStreamerRecorder(loop: host.loop, identity: StreamIdentity(clientName: arguments.session.name))
    let recorder = RecorderPlugin(engine, arguments.session, on: host.connection, input: arguments.input)
    guard let item = arguments.item else { return recorder }
    func refused(_ result: Result<Void, Failure>) -> Bool {
        guard case .failure(let failure) = result else { return false }
        host.complain(failure)
        host.quit(1, ending: recorder)
        return true
    }
    var code: Int32 = 0
    recorder.onFinished = { whole in host.quit(whole ? code : 1, ending: recorder) }
    // Nothing would resume the recording of a command line, so it ends.
    recorder.onPaused = { [unowned recorder] message in
        code = 1
        host.complain(message)
        recorder.stop()
    }
    recorder.onFailed = { message in
        host.complain(message)
        host.quit(1, ending: recorder)
    }
    recorder.prepare(path: FileURI.absolute(item) ?? item, settings: RecordingSettings()) { result in
        guard !refused(result) else { return }
        recorder.record(for: arguments.duration) { _ = refused($0) }
    }
    return recorder
}
