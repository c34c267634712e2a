import PluginAPI

/// The keys in the windows of films and cameras, by their X11 keysym.
enum WindowKeys {
    static func command(for keysym: UInt32) -> MovieCommand? { table[keysym] }
    static func preview(_ keysym: UInt32) -> PreviewCommand? { cameraTable[keysym] }

    private static let cameraTable: [UInt32: PreviewCommand] = [
        0x20: .pause, letter("c"): .switchCamera, letter("C"): .switchCamera, letter("p"): .takePhoto,
        letter("P"): .takePhoto, letter("f"): .toggleFullscreen, letter("F"): .toggleFullscreen,
        escape: .leaveFullscreen, letter("q"): .exit, letter("Q"): .exit,
    ]

    /// Letters are their own keysym in Latin-1.
    private static let table: [UInt32: MovieCommand] = [
        0x20: .playOrPause,
        left: .seek(-5), right: .seek(5), down: .seek(-60), up: .seek(60),
        letter("["): .changeRate(-1), letter("]"): .changeRate(1),
        letter("f"): .toggleFullscreen, letter("F"): .toggleFullscreen, escape: .leaveFullscreen,
        letter("q"): .exit, letter("Q"): .exit,
        letter("m"): .toggleMute, letter("9"): .changeVolume(-0.05), letter("0"): .changeVolume(0.05),
        letter("l"): .toggleLoop, letter("."): .step(1), letter(","): .step(-1),
        pageUp: .skipChapters(1), pageDown: .skipChapters(-1),
        letter("#"): .nextTrack(.audio), letter("j"): .nextTrack(.subtitle),
    ]

    private static func letter(_ letter: Unicode.Scalar) -> UInt32 { letter.value }
    private static let escape: UInt32 = 0xff1b
    private static let (pageUp, pageDown): (UInt32, UInt32) = (0xff55, 0xff56)
    private static let (left, up, right, down): (UInt32, UInt32, UInt32, UInt32) = (0xff51, 0xff52, 0xff53, 0xff54)
}
