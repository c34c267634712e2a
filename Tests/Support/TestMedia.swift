import Foundation

/// Films in which each picture contains its number, made by ffmpeg from a recipe.
///
/// A picture has 16 columns, black or white: its number in binary, which survives encoding, scaling and JPEG. The films are
/// made once for each system and recipe and kept in `.build/test-media`, with the results of ffmpeg and ffprobe: another ffmpeg
/// may read a recipe differently.
public struct TestMedia: Sendable, CustomStringConvertible {
    public let name: String
    let recipe: [String]
    /// Seconds that its own times are behind those of ffprobe.
    let shift: Double
    /// Seconds that an edit list cuts off at the start of the pictures.
    let cut: Double
    /// Whether its picture is shown turned by 90° counterclockwise. Each version of ffmpeg has another option for this.
    let turned: Bool

    public var description: String { name }

    /// One picture, and the time from which it is shown.
    public struct Picture: Sendable {
        public let time: Double
        public let number: Int
        public let isKey: Bool
    }

    private static let size = (width: 320, height: 180)
    private static let rate = 25.0
    /// Seconds.
    public static let length = 12.0
    /// The input of ffmpeg for pictures of 320 by 180 with numbers. ffmpeg computes each column once and then scales it: all
    /// pixels take ten times as long.
    public static func numberedPictures(seconds: Int, rate: Int = 25) -> String {
        "color=s=16x2:r=\(rate):d=\(seconds),format=yuv444p,"
            + "geq=lum='if(mod(floor(N/pow(2,X)),2),235,16)':cb=128:cr=128,scale=320:180:flags=neighbor,setsar=1"
    }
    private static let source = [
        "-f", "lavfi", "-i", numberedPictures(seconds: 12), "-f", "lavfi", "-i", "sine=440:d=12", "-pix_fmt", "yuv420p",
        "-ac", "1",
    ]
    private static let x264 = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-c:a", "aac", "-b:a", "64k"]

    /// As ffmpeg reads it from its command line.
    private static let srt =
        "data:text/plain;base64,"
        + Data(
            """
            1
            00:00:00,000 --> 00:00:02,000
            First

            2
            00:00:04,000 --> 00:00:06,000
            SUBTITLE

            3
            00:00:08,000 --> 00:00:09,000
            Third

            4
            00:00:10,000 --> 00:00:11,000
            End

            """.utf8
        ).base64EncodedString()

    private init(_ name: String, _ recipe: [String], shift: Double = 0, cut: Double = 0, turned: Bool = false) {
        (self.name, self.recipe, self.shift, self.cut, self.turned) = (name, recipe, shift, cut, turned)
    }

    /// A film by its name; `@x` in a recipe is the film x.
    public static let all: [TestMedia] = [
        TestMedia("short-gop.mp4", source + x264 + ["-g", "12", "-bf", "2"]),
        TestMedia("long-gop.mp4", source + x264 + ["-g", "250", "-bf", "3"]),
        TestMedia("rotated.mp4", ["-i", "@short-gop.mp4", "-c", "copy"], turned: true),
        TestMedia(
            "variable.mp4",
            ["-i", "@short-gop.mp4", "-vf", "select='not(mod(floor(n/10),3)*mod(n,2))'", "-vsync", "vfr"] + x264
                + ["-g", "30", "-bf", "2"]),
        // Begins between two key frames: the pictures before are in the file, and not in the film.
        TestMedia("edited.mp4", ["-ss", "3.3", "-i", "@short-gop.mp4", "-c", "copy"], cut: 3.3),
        TestMedia(
            "fragmented.mp4", ["-i", "@short-gop.mp4", "-c", "copy", "-movflags", "frag_keyframe+empty_moov"]),
        // Without the table of its pieces.
        TestMedia(
            "pieces.mp4",
            ["-i", "@short-gop.mp4", "-c", "copy", "-movflags", "frag_keyframe+empty_moov+skip_trailer"]),
        TestMedia("index-first.mp4", ["-i", "@short-gop.mp4", "-c", "copy", "-movflags", "+faststart"]),
        TestMedia("matroska.mkv", ["-i", "@short-gop.mp4", "-c", "copy"]),
        TestMedia("stream.ts", ["-i", "@short-gop.mp4", "-c", "copy"], shift: .infinity),
        TestMedia("web.webm", source + ["-c:v", "libvpx", "-b:v", "400k", "-g", "60", "-c:a", "libopus"]),
        TestMedia("old.avi", source + ["-c:v", "mpeg4", "-q:v", "3", "-g", "12", "-c:a", "mp3"]),
        // Its pictures begin 2 s after its sound.
        TestMedia(
            "late.mkv",
            [
                "-itsoffset", "2", "-i", "@short-gop.mp4", "-i", "@short-gop.mp4", "-map", "0:v", "-map", "1:a", "-c",
                "copy",
            ]
        ),
        TestMedia("silent.mp4", ["-i", "@short-gop.mp4", "-c", "copy", "-an"]),
        TestMedia("sound.m4a", ["-i", "@short-gop.mp4", "-c", "copy", "-vn"]),
        TestMedia("sound.flac", ["-i", "@short-gop.mp4", "-t", "3", "-vn"]),
        TestMedia("sound.ogg", ["-i", "@short-gop.mp4", "-t", "3", "-vn", "-c:a", "libvorbis"]),
        TestMedia("sound.wav", ["-i", "@short-gop.mp4", "-t", "3", "-vn"]),
        TestMedia(
            "cover.mp3",
            [
                // A source of one picture: ffmpeg 7 ends the sound, too, after as many pictures as -frames:v says.
                "-f", "lavfi", "-i", "sine=440:d=3", "-f", "lavfi", "-i", "testsrc=s=200x200:r=25:d=0.04", "-map", "0",
                "-map", "1", "-c:a", "libmp3lame", "-c:v", "mjpeg", "-disposition:v", "attached_pic",
            ]),
    ]

