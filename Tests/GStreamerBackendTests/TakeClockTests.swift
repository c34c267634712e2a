import CGStreamer
import CStreaming
import EventLoop
import ReferenceModel
import Testing

@testable import GStreamerBackend
@testable import ReferenceModel

/// Which pictures and which samples are in a film: with what the pads would tell.
@Suite struct TakeClockTests {
    /// A film of 30 pictures and 48,000 samples in a second, and what a camera and a microphone send to it. The pictures come at
    /// 7 ms + n / 30 s, and the sound in buffers of 10 ms whose times are off by up to a few microseconds.
    private final class Stage {
        let pipeline: Pipeline
        let take: OpaquePointer
        private var received: [String] = []
        /// The messages so far; waits for the first one.
        var posted: [String] {
            _ = loop.iterate(timeout: 5) { !received.isEmpty }
            return received
        }
        /// The numbers of the pictures that are in the film, with their times in it.
        private(set) var pictures: [(number: Int, place: UInt64)] = []
        /// The samples that are in the film: their numbers at the source.
        private(set) var samples: [Range<Int>] = []
        private(set) var places: [UInt64] = []
        private let rate: Int
        private var random: SplitMix64
        private var nextPicture = 0
        private var nextSound = 0
        private let start: Int
        /// How much later the pictures, and the sound, arrive than they are made, in nanoseconds.
        var pictureDelay = 40_000_000
        var soundDelay = 15_000_000
        let loop = EventLoop()
        /// How many pictures the encoder of a live stream has at a time; nil: the film encodes its pictures itself.
        var encoding: Int? { didSet { if encoding != nil { shim_take_encoded(take, nil) } } }
        /// The pictures that the encoder was asked to make key frames of.
        private(set) var keys: [Int] = []

        init(_ rate: Int = 30, hasSound: Bool = true, start: Int = 7_000_000, seed: UInt64 = 1) throws {
            pipeline = try Pipeline("fakesrc ! fakesink", on: loop)
            take = shim_take_new(pipeline.element, gint(rate), 1, hasSound ? 48_000 : 0)
            (self.rate, self.start) = (rate, start)
            random = SplitMix64(seed: seed)
            pipeline.onMessage = { [unowned self] message in
                guard message.pointee.type == GST_MESSAGE_APPLICATION else { return }
                if let name = gst_message_get_structure(message).flatMap({ gst_structure_get_name($0) }) {
                    received.append(String(cString: name))
                }
            }
            // Before that, the bus drops all messages.
            pipeline.setState(GST_STATE_READY)
        }

        deinit { shim_take_free(UnsafeMutableRawPointer(take)) }

        func time(ofPicture number: Int) -> Int { start + number * 1_000_000_000 / rate }

        /// Everything that arrives until that time.
        func run(to time: Int, hasSound: Bool = true) {
            while true {
                let picture = self.time(ofPicture: nextPicture) + pictureDelay
                let sound = hasSound ? (nextSound + 1) * 10_000_000 + soundDelay : .max
                guard min(picture, sound) <= time else { break }
                if picture <= sound { sendPicture() } else { sendSound() }
            }
        }

        private func sendPicture() {
            if let encoding {
                if shim_take_enters(take, guint64(time(ofPicture: nextPicture))) != 0 { keys.append(nextPicture) }
                nextPicture += 1
                if nextPicture > encoding { receive(nextPicture - encoding - 1) }
            } else {
                receive(nextPicture)
                nextPicture += 1
            }
        }

        private func receive(_ nextPicture: Int) {
            let time = guint64(self.time(ofPicture: nextPicture))
            var place: guint64 = 0
            shim_take_saw_picture(take, time)
            if shim_take_picture(take, time, &place) != 0 { pictures.append((nextPicture, UInt64(place))) }
        }

        func skipPictures(_ count: Int) { nextPicture += count }

