import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing

@Suite(.serialized) struct PlayerTests {
    let folder: PrivateFolder
    let stage: Stage
    var player: GStreamerPlayer { stage.player }

    init() throws {
        folder = try PrivateFolder()
        stage = try Stage(sinks: ["speaker", "other"])
    }

    private func file(_ stretches: [(hertz: Double, seconds: Double)], channels: Int = 2) throws -> String {
        let path = folder.path + "/tone-\(UInt32.random(in: 0 ... .max)).wav"
        try Media.wave(path, stretches, channels: channels)
        return path
    }

    private func start(_ stretches: [(hertz: Double, seconds: Double)]) throws {
        player.load(uri: Media.uri(try file(stretches)))
        try player.play()
    }

    @Test func playingIsHeard_pauseIsSilent_andPlayContinuesAtTheSamePlace() throws {
        try start([(440, 0.6), (660, 20)])
        #expect(player.state == .playing)
        #expect(stage.hears(440, above: -10))
        player.pause()
        #expect(player.state == .paused)
        #expect(stage.hears(440, below: -60))
        let position = player.position
        #expect(position > 0 && position < 0.6)
        stage.pass(0.3)
        #expect(abs(player.position - position) < 0.05)
        #expect(stage.ear.level(of: 440, last: 0.2) < -60)
        let before = monotonicNow()
        try player.play()
        #expect(stage.hears(660, above: -10))
        // The rest of the first tone came before: 0.6 s of it in total.
        let rest = stage.ear.trace(440, window: 0.01, since: before).filter { $0.level > -20 }.count
        #expect(abs(Double(rest) * 0.01 - (0.6 - position)) < 0.06)
        #expect(stage.states == [.playing, .paused, .playing])
        #expect(stage.finished.isEmpty)
    }

    @Test func serverIsStopped_callsReturnAtOnce_andTakeEffectWhenItContinues() throws {
        try start([(440, 30)])
        #expect(stage.hears(440, above: -10))
        stage.pulse.suspend()
        let asked = monotonicNow()
        player.pause()
        player.seek(to: 10)
        player.volume = 0.5
        player.rate = 1.5
        player.rate = 1
        player.meteringEnabled = true
        stage.pass(0.1)
        #expect(player.state == .paused)
        #expect(abs(player.position - 10) < 0.1)
        #expect(player.duration == 30)
        // The calls must not wait for the server.
        #expect(monotonicNow() - asked < 10)
        stage.pulse.resume()
        #expect(stage.hears(440, below: -60))
        #expect(stage.until { stage.seeks == [10] }, "\(stage.seeks)")
        try player.play()
        #expect(stage.hears(440, above: -20))
        #expect(stage.until { player.position > 10.1 })
        #expect(stage.failures.isEmpty && stage.losses.isEmpty)
    }

    @Test func serverIsStopped_playerCanLoadAnotherItem() throws {
        try start([(440, 30)])
        #expect(stage.hears(440, above: -10))
        stage.pulse.suspend()
        player.load(uri: Media.uri(try file([(660, 30)])))
        try player.play()
        player.unload()
        player.load(uri: Media.uri(try file([(880, 30)])))
        try player.play()
        #expect(player.state == .playing)
        stage.pulse.resume()
        #expect(stage.hears(880, above: -10))
        #expect(stage.hears(660, below: -40))
        stage.pulse.suspend()
        player.pause()
        stage.pulse.kill()
        #expect(stage.until { !stage.losses.isEmpty })
    }

    @Test func end_isReportedOnce_andTheItemPlaysAgain() throws {
        try start([(440, 0.3)])
        #expect(stage.until { !stage.finished.isEmpty })
        stage.pass(0.2)
        #expect(stage.finished == [true])
        #expect(player.state == .stopped)
        #expect(player.position < 0.01)
        try player.play()
        #expect(stage.until { stage.finished.count == 2 })
        #expect(stage.failures.isEmpty)
        #expect(stage.isHeardToItsEnd(440))
        let heard = stage.ear.trace(440, window: 0.01).filter { $0.level > -20 }.count
        #expect(abs(Double(heard) * 0.01 - 0.6) < 0.05)
    }

    @Test func loadedItem_hasItsLengthBeforeItPlays() throws {
        player.load(uri: Media.uri(try file([(440, 2)], channels: 1)))
        #expect(stage.until { player.duration != nil })
        #expect(abs((player.duration ?? 0) - 2) < 0.01)
        #expect(player.channels == 1)
        #expect(player.state == .stopped)
        #expect(stage.ear.level(of: 440) < -60)
    }

