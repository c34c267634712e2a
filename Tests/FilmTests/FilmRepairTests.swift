import FileFormats
import Foundation
import Glibc
import TestSupport
import Testing

/// Recordings of GStreamer that end without their end, repaired by the real `sessionctl`, and played by ffmpeg.
@Suite struct FilmRepairTests {
    private let folder: PrivateFolder
    private var path: String { folder.path + "/film.mp4" }

    init() throws { folder = try PrivateFolder() }

    /// A film of 2 s in fragments of half a second, as a recorder writes it.
    private func record(_ encoder: String, wave: String) throws {
        let words =
            "mp4mux name=m fragment-duration=500 ! filesink location=\(path) "
            + "videotestsrc num-buffers=60 ! video/x-raw,width=160,height=120,framerate=30/1 ! \(encoder) ! h264parse "
            + "! queue ! m. audiotestsrc num-buffers=94 samplesperbuffer=1024 wave=\(wave) "
            + "! audio/x-raw,rate=48000 ! audioconvert ! avenc_aac ! aacparse ! queue ! m."
        try Child.run("gst-launch-1.0", ["-q"] + words.split(separator: " ").map(String.init))
    }

    /// The sums of all pictures and all sound that ffmpeg decodes; fails if it finds any fault.
    private func decoded() throws -> [String] {
        let text = try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-xerror", "-i", path, "-map", "0", "-f", "framemd5", "-"])
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
            let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            return fields.count == 6 ? fields[0] + " " + fields[5] : nil
        }.sorted()
    }

    private func bytes() throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

    @discardableResult
    private func repair() throws -> String {
        try Child.run(try builtProduct(named: "sessionctl"), ["repair", path])
    }

    private func isFragmented() throws -> Bool { try #require(MovieIndex(Array(path.utf8))).isFragmented }

    @Test(arguments: [
        ("x264enc tune=zerolatency key-int-max=30", "silence"), ("x264enc bframes=2 key-int-max=30", "ticks"),
        ("openh264enc", "silence"),
    ])
    func filmCutInItsLastFragment_isOrdinaryAndHasAllThatIsWhole(encoder: String, wave: String) throws {
        try record(encoder, wave: wave)
        let whole = try bytes()
        // Where the header of the last fragment, which is whole, begins.
        let header = Array("moof".utf8)
        let last = try #require(
            whole.indices.dropLast(4).last { whole[$0] == header[0] && whole[$0..<($0 + 4)].elementsEqual(header) })
        let end = last - 4
        try Data(whole[..<end]).write(to: URL(fileURLWithPath: path))
        let before = try decoded()
        #expect(before.count > 100)
        try Data(whole[..<(end + 100)]).write(to: URL(fileURLWithPath: path))
        #expect(try isFragmented())
        #expect(try repair().contains("repaired; an incomplete end of 100 bytes was cut off"))
        #expect(try !isFragmented())
        #expect(try decoded() == before)
        #expect(try repair().contains("has one index already; not changed"))
    }

    @Test func wholeRecording_losesNothing() throws {
        try record("x264enc tune=zerolatency key-int-max=30", wave: "ticks")
        let before = try decoded()
        #expect(try !repair().contains("cut off"))
        #expect(try !isFragmented() && decoded() == before)
    }

    /// One that is only read, such as by a player, is repaired.
    @Test func fileThatIsWrittenElsewhere_isLeftAlone() throws {
        try record("x264enc tune=zerolatency key-int-max=30", wave: "ticks")
        let before = try bytes()
        let other = open(path, O_WRONLY | O_CLOEXEC)
        let problem = #expect(throws: FilmRepair.Problem.self) { try FilmRepair.mend(Array(path.utf8)) }
        #expect(problem?.message.contains("open in another program") == true)
        #expect(try bytes() == before)
        close(other)
        let reader = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(reader) }
        #expect(throws: Never.self) { try FilmRepair.mend(Array(path.utf8)) }
        #expect(try !isFragmented())
    }

    @Test func damageInTheMiddle_isRefusedAndChangesNothing() throws {
        try record("x264enc tune=zerolatency key-int-max=30", wave: "ticks")
        var damaged = try bytes()
        let header = Array("moof".utf8)
        let second = damaged.indices.dropLast(4).filter { damaged[$0..<($0 + 4)].elementsEqual(header) }[1]
        damaged[second] = 0
        try Data(damaged).write(to: URL(fileURLWithPath: path))
        let problem = #expect(throws: FilmRepair.Problem.self) { try FilmRepair.mend(Array(path.utf8)) }
        #expect(problem?.message.contains("nothing was changed") == true)
        #expect(try bytes() == damaged)
    }

    @Test func filesThatAreNoRecordings_areRefusedAndUnchanged() throws {
        for text in ["", "text", String(repeating: "\0\0\0\u{8}free", count: 9)] {
            try text.write(toFile: path, atomically: false, encoding: .utf8)
            #expect(throws: FilmRepair.Problem.self) { try FilmRepair.mend(Array(path.utf8)) }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        }
        #expect(throws: FilmRepair.Problem.self) { try FilmRepair.mend(Array((folder.path + "/nothing").utf8)) }
        #expect(throws: FilmRepair.Problem.self) { try FilmRepair.mend(Array(folder.path.utf8)) }
    }
}