        private func sendSound() {
            let time = nextSound * 10_000_000
            let shaken = guint64(max(0, time + Int(random.next() % 8_000) - 4_000))
            var (skip, count, place): (guint64, guint64, guint64) = (0, 0, 0)
            shim_take_saw_sound(take, shaken + 10_000_000)
            if shim_take_sound(take, shaken, 480, &skip, &count, &place) != 0 {
                let first = nextSound * 480 + Int(skip)
                samples.append(first..<(first + Int(count)))
                places.append(UInt64(place))
            }
            nextSound += 1
        }

        var sampleCount: Int { samples.reduce(0) { $0 + $1.count } }

        /// Whether the film has no gap and no overlap: its pictures are one step apart, and so are its samples.
        func expectWhole() {
            for (place, picture) in pictures.enumerated() {
                #expect(picture.place == UInt64(place * 1_000_000_000 / rate))
            }
            var next = 0
            for (range, place) in zip(samples, places) {
                #expect(abs(Int(place) - next * 1_000_000_000 / 48_000) <= 1)
                next += range.count
            }
        }
    }

    @Test func limit_isExactInPicturesAndSamples() throws {
        let stage = try Stage()
        stage.run(to: 300_000_000)
        shim_take_begin(stage.take, 150)
        stage.run(to: 7_000_000_000)
        #expect(stage.pictures.count == 150 && stage.sampleCount == 240_000)
        #expect(stage.posted == ["take-full"])
        stage.expectWhole()
        // The first sample is of the time of the first picture.
        let first = try #require(stage.pictures.first?.number)
        #expect(abs(stage.samples[0].lowerBound - stage.time(ofPicture: first) * 48 / 1_000_000) <= 1)
    }

    /// A camera that is opened again sends nothing for a while: no picture has the last number of the film.
    @Test func limitWithinAGapOfThePictures_endsTheFilm() throws {
        let stage = try Stage()
        stage.run(to: 300_000_000)
        shim_take_begin(stage.take, 30)
        stage.run(to: 1_000_000_000)
        stage.skipPictures(30)
        stage.run(to: 3_000_000_000)
        #expect(stage.posted == ["take-full"])
        #expect(stage.pictures.count < 30 && stage.sampleCount == 48_000)
    }

    /// Without sound nothing happens while the camera is away: it is no part of the film.
    @Test func cameraThatComesBackLate_leavesNoHoleInAFilmWithoutSound() throws {
        let stage = try Stage(hasSound: false)
        shim_take_begin(stage.take, 60)
        stage.run(to: 1_000_000_000, hasSound: false)
        shim_take_pause(stage.take)
        shim_take_resume(stage.take)
        stage.skipPictures(120)
        stage.run(to: 8_000_000_000, hasSound: false)
        #expect(stage.pictures.count == 60)
        #expect(stage.posted == ["take-full"])
        stage.expectWhole()
    }

    /// The encoder has some pictures at the moment at which the film begins, pauses and goes on.
    @Test(arguments: 0...3, [true, false])
    func filmBesideALiveStream_beginsEachPartWithAKeyFrame(pictures: Int, hasSound: Bool) throws {
        for seed in 1...UInt64(10) {
            var random = SplitMix64(seed: seed)
            let stage = try Stage(hasSound: hasSound, start: Int(random.next() % 33_000_000), seed: seed)
            stage.encoding = pictures
            var time = 500_000_000
            stage.run(to: time, hasSound: hasSound)
            shim_take_begin(stage.take, 400)
            for _ in 0..<30 {
                time += 5_000_000 + Int(random.next() % 300_000_000)
                stage.run(to: time, hasSound: hasSound)
                shim_take_pause(stage.take)
                time += 5_000_000 + Int(random.next() % 300_000_000)
                stage.run(to: time, hasSound: hasSound)
                shim_take_resume(stage.take)
            }
            stage.run(to: time + 20_000_000_000, hasSound: hasSound)
            #expect(stage.posted == ["take-full"])
            #expect(stage.pictures.count == 400 && stage.sampleCount == (hasSound ? 640_000 : 0))
            stage.expectWhole()
            let numbers = stage.pictures.map(\.number)
            let firsts = zip([-2] + numbers, numbers).filter { $0 + 1 != $1 }.map(\.1)
            #expect(Set(firsts).isSubset(of: stage.keys), "\(firsts) \(stage.keys)")
        }
    }

