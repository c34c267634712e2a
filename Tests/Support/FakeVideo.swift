import Foundation

/// The controls of a camera of Video4Linux without hardware. Its library, which programs load first, is in Tests/FakeCard.
public final class FakeVideo {
    /// The device, which only programs with ``environment`` see.
    public static let device = "/dev/video-of-tests"
    /// What a webcam has whose picture can be set.
    public static let webcam = """
        focus_auto bool 0 1 1 1
        focus_absolute int 0 250 5 30
        auto_exposure menu 0 3 1 3 1=0 3=0
        exposure_time_absolute int 3 2047 1 250
        white_balance_automatic bool 0 1 1 1
        white_balance_temperature int 2000 6500 1 4000

        """

    private let folder: PrivateFolder
    private var state: String { folder.path + "/video" }
    public let environment: [String: String]

    /// - Parameter controls: a line for each, as the library says.
    public init(_ controls: String = webcam) throws {
        folder = try PrivateFolder()
        _ = try folder.file("video", controls)
        environment = [
            "LD_PRELOAD": try FakeVideo.library.get(), "FAKE_VIDEO": folder.path + "/video",
            "FAKE_VIDEO_DEVICE": FakeVideo.device,
        ]
    }

    /// What was set since the last call, in this order, such as `focus_auto=0`.
    public func settings() throws -> [String] {
        let log = state + ".log"
        guard FileManager.default.fileExists(atPath: log) else { return [] }
        defer { try? FileManager.default.removeItem(atPath: log) }
        return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// Whether the driver refuses everything, and whether it does not answer.
    public func set(busy: Bool = false, hangs: Bool = false) throws {
        for (suffix, isSet) in [(".busy", busy), (".hangs", hangs)] {
            if isSet {
                _ = try folder.file("video" + suffix, "")
            } else {
                try? FileManager.default.removeItem(atPath: state + suffix)
            }
        }
    }

    /// Compiled once for all tests.
    private static let library = Result { () throws -> String in
        try CompilerOfC.build("FakeVideo.c", into: "FakeVideo.so", ["-shared", "-fPIC", "-ldl"])
    }
}
