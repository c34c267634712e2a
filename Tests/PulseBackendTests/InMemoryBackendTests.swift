import InMemoryBackend
import PluginAPI
import Testing

@Suite struct InMemoryBackendTests {
    private final class Queue {
        var work: [() -> Void] = []
        func run() {
            while !work.isEmpty { work.removeFirst()() }
        }
    }

    private let queue = Queue()
    private let speaker = Port(type: .speaker, name: "Speaker", uid: "speaker", channels: 2)
    private let phones = Port(type: .headphones, name: "Headphones", uid: "phones", channels: 2)

    private func started() -> (InMemoryBackend, Recorder) {
        let queue = queue
        let backend = InMemoryBackend(outputs: [speaker]) { queue.work.append($0) }
        let told = Recorder(backend)
        backend.start()
        queue.run()
        told.clear()
        return (backend, told)
    }

    @Test func pluggedAndUnplugged_reasonsOneAndTwo() {
        let (backend, told) = started()
        backend.plug(phones)
        backend.unplug("phones")
        #expect(
            told.changes == [
                .route(.newDeviceAvailable, from: ["speaker"], to: ["phones"]),
                .route(.oldDeviceUnavailable, from: ["phones"], to: ["speaker"]),
            ])
        backend.plug(phones, becomesRoute: false)
        #expect(told.changes.last == .route(.newDeviceAvailable, from: ["speaker"], to: ["speaker"]))
        backend.reconfigure(Port(type: .speaker, name: "Speaker", uid: "speaker", channels: 6))
        #expect(told.changes.last == .route(.routeConfigurationChange, from: ["speaker"], to: ["speaker"]))
    }

    @Test func lostAndReset_onceEach_requestsFailMeanwhile() {
        let (backend, told) = started()
        backend.lose()
        backend.lose()
        var code: SessionError.Code?
        backend.selectOutput("speaker", reason: .override) { code = $0.code }
        #expect(code == nil, "never before the request returned")
        queue.run()
        #expect(code == .mediaServicesFailed)
        backend.plug(phones)
        backend.reset()
        backend.reset()
        #expect(told.all == [.lost, .reset])
        #expect(backend.snapshot.route.outputs == [phones])
    }

    @Test func requests_changeTheirStreamAndRoute() {
        let (backend, told) = started()
        let id = AudioStream.ID(.playback, 1)
        backend.plug(phones, becomesRoute: false)
        backend.put(AudioStream(id: id, processID: 7, portUID: "speaker"))
        backend.moveStream(id, to: "phones") { #expect($0.isSuccess) }
        backend.setMuted(true, stream: id) { #expect($0.isSuccess) }
        backend.selectOutput("phones", reason: .override) { #expect($0.isSuccess) }
        backend.setMuted(true, stream: .init(.record, 1)) { #expect($0.code == .mediaServicesFailed) }
        queue.run()
        #expect(backend.snapshot.streams.first?.portUID == "phones")
        #expect(backend.snapshot.streams.first?.isMuted == true)
        #expect(told.changes.last == .route(.override, from: ["speaker"], to: ["phones"]))
    }
}