    @Test func seek_isHeardAndReported() throws {
        try start([(440, 5), (660, 5)])
        #expect(stage.hears(440, above: -10))
        player.seek(to: 3)
        player.seek(to: 6)
        #expect(stage.hears(660, above: -10))
        #expect(stage.seeks.count == 1)
        #expect(abs((stage.seeks.first ?? 0) - 6) < 0.2)
        player.pause()
        player.seek(to: 1)
        #expect(stage.until { stage.seeks.count == 2 })
        #expect(abs(player.position - 1) < 0.01)
        try player.play()
        #expect(stage.hears(440, above: -10))
        player.seek(to: 1e12)
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(stage.finished == [true])
    }

    @Test func stop_isSilentAndReturnsToTheBeginning() throws {
        try start([(440, 1), (660, 20)])
        #expect(stage.hears(660, above: -10))
        player.stop()
        #expect(player.state == .stopped)
        #expect(player.position == 0)
        #expect(stage.hears(660, below: -60))
        try player.play()
        #expect(stage.hears(440, above: -10))
        #expect(stage.finished.isEmpty)
    }

    @Test func itemStartedAgainAtItsEnd_isHeardCompletely() throws {
        // On a used stream, the server has taken more than was heard, and libpulse's time may be wrong if it is read
        // repeatedly around an uncork: then the beginning was not heard, and less of it each time.
        let pitches = [600.0, 1_000, 1_400, 1_800, 2_200]
        player.load(uri: Media.uri(try file(pitches.map { ($0, 0.05) })))
        var short: [[Int]] = []
        for _ in 0..<40 {
            let begin = monotonicNow()
            stage.finished = []
            try player.play()
            #expect(stage.until { player.position <= 0.3 && !stage.finished.isEmpty })
            #expect(stage.finished == [true])
            // Playing takes at least the item's length; a busy machine may take longer.
            #expect(monotonicNow() - begin > 0.23)
            stage.pass(0.1)
            // The number of windows in which each tone was heard; each tone lasts ten windows.
            let heard = pitches.map { pitch in
                stage.ear.trace(pitch, window: 0.005, since: begin).filter { $0.level > -20 }.count
            }
            if heard.contains(where: { $0 < 6 }) { short.append(heard) }
        }
        // A server that runs out of data may lose a part of some tones.
        #expect(short.count <= 4, "\(short)")
    }

    @Test func loops_followWithoutAGap_andEndOnce() throws {
        player.loops = 2
        // 0.3 s are 132 periods, so that the wave continues without a jump.
        let uri = Media.uri(try file([(440, 0.3)]))
        var silences = [Double.infinity]
        // On a busy machine, the server may run out of data sometimes. A gap that the player makes would occur each
        // time.
        for _ in 0..<5 where !silences.isEmpty {
            let begin = monotonicNow()
            stage.finished = []
            player.load(uri: uri)
            try player.play()
            #expect(stage.until { !stage.finished.isEmpty })
            stage.pass(0.3)
            #expect(stage.finished == [true])
            let heard = stage.ear.sounding(since: begin)
            silences = heard.silences
            // Sound that comes too late is replaced by silence.
            #expect(abs(heard.span - 0.9) < 0.01, "\(heard)")
        }
        #expect(silences.isEmpty)
    }

    @Test func endlessLoops_endWhenLoopsAreSetToZero() throws {
        player.loops = -1
        try start([(440, 0.2)])
        stage.pass(1)
        #expect(stage.finished.isEmpty)
        #expect(stage.hears(440, above: -10))
        player.loops = 0
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(stage.finished == [true])
    }

    @Test(arguments: [99, 1.999, 2]) func loopThatIsSoughtToItsEnd_beginsAgain(place: Double) throws {
        player.loops = -1
        try start([(440, 0.5), (1_000, 1.5)])
        #expect(stage.until { player.position > 0.6 })
        player.seek(to: place)
        #expect(stage.until(5) { (0.01..<0.4).contains(player.position) })
        #expect(stage.hears(440, above: -10))
        #expect(stage.finished.isEmpty)
    }