    /// Films with more than pictures and one sound.
    private static let rich = [
        // Two sounds, and two subtitles: their second of four is shown from 4 to 6 s.
        TestMedia(
            "tracks.mkv",
            [
                "-i", "@short-gop.mp4", "-f", "lavfi", "-i", "sine=880:d=12", "-f", "srt", "-i", srt, "-f", "srt", "-i",
                srt, "-map", "0:v", "-map", "0:a", "-map", "1:a", "-map", "2:s", "-map", "3:s", "-c:v", "copy", "-c:a",
                "aac", "-c:s", "srt", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu",
                "-metadata:s:a:1", "title=Commentary", "-metadata:s:s:0", "language=eng", "-metadata:s:s:1",
                "language=deu", "-disposition:s", "0",
            ]),
        // A key frame each four seconds; a subtitle from 1 to 6 s, and one from 7 to 11 s.
        TestMedia(
            "long-words.mkv",
            [
                "-i", "@short-gop.mp4", "-f", "srt", "-i",
                "data:text/plain;base64,"
                    + Data(
                        "1\n00:00:01,000 --> 00:00:06,000\nSUBTITLE\n\n2\n00:00:07,000 --> 00:00:11,000\nSUBTITLE\n"
                            .utf8
                    ).base64EncodedString(), "-map", "0:v", "-map", "0:a", "-map", "1:s",
            ] + x264 + ["-g", "100", "-keyint_min", "100", "-sc_threshold", "0", "-c:s", "srt", "-disposition:s", "0"]),
        TestMedia("long-words-station.mkv", ["-i", "@long-words.mkv", "-map", "0", "-c", "copy", "-c:s", "ass"]),
        TestMedia(
            "chapters.mkv",
            [
                "-i", "@short-gop.mp4", "-f", "ffmetadata", "-i",
                "data:text/plain;base64,"
                    + Data(
                        (";FFMETADATA1\n"
                            + [(0, "Opening"), (4, "Middle"), (8, "End & credits")].map { start, title in
                                "[CHAPTER]\nTIMEBASE=1/1\nSTART=\(start)\nEND=\(start + 4)\ntitle=\(title)\n"
                            }.joined()).utf8
                    ).base64EncodedString(), "-map", "0", "-map_metadata", "1", "-c", "copy",
            ]),
        // A tone in the first tenth of each second.
        TestMedia(
            "clicks.mp4",
            [
                "-f", "lavfi", "-i", numberedPictures(seconds: 12), "-f", "lavfi", "-i",
                "aevalsrc='0.5*sin(2*PI*440*t)*lt(mod(t,1),0.1)':d=12",
                "-pix_fmt", "yuv420p", "-ac", "1",
            ] + x264 + ["-g", "12", "-bf", "2"]),
        TestMedia("chapters.mp4", ["-i", "@chapters.mkv", "-c", "copy"]),
    ]

    public static func named(_ name: String) -> TestMedia {
        guard let found = (all + rich).first(where: { $0.name == name }) else { fatalError("no film \(name)") }
        return found
    }

    /// The films of which each picture is known.
    public static let films = all.filter { !$0.name.hasPrefix("sound.") && $0.name != "cover.mp3" }

    private static let folder: String = {
        let system = (try? String(contentsOfFile: "/etc/os-release", encoding: .utf8)) ?? ""
        let line = system.split(separator: "\n").first { $0.hasPrefix("VERSION_ID=") } ?? ""
        return repository.appendingPathComponent(".build/test-media/\(line.filter { $0.isNumber || $0 == "." })").path
    }()

    /// One list of GStreamer's plugins for all tests: reading them takes longer than a test.
    public static let registry = folder + "/registry.bin"

    private static let lock = NSLock()

    /// The file, made if it is not there yet.
    public func path() throws -> String {
        TestMedia.lock.lock()
        defer { TestMedia.lock.unlock() }
        return try make()
    }

