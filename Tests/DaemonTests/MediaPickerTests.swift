import DBus
import Foundation
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// `SessionKit.MediaPicker`: on the terminal of an app, and in the window of the example in Python.
@Suite(.serialized) struct MediaPickerTests {
    @Test func appWithATerminal_picksOnTheTerminal() async throws {
        let stage = try await MusicStage()
        let environment = try stage.environmentOfATerminal()
        func jukebox() throws -> PseudoTerminal {
            try PseudoTerminal(try builtProduct(named: "example-jukebox"), ["--pick"], environment: environment)
        }
        let terminal = try jukebox()
        #expect(eventually(timeout: 30) { terminal.text.contains("Hunter") }, "\(terminal.text)")
        #expect(terminal.text.contains("Music for the jukebox") && terminal.isRaw)
        terminal.type("thunder\r")
        #expect(eventually(timeout: 30) { terminal.text.contains("1. Thunderstruck (60 s)") }, "\(terminal.text)")
        #expect(!terminal.isRaw)
        terminal.signal(SIGTERM)
        #expect(terminal.wait() != nil)
        let cancelled = try jukebox()
        #expect(eventually(timeout: 30) { cancelled.text.contains("Hunter") })
        cancelled.type("\u{1B}")
        #expect(cancelled.wait() == .code(0))
        #expect(cancelled.text.hasSuffix("cancelled\r\n"), "\(cancelled.text)")
        let left = try jukebox()
        #expect(eventually(timeout: 30) { left.text.contains("Hunter") })
        kill(try stage.process(of: .library), SIGKILL)
        #expect(left.wait() == .code(0))
        #expect(left.text.contains("cancelled\r\n") && !left.isRaw, "\(left.text)")
    }

    @Test func appWithoutATerminal_getsAnError() async throws {
        let stage = try await MusicStage([])
        let child = try Child(
            "setsid", ["-w", try builtProduct(named: "example-jukebox"), "--pick"], environment: stage.environment)
        #expect(child.wait(timeout: 60) != .code(0))
        #expect(child.errors.joined().contains("no plugin of the kind media-picker"), "\(child.errors)")
    }

    // MARK: The window

    /// An X server without a screen, and keys for the window that is there.
    private final class Screen {
        let server: Child
        let display: String

        /// Nil where it or GTK is not installed.
        init?() throws {
            guard FileManager.default.isExecutableFile(atPath: "/usr/bin/Xvfb"),
                (try? Child.run("/usr/bin/python3", ["-c", Self.needed])) != nil
            else { return nil }
            server = try Child(
                "/usr/bin/Xvfb", ["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"], environment: [:]
            )
            let line = server.line { Int($0) != nil }
            guard let number = line else {
                throw SupportError("Xvfb does not start: \(server.errors)")
            }
            display = ":" + number
        }

        private static let needed = """
            import ctypes, dbus, gi
            gi.require_version('Gtk', '3.0')
            ctypes.CDLL('libXtst.so.6')
            """

        /// Types keys, by the names of X, into the window under the pointer.
        func type(_ keys: [String]) throws {
            let program = """
                import ctypes, sys
                x, t = ctypes.CDLL('libX11.so.6'), ctypes.CDLL('libXtst.so.6')
                x.XOpenDisplay.restype = ctypes.c_void_p
                d = ctypes.c_void_p(x.XOpenDisplay(None))
                x.XStringToKeysym.restype = ctypes.c_ulong
                t.XTestFakeMotionEvent(d, -1, 100, 100, 0)
                for key in sys.argv[1:]:
                    code = x.XKeysymToKeycode(d, ctypes.c_ulong(x.XStringToKeysym(key.encode())))
                    for down in 1, 0:
                        t.XTestFakeKeyEvent(d, code, down, 0)
                x.XSync(d, 0)
                """
            try Child.run(
                "/usr/bin/python3", ["-c", program] + keys, environment: ["DISPLAY": display, "PATH": "/usr/bin:/bin"])
        }

        /// Whether a window is shown.
        func hasWindow(_ title: String) -> Bool {
            let tree = try? Child.run(
                "/usr/bin/python3",
                [
                    "-c",
                    """
                    import ctypes
                    x = ctypes.CDLL('libX11.so.6')
                    x.XOpenDisplay.restype = ctypes.c_void_p
                    d = ctypes.c_void_p(x.XOpenDisplay(None))
                    x.XDefaultRootWindow.restype = ctypes.c_ulong
                    root, parent, n = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint()
                    kids = ctypes.POINTER(ctypes.c_ulong)()
                    x.XQueryTree(d, ctypes.c_ulong(x.XDefaultRootWindow(d)), ctypes.byref(root), ctypes.byref(parent),
                                 ctypes.byref(kids), ctypes.byref(n))
                    for i in range(n.value):
                        name = ctypes.c_char_p()
                        if x.XFetchName(d, ctypes.c_ulong(kids[i]), ctypes.byref(name)):
                            print(name.value.decode())
                    """,
                ], environment: ["DISPLAY": display, "PATH": "/usr/bin:/bin"])
            return tree?.split(separator: "\n").contains(Substring(title)) == true
        }
    }

    @Test func windowOfTheExample_picksAndIsCancelled_ifItIsInstalled() async throws {
        guard let screen = try Screen() else { return }
        let stage = try await MusicStage(more: ["DISPLAY": screen.display, "NO_AT_BRIDGE": "1", "GDK_BACKEND": "x11"])
        let example = repository.path + "/Examples/Plugins/picker"
        let manifest = try String(contentsOfFile: example + "/picker.plugin", encoding: .utf8)
            .replacingOccurrences(of: "Exec=example-picker", with: "Exec=\(example)/example-picker")
        try manifest.write(
            toFile: stage.home.path + "/.local/share/sessiond/plugins/picker.plugin", atomically: true, encoding: .utf8)
        var picker = MediaPicker(mediaTypes: [.music], bus: stage.bus)
        picker.prompt = "Which song"
        let asked = picker
        func pick(_ act: () async throws -> Void) async throws -> [String]? {
            let task = Task { try await asked.pick() }
            #expect(eventually(timeout: 60) { screen.hasWindow("Which song") })
            try await act()
            let items = try await task.value?.items(in: stage.library).map(\.title)
            #expect(eventually(timeout: 30) { !screen.hasWindow("Which song") })
            return items
        }
        #expect(try await pick { try screen.type(["Escape"]) } == nil)
        // The search has the keys; its first finding is picked with enter.
        #expect(
            try await pick {
                try screen.type(["u", "n", "r"])
                // The search waits until nobody types any more.
                try await Task.sleep(for: .seconds(1))
                try screen.type(["Return"])
            } == ["Unravel"])
        // Who asks may change its mind.
        let task = Task { try await asked.pick() }
        #expect(eventually(timeout: 60) { screen.hasWindow("Which song") })
        task.cancel()
        #expect(try await task.value == nil)
        #expect(eventually(timeout: 30) { !screen.hasWindow("Which song") })
        #expect(try await pick { kill(try stage.process(of: .library), SIGKILL) } == nil)
    }
}
