import DBus
import Foundation
import Glibc
import TestSupport
import Testing

/// Picture and sound of the same moment are at the same place of a film.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CaptureStepTests {
    private static let period = 1.0 / 30
    /// Seconds that picture and sound may differ.
    private static let limit = 0.020

    /// At each tick, how much later in the film its sound is than the picture of the same moment, in seconds.
    private func delays(_ path: String, _ camera: VirtualCamera, _ microphone: VirtualMicrophone) throws -> [Double] {
        let film = try ReadFilm(path)
        let ticks = microphone.ticks
        return try FilmSound(path).onsets.compactMap { sound in
            // The pictures around the tick; on a busy machine one may be shown twice.
            let place = Int(sound / Self.period)
            let near = (place - 10..<place + 10).filter(film.pictures.indices.contains).map {
                camera.time(ofPicture: film.pictures[$0]) - Double($0) * Self.period
            }
            guard near.count == 20 else { return nil }
            let begun = near.sorted()[10]
            guard let tick = ticks.min(by: { abs($0 - begun - sound) < abs($1 - begun - sound) }),
                abs(tick - begun - sound) < 0.2
            else { return nil }
            return sound - (tick - begun)
        }
    }

    @Test func everyFilm_hasItsSoundAtItsPictures() throws {
        let stage = try CaptureStage(hasTicks: true)
        let microphone = try #require(stage.microphone)
        for number in 0..<amount(4, long: 20) {
            let film = stage.path("film\(number).mp4")
            let record = try stage.sessionctl("camera", "record", "--duration", "3", film)
            #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
            let delays = try delays(film, stage.camera, microphone)
            print("sound after picture: \(delays.map { Int(($0 * 1_000).rounded()) }) ms")
            #expect(!delays.isEmpty && delays.allSatisfy { abs($0) < Self.limit }, "\(delays)")
        }
    }

    /// The sound comes back at its place, too.
    @Test func filmAfterACall_hasItsSoundAtItsPictures() throws {
        let stage = try CaptureStage(hasTicks: true)
        let microphone = try #require(stage.microphone)
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", "--on-call", "silence", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        let call = try stage.call()
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > 1 })
        try call.begin()
        #expect(record.line { $0.hasPrefix("interrupted") } != nil, "\(record.errors)")
        try call.end()
        #expect(eventually(timeout: 20) { (try? stage.property("Interrupted").boolValue) == false })
        let after = try stage.recorded()
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > after + 2 })
        record.signal(SIGINT)
        #expect(record.wait(timeout: 20) == .code(0), "\(record.errors)")
        let delays = try delays(film, stage.camera, microphone)
        #expect(!delays.isEmpty && delays.allSatisfy { abs($0) < Self.limit }, "\(delays)")
    }
}

/// When the sound of a film begins after silence, in seconds.
private struct FilmSound {
    let onsets: [Double]

    init(_ path: String) throws {
        let file = path + ".sound"
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-y", "-i", path, "-vn", "-ac", "1", "-ar", "48000", "-f", "s16le", file])
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        var found: [Double] = []
        var quiet = 0
        for place in stride(from: 0, to: bytes.count - 1, by: 2) {
            let sample = Int16(truncatingIfNeeded: Int(bytes[place]) | Int(bytes[place + 1]) << 8)
            if abs(Int(sample)) < 2_000 {
                quiet += 1
            } else {
                // What is cut by the beginning does not count.
                if quiet > 6_000 { found.append(Double(place / 2) / 48_000) }
                quiet = 0
            }
        }
        onsets = found
    }
}
