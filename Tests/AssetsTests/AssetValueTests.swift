import Glibc
import PluginAPI
import PluginKit
import TestSupport
import Testing
import Workers

@testable import Assets

/// What the plugin for films knows without a worker: its files, the speeds of exports, and what a worker's end means.
@Suite struct AssetValueTests {
    // MARK: Files

    @Test func source_isAFileOfThisMachine() throws {
        let source = try AssetsPlugin.Source("file:///films/Stra%C3%9Fe%20%28fin%29.mkv", for: ":1.2")
        #expect(source.path == Array("/films/Straße (fin).mkv".utf8) && source.caller == ":1.2")
        #expect(source.uri == "file:///films/Stra%C3%9Fe%20(fin).mkv")
        #expect(source.name == "Straße (fin)" || source.name == "Straße (fin).mkv")
    }

    @Test(arguments: ["https://example.org/a.mkv", "/films/a.mkv", "", "file://elsewhere/a.mkv"])
    func sourceThatIsNoFile_isRefused(_ uri: String) {
        let error = #expect(throws: SessionError.self) { try AssetsPlugin.Source(uri) }
        #expect(error?.code == .notSupported && error?.message.contains("file: URI") == true)
    }

    // MARK: The end of a worker

    private static func message(_ result: Result<WorkerMessage, Workers.Failure>) -> String {
        switch AssetsPlugin.outcome(result, "a.mkv") {
        case .success: "success"
        // The platform's number at the end is not compared.
        case .failure(let error):
            "\(error.code.rawValue): \(error.message.replacing(" (\(error.code.platformCode))", with: ""))"
        }
    }

    @Test func done_isTheOnlySuccess() {
        #expect(Self.message(.success(WorkerMessage("done"))) == "success")
        #expect(Self.message(.success(WorkerMessage("image"))) == "DecodeFailed: 'a.mkv': no reason given")
    }

    @Test func failedWork_keepsTheReasonOfTheWorker() {
        let answer = WorkerMessage("failed", ["code": .text("NoImageAtTime"), "message": .text("it ends at 3 s")])
        #expect(Self.message(.success(answer)) == "NoImageAtTime: 'a.mkv': it ends at 3 s")
        let unknown = WorkerMessage("failed", ["code": .text("Invented"), "message": .text("x")])
        #expect(Self.message(.success(unknown)) == "DecodeFailed: 'a.mkv': x")
    }

    @Test func workerThatEnds_isTheFaultOfTheFile_butNotOfTheMachine() {
        #expect(Self.message(.failure(.tookTooLong(119.6))) == "DecodeFailed: 'a.mkv': it took longer than 120 s")
        #expect(Self.message(.failure(.silent(10))) == "DecodeFailed: 'a.mkv': its worker sent nothing for 10 s")
        #expect(Self.message(.failure(.ended)) == "DecodeFailed: 'a.mkv': its worker ended unexpectedly")
        #expect(Self.message(.failure(.notStarted)).hasPrefix("ResourceNotAvailable: no worker can be started"))
    }

    // MARK: Speeds

    private struct Speeds {
        let folder: PrivateFolder
        let file: KeptFile
        var speeds: ExportSpeeds { ExportSpeeds(file) }

        init() throws {
            folder = try PrivateFolder()
            file = KeptFile(folder.path + "/new/export-speeds", limit: 4_096)
        }
    }

    @Test func firstSpeed_isKept_andTheNextOneCountsHalf() throws {
        let stage = try Speeds()
        let speeds = stage.speeds
        #expect(speeds[.low] == nil)
        speeds.add(4, of: .low)
        #expect(speeds[.low] == 4 && speeds[.high] == nil)
        speeds.add(2, of: .low)
        #expect(speeds[.low] == 3)
    }

    @Test func speeds_areThereForTheNextProcess() throws {
        let stage = try Speeds()
        let first = stage.speeds
        first.add(4, of: .low)
        first.add(0.5, of: .size1280x720)
        let second = stage.speeds
        #expect(second[.low] == 4 && second[.size1280x720] == 0.5)
    }

    @Test(arguments: ["", "low", "low nan", "low -1", "low 0", "low inf", "low 1 2", "\u{0}\u{1}"])
    func damagedSpeed_isUnknown(_ text: String) throws {
        let stage = try Speeds()
        try stage.file.write(Array("high 2\n\(text)\n".utf8))
        #expect(stage.speeds[.low] == nil)
        #expect(stage.speeds[.high] == 2)
    }

    @Test func withoutAFolder_speedsLastAsLongAsTheProcess() {
        let speeds = ExportSpeeds(nil)
        speeds.add(4, of: .low)
        #expect(speeds[.low] == 4)
    }
}
