import EventLoop
import Foundation
import GStreamerBackend
import LiveBackend
import LiveStreaming
import PluginAPI
import TestSupport
import Testing

import class EventLoop.Timer

/// A live stream of a film whose pictures have numbers, and what it reported.
final class LiveStage {
    let loop = EventLoop()
    let folder: PrivateFolder
    let push: LivePush
    let film: TestMedia
    private(set) var errors: [SessionError] = []
    private(set) var recordingErrors: [SessionError] = []
    private(set) var end: LiveEnd?
    /// The states, with the times of their beginnings.
    private(set) var states: [(state: LiveState, time: Double)] = []
    private(set) var messages: [String] = []
    /// Every bit rate, in bits per second.
    private(set) var bitrates: [Int] = []
    private var isStarted = false

    init(
        to url: String, key: String = "", film: String = "short-gop.mp4", recording: String? = "recording.mp4",
        _ change: (inout LiveSettings) -> Void = { _ in }
    ) throws {
        let media = TestMedia.named(film)
        self.film = media
        let folder = try PrivateFolder()
        self.folder = folder
        var settings = LiveSettings(.file(try media.path()))
        settings.recording = recording.map { folder.path + "/" + $0 }
        change(&settings)
        push = try LivePush(
            LiveTarget(url, key: key), settings, StreamIdentity(clientName: "test"), on: loop)
        push.onEvent = { [unowned self] in heard($0) }
    }

    var recording: String { folder.path + "/recording.mp4" }
    var isOver: Bool { end != nil || !errors.isEmpty }

    private func heard(_ event: LiveEvent) {
        switch event {
        case .changed: break
        case .recordingFailed(let error): recordingErrors.append(error)
        case .microphoneLost(let message): messages.append(message)
        case .failed(let error): errors.append(error)
        case .finished(let end): self.end = end
        }
        look()
    }

    private func look() {
        if states.last?.state != push.state { states.append((push.state, monotonicNow())) }
        if !push.message.isEmpty, messages.last != push.message { messages.append(push.message) }
        if bitrates.last != push.bitrate { bitrates.append(push.bitrate) }
    }

    /// Starts, and waits until the source is open.
    func start() throws {
        var result: Result<Void, SessionError>?
        push.start { result = $0 }
        until { result != nil }
        try #require(result).get()
    }

    @discardableResult
    func until(_ timeout: Double = 20, _ condition: () -> Bool) -> Bool {
        loop.iterate(timeout: timeout, askingEvery: 0.01) {
            look()
            return condition()
        }
    }

    /// The loop runs that long.
    func pass(_ seconds: Double) {
        let end = monotonicNow() + seconds
        until(seconds + 5) { monotonicNow() >= end }
    }

    /// 20 s of pictures with numbers and noise, which need every bit that they may have.
    static func noisyFilm(in folder: PrivateFolder) throws -> String {
        let path = folder.path + "/noisy.mp4"
        let columns = "if(mod(floor(N/pow(2,floor(X/20))),2),200,50)+random(0)*60-30"
        let pictures = "color=s=320x180:r=25:d=20,geq=lum='\(columns)':cb=128:cr=128"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", "sine=440:d=20",
                "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "20", "-c:a", "aac", path,
            ], timeout: 120)
        return path
    }

    /// The numbers of the pictures in a file.
    static func numbers(_ path: String) throws -> [Int] {
        try TestMedia.numbers(["-i", path, "-vsync", "passthrough"], width: 320, height: 180)
    }

    static func probe(_ path: String, _ entries: String, _ stream: String = "v:0") throws -> [String] {
        try Child.run(
            "ffprobe",
            ["-v", "error", "-select_streams", stream, "-show_entries", entries, "-of", "csv=p=0", path]
        ).split(separator: "\n").map(String.init)
    }

    /// All that the stream told anybody.
    var texts: [String] { messages + errors.map(\.message) + recordingErrors.map(\.message) }
}

/// The numbers of all pictures of the film.
let allPictures = Array(0..<Int(TestMedia.length * 25))
