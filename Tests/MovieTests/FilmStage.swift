import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing
import VideoBackend

import class EventLoop.Timer

/// The engine of the movie player with a film, a screen and a sound server.
final class FilmStage {
    let loop = EventLoop()
    let pulse: any PrivateServer
    let ear: Ear
    let screen: PrivateScreen?
    let player: GStreamerPlayer
    let film: FilmScreen
    var finished = 0
    var failures: [String] = []
    var commands: [MovieCommand] = []
    var fullscreen: [FullscreenChange] = []

    /// - Parameter name: of a film of ``TestMedia``, or the path of another one.
    init(
        _ name: String, output: String = "auto", on other: PrivateScreen? = nil, wayland: PrivateCompositor? = nil
    ) throws {
        screen = try other ?? (wayland == nil ? PrivateScreen() : nil)
        pulse = try ServerKind.standard.server()
        ear = try Ear(pulse, sink: "speaker")
        (player, film) = FilmPlayer.make(
            on: loop, StreamIdentity(clientName: "test", server: pulse.serverString), display: screen?.display,
            wayland: wayland?.socket)
        player.onFinished = { [unowned self] _ in finished += 1 }
        player.onFailed = { [unowned self] in failures.append($0) }
        film.onCommand = { [unowned self] in commands.append($0) }
        film.onFullscreen = { [unowned self] in fullscreen.append($0) }
        try film.choose(output: output)
        player.load(uri: "file://" + (name.hasPrefix("/") ? name : try TestMedia.named(name).path()))
    }

    @discardableResult
    func until(_ timeout: Double = 20, _ condition: () -> Bool) -> Bool {
        loop.iterate(timeout: timeout, askingEvery: 0.002, until: condition)
    }

    var number: Int { screen?.number() ?? -1 }
}
