import DBus
import EventLoop
import FilmBackend
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import FileFormats

/// The thumbnails that programs share.
@Suite struct ThumbnailTests {
    private static func copy(_ name: String, in stage: FilmStage, as file: String) throws -> String {
        let path = stage.folder.path + "/" + file
        try FileManager.default.copyItem(atPath: TestMedia.named(name).path(), toPath: path)
        return path
    }

    @Test func thumbnail_isInTheSharedCache() throws {
        let stage = try FilmStage()
        let film = try Self.copy("short-gop.mp4", in: stage, as: "my film (1).mp4")
        let uri = "file://\(stage.folder.path)/my%20film%20(1).mp4"
        let path = try stage.call("Thumbnail", [.string(uri), .string("normal")])[0].stringValue ?? ""
        let home = stage.folder.path + "/home/cache/thumbnails"
        #expect(path == "\(home)/normal/\(Digest.md5(uri)).png")
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let texts = try #require(PNGText.read(bytes))
        var status = stat()
        #expect(stat(film, &status) == 0)
        #expect(texts["Thumb::URI"] == uri)
        #expect(texts["Thumb::MTime"] == String(status.st_mtim.tv_sec))
        #expect(texts["Thumb::Size"] == String(status.st_size))
        #expect(texts["Thumb::Movie::Length"] == "12")
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stat(home + "/normal", &status) == 0 && status.st_mode & 0o777 == 0o700)
        // Others read it, too.
        let size = try Child.run(
            "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path])
        #expect(size.trimmingCharacters(in: .whitespacesAndNewlines) == "128,72")
        #expect(try FilmStage.names(in: home + "/normal").count == 1)
    }