    private func make() throws -> String {
        let words = try recipe.map { $0.hasPrefix("@") ? try TestMedia.named(String($0.dropFirst())).make() : $0 }
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in (words + (turned ? ["turned"] : [])).joined(separator: "\n").utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        let folder = "\(TestMedia.folder)/\(String(hash, radix: 36))"
        let path = "\(folder)/\(name)"
        if FileManager.default.fileExists(atPath: path) { return path }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let draft = "\(folder)/\(getpid())-\(name)"
        try Child.run("ffmpeg", ["-nostdin", "-v", "error", "-y"] + words + [draft], timeout: 120)
        if turned { try TestMedia.turn(draft) }
        guard rename(draft, path) == 0 else { throw SupportError("\(path): \(String(cString: strerror(errno)))") }
        return path
    }

    /// Writes a turn by 90° counterclockwise into the matrix of the first track header, that of the pictures (ISO/IEC 14496-12, 8.3.2).
    private static func turn(_ path: String) throws {
        let file = URL(fileURLWithPath: path)
        var bytes = try Data(contentsOf: file)
        guard let name = bytes.range(of: Data("tkhd".utf8)), bytes[name.upperBound] == 0 else {
            throw SupportError("\(path): no track header of version 0")
        }
        let matrix: [UInt32] = [0, 0xFFFF_0000, 0, 0x0001_0000, 0, 0, 0, 0, 0x4000_0000]
        let start = name.upperBound + 40
        bytes.replaceSubrange(
            start..<(start + 36),
            with: matrix.flatMap { number in (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } })
        try bytes.write(to: file)
    }

    /// What was found in films, by their paths: several tests ask for the same. It is kept beside them, too.
    private static nonisolated(unsafe) var found: [String: [Picture]] = [:]

    /// What is in the film, found by ffprobe and ffmpeg: each picture with its time and its number.
    public func pictures() throws -> [Picture] {
        TestMedia.lock.lock()
        defer { TestMedia.lock.unlock() }
        let path = try make()
        if let known = TestMedia.found[path] { return known }
        let list = path + ".pictures"
        let pictures: [Picture]
        if let text = try? String(contentsOfFile: list, encoding: .utf8) {
            pictures = text.split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ")
                guard words.count == 3, let time = Double(words[0]), let number = Int(words[1]) else { return nil }
                return Picture(time: time, number: number, isKey: words[2] == "key")
            }
        } else {
            pictures = try self.pictures(in: path)
            // A text of a number is that number again.
            let lines = pictures.map { "\($0.time) \($0.number) \($0.isKey ? "key" : "delta")\n" }
            try lines.joined().write(toFile: list, atomically: true, encoding: .utf8)
        }
        TestMedia.found[path] = pictures
        return pictures
    }

    private func pictures(in path: String) throws -> [Picture] {
        let text = try Child.run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_entries", "frame=pts_time,key_frame", "-of", "csv=p=0",
                path,
            ])
        let rows = text.split(separator: "\n").compactMap { line -> (Bool, Double)? in
            let fields = line.split(separator: ",")
            guard fields.count >= 2, let time = Double(fields[1]) else { return nil }
            return (fields[0] == "1", time)
        }
        let numbers = try TestMedia.numbers(
            ["-noautorotate", "-i", path, "-map", "0:v", "-vsync", "passthrough"], width: TestMedia.size.width,
            height: TestMedia.size.height)
        guard numbers.count == rows.count else {
            throw SupportError("\(name): \(numbers.count) of \(rows.count) pictures")
        }
        if cut > 0 {
            // By the number, because ffmpeg counts from the first whole picture: the one that is cut is shown first.
            let first = (cut * TestMedia.rate).rounded(.down)
            let whole = zip(rows, numbers).map { row, number in
                Picture(time: Double(number) / TestMedia.rate - cut, number: number, isKey: row.0)
            }
            return whole.first?.number == Int(first)
                ? whole : [Picture(time: 0, number: Int(first), isKey: false)] + whole
        }
        let start = shift.isInfinite ? rows.first?.1 ?? 0 : shift
        return zip(rows, numbers).map { Picture(time: $0.1 - start, number: $1, isKey: $0.0) }
    }

    /// The numbers of all pictures that ffmpeg makes of these arguments.
    public static func numbers(_ arguments: [String], width: Int, height: Int) throws -> [Int] {
        let folder = try PrivateFolder()
        let raw = folder.path + "/raw"
        try Child.run(
            "ffmpeg", ["-nostdin", "-v", "error"] + arguments + ["-f", "rawvideo", "-pix_fmt", "gray", raw],
            timeout: 120)
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
        let size = width * height
        return stride(from: 0, to: bytes.count - bytes.count % size, by: size).map { start in
            number(bytes[start..<(start + size)], width: width, height: height)
        }
    }

    /// The number in a picture of any size: the brightness in the middle of each column.
    public static func number(_ picture: ArraySlice<UInt8>, width: Int, height: Int) -> Int {
        let row = picture.startIndex + height / 2 * width
        let column = width / 16
        return (0..<16).reduce(0) { number, bit in
            let from = row + bit * width / 16 + column * 3 / 10
            let part = picture[from..<(from + max(1, column * 4 / 10))]
            let mean = part.reduce(0) { $0 + Int($1) } / part.count
            return mean > 128 ? number | 1 << bit : number
        }
    }
}
