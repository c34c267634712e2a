import Foundation
import LiveBackend
import PluginAPI
import TestSupport
import Testing

/// What filters do to the pictures that are sent and recorded.
@Suite(.serialized) struct LiveFilterTests {
    @Test(arguments: [
        ("mirror", LiveFilter.mirror), ("smooth", .smooth), ("brightness=-0.5", .brightness(-0.5)),
        ("contrast=2", .contrast(2)), ("saturation=0", .saturation(0)), ("text=a = b", .text("a = b")),
        ("interruption-text=<back> soon", .interruptionText("<back> soon")), ("logo=/a b.png", .logo("/a b.png")),
    ])
    func word_isRead(_ word: String, _ filter: LiveFilter) throws {
        #expect(try LiveFilter(word) == filter)
        #expect(try LiveFilter(filter.word) == filter)
    }

    @Test(arguments: [
        "", "mirror=1", "smooth=", "blur", "brightness", "brightness=2", "contrast=-1", "saturation=nan", "text",
        "text=",
        "text=" + String(repeating: "x", count: 501), "logo=relative.png", "logo", "videotestsrc ! fakesink",
    ])
    func other_isBadParameter(_ word: String) {
        let error = #expect(throws: SessionError.self) { try LiveFilter(word) }
        #expect(error?.code == .badParameter)
    }

    /// The brightest pixel of a part of each picture, as ffmpeg crops it.
    private func peaks(_ path: String, _ crop: String) throws -> [UInt8] {
        let raw = path + ".gray"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-i", path, "-vf", "crop=\(crop)", "-vsync", "passthrough", "-f",
                "rawvideo",
                "-pix_fmt", "gray", raw,
            ])
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
        let numbers = crop.split(separator: ":").compactMap { Int($0) }
        let size = numbers[0] * numbers[1]
        return stride(from: 0, to: bytes.count - size + 1, by: size).map { bytes[$0..<($0 + size)].max() ?? 0 }
    }

    @Test func textAndLogo_areInThePictures_whereTheyBelong() throws {
        let folder = try PrivateFolder()
        let logo = folder.path + "/logo.png"
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "color=white:s=40x40:d=0.1", "-frames:v", "1", logo])
        let stage = try LiveStage(to: folder.path + "/live") {
            // The columns of the film become black.
            $0.filters = [.brightness(-1), .text("<HELLO> & HELLO"), .logo(logo)]
        }
        try stage.start()
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended && stage.texts.isEmpty, "\(stage.texts)")
        #expect(try peaks(stage.recording, "160:60:80:120").allSatisfy { $0 > 180 })
        #expect(try peaks(stage.recording, "40:40:264:16").allSatisfy { $0 > 180 })
        // Nothing else is there.
        #expect(try peaks(stage.recording, "240:90:0:0").allSatisfy { $0 < 60 })
    }

    @Test func mirror_changesTheSides() throws {
        let folder = try PrivateFolder()
        let stage = try LiveStage(to: folder.path + "/live") { $0.filters = [.mirror] }
        try stage.start()
        #expect(stage.until { stage.isOver })
        let numbers = try LiveStage.numbers(stage.recording)
        // The highest bit is the first column now.
        #expect(numbers.map { Int(UInt16($0).bitSwapped) } == allPictures)
    }

    /// A phone that is held upright writes its pictures with a rotation.
    @Test func filmOfAPhone_isSentUpright() throws {
        let folder = try PrivateFolder()
        let stage = try LiveStage(to: folder.path + "/live", film: "rotated.mp4")
        try stage.start()
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended && stage.texts.isEmpty, "\(stage.texts)")
        let size = try LiveStage.probe(stage.recording, "stream=width,height").first
        #expect(size == "180,320", "\(size ?? "none")")
    }

    @Test func interruption_isToldInThePictures() throws {
        let folder = try PrivateFolder()
        let stage = try LiveStage(to: folder.path + "/live") {
            $0.filters = [.brightness(-1), .interruptionText("Back soon")]
        }
        try stage.start()
        stage.pass(2)
        stage.push.isInterrupted = true
        stage.pass(2)
        stage.push.isInterrupted = false
        #expect(stage.until { stage.isOver })
        let isTold = try peaks(stage.recording, "160:60:80:60").map { $0 > 150 }
        // Once, for about as long as the interruption.
        #expect(isTold.first == false && isTold.last == false)
        #expect(zip(isTold, isTold.dropFirst()).filter { $0 != $1 }.count == 2)
        #expect((25...100).contains(isTold.count(where: \.self)), "\(isTold.count(where: \.self)) pictures")
    }

    @Test func logoThatIsNotThere_isNamed() throws {
        let folder = try PrivateFolder()
        let error = #expect(throws: SessionError.self) {
            try LiveStage(to: folder.path + "/live") { $0.filters = [.logo("/nowhere/logo.png")] }
        }
        #expect(error?.message.contains("/nowhere/logo.png") == true)
    }
}

extension UInt16 {
    fileprivate var bitSwapped: UInt16 { (0..<16).reduce(0) { $0 << 1 | (self >> $1) & 1 } }
}
