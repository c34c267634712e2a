import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// The library on file systems that go, that cannot be written to, and with too few watches. The plugin is in a namespace of its own,
/// where it can be done to it alone.
@Suite(.serialized) struct LibraryMountTests {
    /// A new mount namespace. In it, the plugin is still the same user.
    private static let unshare = ["/usr/bin/unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]

    /// Whether this machine lets its users make namespaces.
    private var isPossible: Bool {
        (try? Child.run(Self.unshare[0], Array(Self.unshare.dropFirst()) + ["/bin/true"])) != nil
    }

    /// A library whose plugin has a file system in memory of its own.
    /// - Parameters:
    ///   - place: where, as a word of the shell.
    ///   - size: in megabytes.
    private func library(
        mounting place: String, size: Int = 64, _ fill: (LibraryStage) throws -> Void
    ) throws -> LibraryStage {
        let begin = "mkdir -p \(place) && mount -t tmpfs -o size=\(size)m none \(place) && exec \"$@\""
        return try LibraryStage(within: Self.unshare + ["/bin/sh", "-c", begin, "sh"], fill)
    }

    /// Runs a command in the namespace of the plugin.
    private func run(_ command: String, in stage: LibraryStage) throws {
        try Child.run(
            "/usr/bin/nsenter",
            [
                "--user", "--preserve-credentials", "--mount", "--target", "\(stage.plugin.processID)", "/bin/sh", "-c",
                command,
            ])
    }

    /// Fault G4.
    @Test func unmountedFileSystem_makesItsItemsUnavailableUntilItIsMountedAgain() throws {
        guard isPossible else { return }
        let folder = try PrivateFolder()
        let disk = try folder.folder("disk")
        // The file system stays mounted elsewhere, like a disk that is plugged in again.
        let stage = try library(mounting: "'\(disk)'") { stage in
            try stage.song("here.mp3")
            mkdir(stage.music + "/usb", 0o700)
            let song = try stage.song("there.mp3")
            try run(
                "cp '\(song)' '\(disk)/there.mp3' && rm '\(song)' && mount --bind '\(disk)' '\(stage.music)/usb'",
                in: stage)
        }
        #expect(try stage.titles().sorted() == ["here.mp3", "there.mp3"])
        let id = try stage.id("there.mp3")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("rating", .uint32(4))])])
        // Nobody asks for a scan: it is noticed.
        try run("umount '\(stage.music)/usb'", in: stage)
        #expect(stage.wait { stage.count == 1 && stage.properties()["Scanning"] == .bool(false) })
        // It is not forgotten.
        let away = try stage.items([("unavailable", .bool(true))], ["id", "title", "available", "rating"])
        #expect(away.first { $0["title"] == .string("there.mp3") }?["available"] == .bool(false))
        try run("mount --bind '\(disk)' '\(stage.music)/usb'", in: stage)
        #expect(stage.wait { stage.count == 2 })
        #expect(
            try stage.items([], ["id", "rating"]).contains { $0["id"] == .uint64(id) && $0["rating"] == .uint32(4) })
        stage.stop()
    }

    /// Fault G4: after the disk is lost, its folders are scanned one by one. Their watches have ended, or they are polled.
    @Test(arguments: [false, true]) func lostFileSystem_keepsTheItemsInItsFolders(_ isPolled: Bool) throws {
        guard isPossible else { return }
        let begin = (isPolled ? "echo 0 >/proc/sys/user/max_inotify_watches && " : "") + "exec \"$@\""
        let stage = try LibraryStage(adds: false, within: Self.unshare + ["/bin/sh", "-c", begin, "sh"])
        stage.stop()
        let settings = try stage.home.folder(".config/sessiond") + "/sessiond.conf"
        try "[library]\ninterval = 1\n".write(toFile: settings, atomically: true, encoding: .utf8)
        try stage.begin()
        try stage.song("here.mp3")
        let (song, disk) = (try stage.song("there.mp3"), stage.music + "/usb")
        mkdir(disk, 0o700)
        try run(
            "mount -t tmpfs none '\(disk)' && mkdir -p '\(disk)/Album/CD 1' && mv '\(song)' '\(disk)/Album/CD 1'",
            in: stage)
        _ = try stage.call("AddFolder", [.string(stage.music), .properties([])])
        #expect(stage.waitUntilScanned() && stage.count == 2)
        let id = try stage.id("there.mp3")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("rating", .uint32(4))])])
        try run("umount '\(disk)'", in: stage)
        #expect(stage.wait { stage.count == 1 && stage.properties()["Scanning"] == .bool(false) })
        #expect(stage.wait { isPolled || stage.status["watched"] == .uint32(1) }, "\(stage.status)")
        for number in 0..<2 {
            try stage.song("more \(number).mp3")
            #expect(stage.wait { stage.count == 2 + number && stage.properties()["Scanning"] == .bool(false) })
        }
        let away = try stage.items([("unavailable", .bool(true))], ["id", "title", "available", "rating"])
        #expect(
            away.first { $0["title"] == .string("there.mp3") } == [
                "id": .uint64(id), "title": .string("there.mp3"), "available": .bool(false), "rating": .uint32(4),
            ])
        stage.stop()
    }

    /// Fault G4: another scan starts before the plugin reacts to the mount.
    @Test func mountDuringAnotherScan_isNoticed() throws {
        guard isPossible else { return }
        let folder = try PrivateFolder()
        let disk = try folder.folder("disk")
        let stage = try library(mounting: "'\(disk)'") { stage in
            try stage.song("here/1.mp3")
            mkdir(stage.music + "/usb", 0o700)
            let song = try stage.song("there.mp3")
            try run("mv '\(song)' '\(disk)/there.mp3'", in: stage)
        }
        #expect(stage.count == 1)
        try run("mount --bind '\(disk)' '\(stage.music)/usb'", in: stage)
        _ = try stage.scan([stage.music + "/here"])
        #expect(stage.wait { stage.count == 2 })
        stage.stop()
    }

    /// Fault G3.
    @Test func readThatMeetsAFullDisk_failsTheScanToo() throws {
        guard isPossible else { return }
        let stage = try library(mounting: "\"$XDG_DATA_HOME\"", size: 16) { stage in
            for index in 0..<1_500 { try stage.song("\(index).mp3") }
        }
        let fill = stage.home.path + "/data/fill"
        var hasMet = false
        for _ in 0..<5 where !hasMet {
            let job = try stage.scan(full: true)
            #expect(stage.wait { (stage.job(job)["Done"]?.uint64Value ?? 0) > 0 })
            try run("dd if=/dev/zero of='\(fill)' bs=64k 2>/dev/null; true", in: stage)
            // While it reads files, most transactions are committed by the reads of clients.
            let isOver = eventually(timeout: 60) {
                hasMet = stage.refusal("Items", [.properties([]), .uint32(0), .uint32(1), .strings([])]) == "DiskFull"
                return hasMet || stage.properties()["Scanning"] == .bool(false)
            }
            try run("rm '\(fill)'", in: stage)
            #expect(isOver && stage.wait { stage.properties()["Scanning"] == .bool(false) })
            if hasMet { #expect(stage.job(job)["Error"] == .string("org.sessiond1.Error.DiskFull")) }
        }
        #expect(hasMet)
        _ = try stage.scan()
        #expect(stage.waitUntilScanned() && stage.count == 1_500)
        stage.stop()
    }

    /// Fault G3.
    @Test func readOnlyDatabase_isAnErrorAndNotAnEmptyLibrary() throws {
        guard isPossible else { return }
        let stage = try LibraryStage { try $0.song("a.mp3") }
        stage.stop()
        let data = stage.home.path + "/data"
        let readOnly = try LibraryPlugin(
            on: stage,
            within: Self.unshare + [
                "/bin/sh", "-c",
                "mount --bind '\(data)' '\(data)' && mount -o remount,bind,ro '\(data)' && exec \"$@\"", "sh",
            ])
        // It does not say that there is no music: it says that it cannot be used, and ends.
        #expect(readOnly.child.wait(timeout: 30) == .code(1))
        #expect(readOnly.child.errors.joined().contains("the library in \(data)/sessiond cannot be opened"))
        // Nothing of it was lost.
        try stage.begin()
        #expect(stage.wait { stage.count == 1 })
        stage.stop()
    }

    /// Fault G3: other programs fill the disk on which the library is.
    @Test func diskFilledWhileItRuns_isReportedAndNothingIsLost() throws {
        guard isPossible else { return }
        let stage = try library(mounting: "\"$XDG_DATA_HOME\"", size: 4) { stage in
            for index in 0..<50 { try stage.song("\(index).mp3") }
        }
        let id = try stage.id("7.mp3")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("rating", .uint32(4))])])
        let fill = stage.home.path + "/data/fill"
        try run("dd if=/dev/zero of='\(fill)' bs=4k 2>/dev/null; true", in: stage)
        // Small changes may still fit into the pages that the files have.
        var refusal = ""
        for rating in 0..<2_000 where refusal.isEmpty {
            refusal = stage.refusal("SetItem", [.uint64(id), .properties([("bookmark", .double(Double(rating)))])])
        }
        #expect(refusal == "DiskFull")
        for index in 50..<1_000 { try stage.song("\(index).mp3") }
        let job = try stage.scan()
        #expect(stage.wait { stage.job(job)["State"] == .string("failed") })
        #expect(stage.job(job)["Error"] == .string("org.sessiond1.Error.DiskFull"))
        let message = "the disk of the library is full: \(stage.home.path)/data/sessiond"
        #expect(stage.job(job)["Message"]?.stringValue?.hasPrefix(message) == true)
        // What was there can be read.
        #expect(try stage.items([("text", .string("7"))], ["id", "rating"]).first?["rating"] == .uint32(4))
        try run("rm '\(fill)'", in: stage)
        _ = try stage.scan()
        #expect(stage.waitUntilScanned() && stage.count == 1_000)
        _ = try stage.call("SetItem", [.uint64(id), .properties([("bookmark", .double(9))])])
        #expect(stage.plugin.isRunning && stage.status["message"] == .string(""))
        stage.stop()
    }

    /// The plugin alone, which may end at once.
    private struct LibraryPlugin {
        let child: Child

        init(on stage: LibraryStage, within: [String]) throws {
            let words = within + [try builtProduct(named: "sessiond-library")]
            child = try Child(
                words[0], Array(words.dropFirst()),
                environment: [
                    "PATH": "/usr/bin:/bin", "HOME": stage.home.path, "XDG_DATA_HOME": stage.home.path + "/data",
                ].merging(stage.bus.environment) { $1 })
        }
    }

    /// Fault G4.
    @Test func tooFewWatches_otherFoldersAreCheckedRegularly() throws {
        guard isPossible else { return }
        let limited =
            Self.unshare + ["/bin/sh", "-c", "echo 3 >/proc/sys/user/max_inotify_watches && exec \"$@\"", "sh"]
        let stage = try LibraryStage(within: limited) { stage in
            for number in 0..<6 { try stage.song("\(number)/a.mp3") }
        }
        #expect(stage.count == 6)
        let (watched, polled) = (stage.status["watched"]?.uint32Value ?? 0, stage.status["polled"]?.uint32Value ?? 0)
        #expect(watched <= 3 && watched + polled == 7, "\(stage.status)")
        // What nobody tells is found by looking.
        let settings = try stage.home.folder(".config/sessiond") + "/sessiond.conf"
        try "[library]\ninterval = 1\n".write(toFile: settings, atomically: true, encoding: .utf8)
        try stage.restart()
        for number in 0..<6 { try stage.song("\(number)/b.mp3") }
        #expect(stage.wait { stage.count == 12 })
        stage.stop()
    }
}