    @Test(arguments: [24, 25, 30, 50, 60]) func otherRates_areExactToo(rate: Int) throws {
        let stage = try Stage(rate)
        shim_take_begin(stage.take, UInt(rate) * 2)
        stage.run(to: 4_000_000_000)
        #expect(stage.pictures.count == rate * 2 && stage.sampleCount == 96_000)
        stage.expectWhole()
    }

    @Test func pauses_cutPicturesAndSoundAtTheSameTimes() throws {
        for seed in 1...UInt64(20) {
            var random = SplitMix64(seed: seed)
            let stage = try Stage(start: Int(random.next() % 33_000_000), seed: seed)
            stage.pictureDelay = Int(random.next() % 80_000_000)
            stage.soundDelay = Int(random.next() % 80_000_000)
            shim_take_begin(stage.take, 0)
            var time = 500_000_000
            for _ in 0..<100 {
                stage.run(to: time)
                shim_take_pause(stage.take)
                time += 5_000_000 + Int(random.next() % 300_000_000)
                stage.run(to: time)
                shim_take_resume(stage.take)
                time += 5_000_000 + Int(random.next() % 300_000_000)
            }
            stage.run(to: time)
            shim_take_close(stage.take)
            stage.run(to: time + 1_000_000_000)
            #expect(stage.posted == ["take-over"], "seed \(seed)")
            #expect(stage.pictures.count > 100)
            #expect(stage.sampleCount == stage.pictures.count * 1_600, "seed \(seed)")
            stage.expectWhole()
            // What is next to each other in the film, or in one part of it, belongs together: each picture with its sound.
            var (buffer, before) = (0, 0)
            for (place, picture) in stage.pictures.enumerated() {
                while before + stage.samples[buffer].count <= place * 1_600 {
                    before += stage.samples[buffer].count
                    buffer += 1
                }
                let first = stage.samples[buffer].lowerBound + place * 1_600 - before
                let expected = stage.time(ofPicture: picture.number) * 48 / 1_000_000
                #expect(abs(first - expected) <= 2, "seed \(seed), picture \(picture.number)")
            }
        }
    }

    @Test func picturesThatDoNotCome_areAGapAndNotAShift() throws {
        let stage = try Stage()
        shim_take_begin(stage.take, 0)
        stage.run(to: 1_000_000_000)
        stage.skipPictures(10)
        stage.run(to: 3_000_000_000)
        shim_take_close(stage.take)
        stage.run(to: 3_200_000_000)
        let last = try #require(stage.pictures.last)
        #expect(Int(shim_take_pictures(stage.take)) == stage.pictures.count + 10)
        #expect(stage.sampleCount == Int(shim_take_pictures(stage.take)) * 1_600)
        #expect(Int(last.place) == (Int(shim_take_pictures(stage.take)) - 1) * 1_000_000_000 / 30)
    }

    @Test func filmWithoutSound_endsWithItsPictures() throws {
        let stage = try Stage(hasSound: false)
        shim_take_begin(stage.take, 30)
        stage.run(to: 2_000_000_000, hasSound: false)
        #expect(stage.pictures.count == 30 && stage.posted == ["take-full"])
    }

    @Test func filmThatIsClosedBeforeItsFirstPicture_isOver() throws {
        let stage = try Stage()
        shim_take_begin(stage.take, 0)
        shim_take_close(stage.take)
        stage.run(to: 1_000_000_000)
        #expect(stage.posted == ["take-over"])
    }
}