    @Test(arguments: ["wav", "flac"]) func ducking_isARampDownAndUp(kind: String) throws {
        let wave = try file([(440, 30)])
        let path = kind == "wav" ? wave : folder.path + "/tone.flac"
        if kind == "flac" { try Media.encode(wave, "flacenc", to: path) }
        player.load(uri: Media.uri(path))
        try player.play()
        // Half of full scale.
        let normal = 20 * log10(0.5)
        #expect(stage.hears(440, at: normal, within: 0.1))
        var slopes = 0
        // A server that runs out of data interrupts the sound sometimes. A ramp that is too short would be too short
        // each time.
        for _ in 0..<5 where slopes < 40 {
            let begin = monotonicNow()
            player.duck(to: -12, over: 0.3)
            #expect(player.duckGain == -12)
            #expect(stage.hears(440, below: normal - 11.8, window: 0.1))
            stage.pass(0.5)
            #expect(stage.hears(440, at: normal - 12, within: 0.3))
            player.duck(to: 0, over: 0.3)
            #expect(stage.hears(440, above: normal - 0.2, window: 0.1))
            stage.pass(0.5)
            #expect(stage.hears(440, at: normal, within: 0.1))
            // Two successive windows of 10 ms differ by at most 2 dB, and a ramp of 12 dB takes its time.
            let trace = stage.ear.trace(440, window: 0.01, since: begin)
            // Silence comes from a server without data, not from a ramp. It is ignored, with the windows beside it.
            let isWhole = trace.map { $0.level > normal - 20 }
            let steps = trace.indices.dropFirst(2).dropLast().compactMap { place -> Double? in
                guard isWhole[(place - 2)...(place + 1)].allSatisfy({ $0 }) else { return nil }
                return abs(trace[place].level - trace[place - 1].level)
            }
            #expect((steps.max() ?? 99) < 2, "steepest step")
            slopes = steps.filter { $0 > 0.1 }.count
        }
        #expect(slopes >= 40)
    }

    @Test func volumeAndMute_areHeard_andTheServersVolumeStays() throws {
        try start([(440, 30)])
        #expect(stage.hears(440, above: -7))
        player.volume = 0.1
        #expect(stage.hears(440, below: -25))
        #expect(stage.hears(440, above: -27))
        player.isMuted = true
        #expect(stage.hears(440, below: -80))
        player.isMuted = false
        player.volume = 1
        #expect(stage.hears(440, above: -7))
        let inputs = try stage.pulse.pactl(["list", "sink-inputs"])
        #expect(inputs.contains("Mute: no"))
        #expect(inputs.contains("100%"))
        #expect(inputs.contains("media.role = \"music\""))
        #expect(inputs.contains("application.name = \"test player\""))
    }

