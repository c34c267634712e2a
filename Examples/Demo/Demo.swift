import Foundation
import TestSupport

/// The demonstration of `make run`, with real sound. Exits with 0 only if each step had the right sound.
@main
enum Demo {
    static func main() {
        do {
            let stage = try Stage()
            for note in stage.notes { say("· \(note)") }
            let scene = Scene(stage)
            try scene.play()
            say("\nWho was heard (sessionctl timeline):\n\n\(scene.timeline)")
            say("\n\(scene.summary)")
            if ProcessInfo.processInfo.environment["KEEP"]?.isEmpty == false {
                try stage.plugHeadphonesIn()
                keep(stage, scene)
            } else {
                say(whatNext)
            }
            stage.strike()
            exit(scene.succeeded ? 0 : 1)
        } catch {
            say("The demonstration failed: \(error)")
            exit(1)
        }
    }

    private static let whatNext = """

        What next:
          make run KEEP=1     the same, and the servers stay for your own trials
          make install        install it; make deb builds Debian packages
          README.md           your own sound, apps and rooms; docs/why-is-it-silent.md answers the usual question
        """

    /// Prints how to use the servers, and keeps them running until Control-C.
    private static func keep(_ stage: Stage, _ scene: Scene) {
        let shown = ["DBUS_SESSION_BUS_ADDRESS", "PULSE_SERVER", "XDG_RUNTIME_DIR"]
        say("\nBus, sound server and daemon run until control-C. Try in another terminal:\n")
        for name in shown { if let value = stage.environment[name] { say("  export \(name)='\(value)'") } }
        let programs = (try? builtProduct(named: "sessionctl")).map {
            URL(fileURLWithPath: $0).deletingLastPathComponent().path
        }
        say("  export PATH=\"\(programs ?? ".build/debug"):$PATH\"")
        say(
            """

              sessionctl play --name Music \(scene.musicFile) &
              sessionctl run --name Phone --category play-and-record --class call -- sleep 20 &
              sessionctl status
              sessionctl monitor
              sessionctl timeline --html timeline.html
              busctl --user introspect org.sessiond1 /org/sessiond1
              dbus-send --session --print-reply --dest=org.sessiond1 /org/sessiond1 org.sessiond1.Manager.ListSessions

            """)
        signal(SIGINT, SIG_IGN)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        sigprocmask(SIG_BLOCK, &signals, nil)
        signal(SIGINT, SIG_DFL)
        var caught: Int32 = 0
        sigwait(&signals, &caught)
    }
}

/// Prints a line immediately, also to a pipe.
func say(_ line: String) {
    print(line)
    fflush(nil)
}
