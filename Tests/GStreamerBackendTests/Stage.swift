import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport

import class EventLoop.Timer

/// A loop, a sound server with a null sink, a recording of it, a player, and what that reported.
final class Stage {
    let loop = EventLoop()
    let pulse: any PrivateServer
    let ear: Ear
    let player: GStreamerPlayer
    var finished: [Bool] = []
    var failures: [String] = []
    var losses: [String] = []
    var states: [PlayerState] = []
    var seeks: [Double] = []
    var tags: MediaTags?

    init(sinks: [String] = ["speaker"]) throws {
        pulse = try ServerKind.standard.server(sinks: sinks)
        ear = try Ear(pulse, sink: sinks[0])
        player = GStreamerPlayer(
            loop: loop, identity: StreamIdentity(clientName: "test player", server: pulse.serverString))
        player.onFinished = { [unowned self] in finished.append($0) }
        player.onServicesLost = { [unowned self] in losses.append($0) }
        player.onFailed = { [unowned self] in failures.append($0) }
        player.onStateChanged = { [unowned self] in states.append($0) }
        player.onSeeked = { [unowned self] in seeks.append($0) }
        player.onTags = { [unowned self] in tags = $0 }
    }

    /// Runs the loop until `condition` is true; false after the time limit.
    @discardableResult
    func until(_ timeout: Double = 10, _ condition: () -> Bool) -> Bool {
        let tick = Ticker(on: loop)
        defer { tick.stop() }
        return loop.iterate(timeout: timeout, until: condition)
    }

    /// Runs the loop for that long.
    func pass(_ seconds: Double) {
        let end = monotonicNow() + seconds
        until(seconds + 5) { monotonicNow() >= end }
    }

    /// Whether the tone gets that loud within the time limit, while the loop runs.
    func hears(_ hertz: Double, above: Double? = nil, below: Double? = nil, window: Double = 0.03) -> Bool {
        let start = ear.duration
        return until {
            guard ear.duration > start + window else { return false }
            let level = ear.level(of: hertz, last: window)
            return level >= (above ?? -.infinity) && level <= (below ?? .infinity)
        }
    }

    /// Waits until the recording has reached the end of a tone that the player has finished: on a busy machine it is up to a
    /// second behind.
    func isHeardToItsEnd(_ hertz: Double) -> Bool { hears(hertz, below: -60) }

    /// The same for a level that stays for 0.1 s without an interruption by the server.
    func hears(_ hertz: Double, at level: Double, within tolerance: Double) -> Bool {
        hears(hertz, above: level - tolerance, below: level + tolerance, window: 0.1)
    }
}

/// Wakes the loop every few milliseconds, for conditions outside of the loop.
final class Ticker {
    private var timer: Timer?

    init(on loop: EventLoop) {
        timer = Timer(on: loop) { [unowned self] in timer?.arm(after: 0.002) }
        timer?.arm(after: 0.002)
    }

    func stop() { timer = nil }
}

/// Sound files made by the tests.
enum Media {
    /// A 16-bit WAV with a sine for each stretch (0 Hz is silence) at −6 dBFS in all channels.
    static func wave(
        _ path: String, _ stretches: [(hertz: Double, seconds: Double)], rate: Int = 44_100, channels: Int = 2
    ) throws {
        try WaveFile.write(
            WaveFile.sines(stretches, rate: rate, channels: channels, amplitude: 16_384), rate: rate,
            channels: channels, to: path)
    }

    /// Encodes a WAV with GStreamer's elements, or with one of ffmpeg's encoders ("ffmpeg NAME").
    static func encode(_ wave: String, _ encoder: String, to path: String) throws {
        if encoder.hasPrefix("ffmpeg ") {
            try Child.run(
                "ffmpeg", ["-nostdin", "-loglevel", "error", "-i", wave, "-c:a", String(encoder.dropFirst(7)), path])
            return
        }
        try Child.run(
            "gst-launch-1.0",
            ["-q", "filesrc", "location=\(wave)", "!", "wavparse", "!", "audioconvert", "!", "audioresample", "!"]
                + encoder.split(separator: " ").map(String.init) + ["!", "filesink", "location=\(path)"])
    }

    /// The decoded file: its samples (the first channel), rate and channels.
    static func decode(_ path: String, in folder: PrivateFolder) throws -> (
        samples: [Int16], rate: Double, channels: Int
    ) {
        let decoded = folder.path + "/decoded-\(UInt32.random(in: 0 ... .max)).wav"
        try Child.run(
            "gst-launch-1.0",
            [
                "-q", "filesrc", "location=\(path)", "!", "decodebin", "!", "audioconvert", "!",
                "audio/x-raw,format=S16LE", "!", "wavenc", "!", "filesink", "location=\(decoded)",
            ])
        let data = [UInt8](try Data(contentsOf: URL(fileURLWithPath: decoded)))
        func number(_ place: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { $0 | Int(data[place + $1]) << ($1 * 8) }
        }
        let channels = number(22, 2)
        let samples = stride(from: 44, to: data.count - channels * 2 + 1, by: channels * 2).map {
            Int16(truncatingIfNeeded: number($0, 2))
        }
        return (samples, Double(number(24, 4)), channels)
    }

    /// The level of that frequency in dBFS, by correlation with a Hann window.
    static func level(of hertz: Double, in samples: ArraySlice<Int16>, rate: Double) -> Double {
        var (real, imaginary) = (0.0, 0.0)
        for (place, sample) in samples.enumerated() {
            let weight = 1 - cos(2 * .pi * Double(place) / Double(samples.count))
            let angle = 2 * .pi * hertz * Double(place) / rate
            real += weight * Double(sample) * cos(angle)
            imaginary += weight * Double(sample) * sin(angle)
        }
        return 20
            * log10(max(1e-6, 2 * (real * real + imaginary * imaginary).squareRoot() / Double(samples.count) / 32_768))
    }

    static func uri(_ path: String) -> String { URL(fileURLWithPath: path).absoluteString }

    /// The peak of this process's memory, in bytes.
    static var peakMemory: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) << 10
    }

    /// The open file descriptors of this process.
    static var descriptors: Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0 }
}