    @Test func panRateAndMeters_changeWhilePlaying() throws {
        try start([(440, 30)])
        #expect(stage.hears(440, above: -7))
        #expect(player.meters().isEmpty)
        player.meteringEnabled = true
        #expect(
            stage.until {
                guard let level = player.meters().first else { return false }
                return abs(level.peak + 6) < 0.5 && abs(level.average + 9) < 0.5
            }, "\(player.meters())")
        #expect(player.meters().count == 2)
        player.meteringEnabled = false
        #expect(player.meters().isEmpty)
        player.pan = -1
        // The recording adds both channels.
        #expect(stage.hears(440, below: -11))
        #expect(stage.hears(440, above: -13))
        player.pan = 0
        #expect(stage.hears(440, above: -7))
        player.rate = 2
        stage.pass(0.5)
        #expect(stage.hears(440, above: -9), "the pitch must not change")
        // On a busy machine, one second may begin or end late, but not each.
        let speeds = (0..<5).lazy.map { _ in
            let (position, time) = (player.position, monotonicNow())
            stage.pass(1)
            return (player.position - position) / (monotonicNow() - time)
        }
        #expect(speeds.contains { abs($0 - 2) < 0.15 })
        #expect(stage.failures.isEmpty)
    }

    @Test(arguments: ["wav", "ogg"]) func device_isSelectedAndChangedWhilePlaying(kind: String) throws {
        let other = try Ear(stage.pulse, sink: "other")
        player.device = "other"
        let wave = try file([(440, 20)])
        let path = kind == "wav" ? wave : folder.path + "/tone.ogg"
        if kind == "ogg" { try Media.encode(wave, "vorbisenc ! oggmux", to: path) }
        player.load(uri: Media.uri(path))
        try player.play()
        #expect(stage.until { other.level(of: 440) > -7 })
        #expect(stage.ear.level(of: 440, last: 0.2) < -60)
        let position = player.position
        player.device = "speaker"
        #expect(stage.hears(440, above: -7))
        #expect(player.position >= position - 0.1)
        #expect(other.level(of: 440, last: 0.02) < -60)
    }

    @Test(arguments: [
        ("flac", "flacenc"), ("ogg", "vorbisenc ! oggmux"), ("opus", "opusenc ! oggmux"),
        ("mp3", "lamemp3enc target=bitrate cbr=true bitrate=128"),
        ("tagged.mp3", "lamemp3enc ! xingmux ! id3v2mux"), ("mka", "vorbisenc ! matroskamux"),
        ("m4a", "ffmpeg aac"), ("alac.m4a", "ffmpeg alac"), ("aac", "ffmpeg aac"), ("aiff", "ffmpeg pcm_s16be"),
        ("u8.wav", "ffmpeg pcm_u8"), ("s24.wav", "ffmpeg pcm_s24le"), ("f32.wav", "ffmpeg pcm_f32le"),
        ("alaw.wav", "ffmpeg pcm_alaw"), ("au", "ffmpeg pcm_s16be"), ("f64.au", "ffmpeg pcm_f64be"),
        ("ulaw.au", "ffmpeg pcm_mulaw"), ("caf", "ffmpeg pcm_s16be"), ("s8.caf", "ffmpeg pcm_s8"),
        ("f32.caf", "ffmpeg pcm_f32le"), ("alaw.caf", "ffmpeg pcm_alaw"), ("ima4.caf", "ffmpeg adpcm_ima_qt"),
        ("ima4.aiff", "ffmpeg adpcm_ima_qt"), ("ulaw.aiff", "ffmpeg pcm_mulaw"),
    ])
    func everyFormat_isHeardWithItsLength_atEveryRate(kind: String, encoder: String) throws {
        let path = folder.path + "/tone.\(kind)"
        try Media.encode(try file([(440, 3)]), encoder, to: path)
        player.load(uri: Media.uri(path))
        try player.play()
        let heard = stage.hears(440, above: -8)
        #expect(heard && stage.failures.isEmpty, "\(stage.failures)")
        // ADTS does not contain its length.
        if kind != "aac" { #expect(abs((player.duration ?? 0) - 3) < 0.15, "\(player.duration ?? -1)") }
        for rate in [0.5, 2] {
            player.rate = rate
            player.seek(to: 0.5)
            stage.pass(0.3)
            #expect(stage.hears(440, above: -10), "at \(rate)")
            #expect(stage.finished.isEmpty)
        }
        player.seek(to: 2)
        #expect(stage.until { stage.seeks.count >= 3 && !stage.finished.isEmpty })
        #expect(stage.finished == [true])
        // The item starts again at that rate.
        let begin = monotonicNow()
        try player.play()
        #expect(stage.until { stage.finished.count == 2 })
        #expect(stage.isHeardToItsEnd(440))
        #expect(stage.ear.trace(440, window: 0.02, since: begin).filter { $0.level > -10 }.count > 60)
        // The item is stopped in the middle, and started again.
        try player.play()
        #expect(stage.hears(440, above: -10))
        player.stop()
        try player.play()
        #expect(stage.until { stage.finished.count == 3 })
        #expect(stage.failures == [])
    }

    @Test func nothingLoaded_cannotPlay() {
        #expect(throws: SessionError.self) { try player.play() }
        player.pause()
        player.stop()
        player.seek(to: 3)
        player.duck(to: -12, over: 0.1)
        #expect(player.state == .stopped)
        #expect(player.meters().isEmpty)
    }

    @Test func fiftyLoads_leaveNoDescriptorsBehind() async throws {
        let uri = Media.uri(try file([(440, 0.5)]))
        let server = stage.pulse.serverString
        // In a separate process, because other tests open files meanwhile.
        await #expect(processExitsWith: .success) { [uri = uri as String, server = server as String] in
            let loop = EventLoop()
            let tick = Ticker(on: loop)
            let player = GStreamerPlayer(loop: loop, identity: StreamIdentity(clientName: "loads", server: server))
            var failures = 0
            player.onFailed = { _ in failures += 1 }
            func turn() throws {
                player.load(uri: uri)
                try player.play()
                loop.iterate(timeout: 10) { player.position > 0.02 || failures > 0 }
                player.unload()
            }
            try turn()
            let before = Media.descriptors
            for _ in 0..<50 { try turn() }
            tick.stop()
            #expect(failures == 0)
            #expect(Media.descriptors <= before)
        }
    }
}