    /// The libraries of libav take most of the time of a first thumbnail, so they are loaded only for films that need them.
    @Test(arguments: [false, true])
    func thumbnailOfH264_needsLibavOnlyIfInterlaced(_ isInterlaced: Bool) throws {
        let stage = try FilmStage()
        let film = stage.folder.path + "/film.mp4"
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=2", "-c:v", "libx264"]
                + ["-pix_fmt", "yuv420p"] + (isInterlaced ? ["-flags", "+ildct+ilme", "-x264opts", "tff=1"] : []) + [
                    film
                ])
        let path = try stage.call("Thumbnail", [FilmStage.uri(film), .string("normal")])[0].stringValue ?? ""
        #expect(FileManager.default.fileExists(atPath: path))
        let maps = try stage.workers.map { try Child.run("cat", ["/proc/\($0)/maps"]) }.joined()
        #expect(maps.contains("libgstisomp4"))
        #expect(maps.contains("libavcodec") == isInterlaced)
    }

    /// The same for HEVC: libde265 decodes what has 8 bits.
    @Test(arguments: [false, true]) func thumbnailOfHEVC_needsLibavOnlyForTenBits(_ hasTenBits: Bool) throws {
        let stage = try FilmStage()
        let film = stage.folder.path + "/film.mp4"
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=1", "-c:v", "libx265"]
                + ["-preset", "ultrafast", "-x265-params", "log-level=error", "-pix_fmt"]
                + [hasTenBits ? "yuv420p10le" : "yuv420p", "-tag:v", "hvc1", film])
        let path = try stage.call("Thumbnail", [FilmStage.uri(film), .string("normal")])[0].stringValue ?? ""
        #expect(FileManager.default.fileExists(atPath: path))
        let maps = try stage.workers.map { try Child.run("cat", ["/proc/\($0)/maps"]) }.joined()
        #expect(maps.contains("libgstisomp4"))
        #expect(maps.contains("libavcodec") == hasTenBits)
    }

    @Test func changedFile_getsANewThumbnail() throws {
        let stage = try FilmStage()
        let film = try Self.copy("short-gop.mp4", in: stage, as: "film.mp4")
        func thumbnail() throws -> (String, ino_t) {
            let path = try stage.call("Thumbnail", [FilmStage.uri(film), .string("large")])[0].stringValue ?? ""
            var status = stat()
            #expect(stat(path, &status) == 0)
            return (path, status.st_ino)
        }
        let first = try thumbnail()
        #expect(try thumbnail() == first)
        #expect(utimes(film, [timeval(tv_sec: 1_000, tv_usec: 0), timeval(tv_sec: 1_000, tv_usec: 0)]) == 0)
        let second = try thumbnail()
        #expect(second.0 == first.0)
        #expect(second.1 != first.1)
    }

    @Test func fileWithoutAPicture_isRemembered() throws {
        let stage = try FilmStage()
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: TestMedia.named("web.webm").path())))
        let film = stage.folder.path + "/broken.webm"
        // The header of a film, and nothing of its pictures.
        try Data(whole.prefix(600) + [UInt8](repeating: 0, count: 5_000)).write(to: URL(fileURLWithPath: film))
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri(film), .string("normal")]) == "DecodeFailed")
        let folder = stage.folder.path + "/home/cache/thumbnails/fail"
        let names = try FilmStage.names(in: folder)
        #expect(names.count == 1 && names[0].hasPrefix("sessiond-"))
        let entry = try FilmStage.names(in: folder + "/" + names[0])
        #expect(entry == [Digest.md5("file://\(film)") + ".png"])
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri(film), .string("normal")]) == "DecodeFailed")
    }

    @Test func sound_hasItsCover() throws {
        let stage = try FilmStage()
        let path =
            try stage.call(
                "Thumbnail", [FilmStage.uri(try TestMedia.named("cover.mp3").path()), .string("normal")])[0].stringValue
            ?? ""
        let size = try Child.run(
            "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path])
        #expect(size.trimmingCharacters(in: .whitespacesAndNewlines) == "128,128")
        #expect(
            try stage.refusal("Thumbnail", [FilmStage.uri(TestMedia.named("sound.m4a").path()), .string("normal")])
                != nil)
        #expect(try stage.refusal("Thumbnail", [FilmStage.uri("/x"), .string("huge")]) == "BadParameter")
    }

    /// A folder of films as a file manager opens it; `SESSIOND_TEST_LONG` makes it large.
    @Test func manyThumbnails_needNoMoreMemory() throws {
        let isLong = ProcessInfo.processInfo.environment["SESSIOND_TEST_LONG"] != nil
        let count = isLong ? 10_000 : 60
        let stage = try FilmStage()
        let films = try ["short-gop.mp4", "matroska.mkv", "web.webm", "old.avi", "rotated.mp4", "edited.mp4"].map {
            try TestMedia.named($0).path()
        }
        func memory(_ process: Int32) -> Int {
            let text = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
            let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
            return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        }
        var sizes: [(plugin: Int, workers: Int)] = []
        var largest = 0
        for number in 1...count {
            let path = "\(stage.folder.path)/\(number).film"
            #expect(symlink(films[number % films.count], path) == 0)
            _ = try stage.call("Thumbnail", [FilmStage.uri(path), .string("normal")])
            // A worker ends after some tasks, so that there may be none at the moment.
            largest = max(largest, stage.workers.map(memory).max() ?? 0)
            guard [count / 10, count / 2, count].contains(number) else { continue }
            sizes.append((memory(stage.plugin.processID), largest))
            largest = 0
            if isLong {
                print("\(number) thumbnails: plugin \(sizes.last!.plugin) kB, workers \(sizes.last!.workers) kB")
            }
        }
        let names = try FilmStage.names(in: stage.folder.path + "/home/cache/thumbnails/normal")
        #expect(names.count == count)
        // In kB.
        #expect(sizes[2].plugin - sizes[0].plugin < 4_096, "\(sizes)")
        #expect(sizes.allSatisfy { (1..<200_000).contains($0.workers) }, "\(sizes)")
    }

    /// As file managers call it: no bus, no service.
    @Test func thumbnailer_writesAPicture() throws {
        let folder = try PrivateFolder()
        let output = folder.path + "/picture.png"
        let program = try builtProduct(named: "sessiond-thumbnailer")
        let film = try TestMedia.named("rotated.mp4").path()
        for name in [film, "file://" + film] {
            try Child.run(program, [name, output, "96"], environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path])
            let size = try Child.run(
                "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", output])
            #expect(size.trimmingCharacters(in: .whitespacesAndNewlines) == "54,96")
            unlink(output)
        }
        let failing = try Child(program, ["/nothing.mp4", output, "96"])
        #expect(failing.wait(timeout: 30) == .code(1))
        #expect(failing.errors.first?.contains("does not exist") == true || failing.errors.first != nil)
        #expect(try Child(program, []).wait(timeout: 30) == .code(64))
    }

    /// The file is read in a child without the terminal, into which it could type commands.
    /// As in a service of systemd with MemoryDenyWriteExecute: no memory may become executable.
    @Test(arguments: ["old.avi", "matroska.mkv"]) func thumbnailer_worksWithoutExecutableMemory(name: String) throws {
        let folder = try PrivateFolder()
        let film = try TestMedia.named(name).path()
        // PR_SET_MDWE, since Linux 6.3.
        let program = """
            import ctypes, os, sys
            ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)
            os.execv(sys.argv[1], sys.argv[1:])
            """
        let child = try Child(
            "/usr/bin/python3",
            ["-c", program, try builtProduct(named: "sessiond-thumbnailer"), film, folder.path + "/a.png", "128"])
        #expect(child.wait(timeout: 60) == .code(0), "\(child.errors)")
        #expect(child.errors.isEmpty, "\(child.errors)")
        #expect(FileManager.default.fileExists(atPath: folder.path + "/a.png"))
    }

    @Test func thumbnailer_endsWithControlCAndLeavesNothing() throws {
        let folder = try PrivateFolder()
        let film = try TestMedia.named("long-gop.mp4").path()
        func children(_ process: Int32) -> [Int32] {
            let path = "/proc/\(process)/task/\(process)/children"
            return ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: " ").compactMap {
                Int32($0)
            }
        }
        let program = try Child(
            try builtProduct(named: "sessiond-thumbnailer"), [film, folder.path + "/picture.png"],
            environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path, "GST_REGISTRY": TestMedia.registry])
        var child: Int32 = 0
        try #require(
            eventually {
                child = children(program.processID).first ?? 0
                return child > 0
            })
        // It leads a session of its own: it has left the terminal.
        #expect(eventually { getsid(child) == child })
        kill(child, SIGSTOP)
        kill(program.processID, SIGINT)
        #expect(program.wait(timeout: 30) == .signal(SIGINT))
        #expect(eventually { kill(child, 0) != 0 || isZombie(child) })
    }

    private func isZombie(_ process: Int32) -> Bool {
        ((try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? "").contains(") Z ")
    }

    /// Where Debian has Tumbler, the service that makes thumbnails for file managers.
    private static let tumbler = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib"))?.map {
        "/usr/lib/\($0)/tumbler-1/tumblerd"
    }.first { FileManager.default.isExecutableFile(atPath: $0) }

    @Test(.enabled(if: tumbler != nil, "tumbler is not installed")) func tumbler_findsTheThumbnailerAndUsesIt() throws {
        let folder = try PrivateFolder()
        let bus = try PrivateBus()
        // What is installed, but for the path of the program; and a list of what it was called with.
        let list = folder.path + "/calls"
        let program = try folder.file(
            "thumbnailer",
            """
            #!/bin/sh
            echo "$1" >>'\(list)'
            exec '\(try builtProduct(named: "sessiond-thumbnailer"))' "$@"
            """)
        #expect(chmod(program, 0o755) == 0)
        let installed = try String(
            contentsOf: repository.appendingPathComponent("data/thumbnailers/sessiond.thumbnailer"), encoding: .utf8)
        _ = try folder.folder("data/thumbnailers")
        _ = try folder.file(
            "data/thumbnailers/sessiond.thumbnailer",
            installed.replacingOccurrences(of: "Exec=sessiond-thumbnailer", with: "Exec=\(program)"))
        // By which Tumbler's library knows a PNG picture.
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/data/mime", withDestinationPath: "/usr/share/mime")
        var environment = bus.environment
        environment["PATH"] = "/usr/bin:/bin"
        environment["HOME"] = try folder.folder("home")
        environment["XDG_DATA_DIRS"] = folder.path + "/data"
        environment["XDG_DATA_HOME"] = try folder.folder("home/data")
        environment["XDG_CACHE_HOME"] = try folder.folder("home/cache")
        // Tumbler prefers its own plugins for films, as far as they are installed.
        environment["XDG_CONFIG_HOME"] = try folder.folder("home/config")
        _ = try folder.folder("home/config/tumbler")
        _ = try folder.file(
            "home/config/tumbler/tumbler.rc",
            "[GstThumbnailer]\nDisabled=true\n[FfmpegThumbnailer]\nDisabled=true\n"
                + "[DesktopThumbnailer]\nDisabled=false\nPriority=3\nLocations=\nExcludes=\nMaxFileSize=0\n")
        environment["GST_REGISTRY"] = TestMedia.registry
        let daemon = try Child(try #require(Self.tumbler), [], environment: environment)
        let loop = EventLoop()
        let client = try Connection(.custom(bus.address), loop: loop)
        let name = "org.freedesktop.thumbnails.Thumbnailer1"
        let place = "/org/freedesktop/thumbnails/Thumbnailer1"
        #expect(
            eventually(timeout: 30) {
                (try? client.askBusAndWait("NameHasOwner", [.string(name)], timeout: 5))?.first == .bool(true)
            }, "\(daemon.errors)")
        var news: [String] = []
        let subscriptions = ["Ready", "Error", "Finished"].map { member in
            client.subscribe(interface: name, member: member) { _ in news.append(member) }
        }
        let film = folder.path + "/film.mp4"
        try FileManager.default.copyItem(atPath: TestMedia.named("short-gop.mp4").path(), toPath: film)
        var answer: Result<[Value], Failure>?
        client.call(
            name, place, name, "Queue",
            [
                .strings(["file://" + film]), .strings(["video/mp4"]), .string("normal"), .string("foreground"),
                .uint32(0),
            ]
        ) { answer = $0 }
        #expect(loop.iterate(timeout: FilmStage.watchdog) { news.contains("Finished") }, "\(daemon.errors)")
        withExtendedLifetime(subscriptions) {}
        _ = try #require(answer).get()
        #expect(news == ["Ready", "Finished"])
        #expect(try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n").map(String.init) == [film])
        let picture = folder.path + "/home/cache/thumbnails/normal/\(Digest.md5("file://" + film)).png"
        let texts = try #require(PNGText.read([UInt8](try Data(contentsOf: URL(fileURLWithPath: picture)))))
        #expect(texts["Thumb::URI"] == "file://" + film)
    }

    @Test func md5_agreesWithTheStandard() {
        #expect(Digest.md5("") == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(Digest.md5("abc") == "900150983cd24fb0d6963f7d28e17f72")
        #expect(Digest.md5(String(repeating: "1234567890", count: 8)) == "57edf4a22be3c955ac49da2e2107b67a")
    }
}
