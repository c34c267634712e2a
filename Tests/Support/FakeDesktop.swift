import Foundation

/// The real xdg-desktop-portal with its permission store on a bus, and a program that answers its questions like a user.
public final class FakeDesktop {
    private let bus: PrivateBus
    private let folder: PrivateFolder
    private let store: Child
    private let dialogs: Child
    private var portal: Child?

    /// Whether the portal is installed.
    public static var isPossible: Bool { FileManager.default.isExecutableFile(atPath: path("xdg-desktop-portal")) }

    private static func path(_ program: String) -> String { "/usr/libexec/" + program }

    /// Starts what asks the user and what remembers the answers. PipeWire's session manager must be started after it, on the same
    /// bus; then the portal itself (``start(_:)``).
    public init(on bus: PrivateBus) throws {
        self.bus = bus
        folder = try PrivateFolder()
        let environment = ["PATH": searchPath, "HOME": folder.path, "XDG_DATA_HOME": folder.path + "/data"]
            .merging(bus.environment) { $1 }
        store = try Child(Self.path("xdg-permission-store"), environment: environment)
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "FakeDialogs.py"
        ).path
        // Debian's own Python, whatever else is first in PATH.
        dialogs = try Child("/usr/bin/python3", [script], environment: environment)
        guard dialogs.line(where: { $0 == "ready" }) != nil else {
            throw SupportError("the dialogs of the desktop do not start: \(dialogs.errors)")
        }
        _ = try folder.folder("portals")
        try folder.file(
            "portals/tests.portal",
            """
            [portal]
            DBusName=org.freedesktop.impl.portal.desktop.tests
            Interfaces=org.freedesktop.impl.portal.Access
            UseIn=tests

            """)
        try folder.file("portals/tests-portals.conf", "[preferred]\ndefault=tests\n")
        try folder.file("portals/portals.conf", "[preferred]\ndefault=tests\n")
    }

    /// Starts the portal, which connects to the server.
    public func start(_ server: PrivatePipeWire) throws {
        let environment = server.environment.merging(bus.environment) { $1 }.merging([
            "XDG_DESKTOP_PORTAL_DIR": folder.path + "/portals", "XDG_CURRENT_DESKTOP": "tests",
            "XDG_DATA_HOME": folder.path + "/data", "GIO_USE_VFS": "local", "GSETTINGS_BACKEND": "memory",
        ]) { $1 }
        let portal = try Child(Self.path("xdg-desktop-portal"), ["--replace"], environment: environment)
        self.portal = portal
        var answer = ""
        let isThere = eventually(timeout: 20) {
            answer =
                (try? call(
                    "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop",
                    "org.freedesktop.DBus.Properties.Get", "org.freedesktop.portal.Camera", "version")) ?? ""
            return answer.contains("uint32")
        }
        guard isThere else {
            throw SupportError("xdg-desktop-portal does not start: \(portal.errors) \(dialogs.errors)")
        }
    }

    public func endPortal() { portal?.kill() }

    /// What the user answers from now on, and to a question that is open: yes, no, or wait.
    public func answer(_ word: String) throws {
        func count() -> Int { lines.filter { $0 == "done " + word }.count }
        let before = count()
        dialogs.send(word)
        guard eventually({ count() > before }) else { throw SupportError("\(word): \(dialogs.errors)") }
    }

    private var lines: [String] { dialogs.text.split(separator: "\n").map(String.init) }
    /// The applications for which the user was asked; -: one outside of sandboxes.
    public var questions: [String] { lines.filter { $0.hasPrefix("asked ") }.map { String($0.dropFirst(6)) } }
    /// How many questions their programs have closed.
    public var closed: Int { lines.filter { $0 == "closed" }.count }

    /// Stores a permission: yes, no or ask.
    public func permit(_ application: String, _ word: String) throws {
        _ = try call(
            "org.freedesktop.impl.portal.PermissionStore", "/org/freedesktop/impl/portal/PermissionStore",
            "org.freedesktop.impl.portal.PermissionStore.SetPermission", "devices", "true", "camera", application,
            "['\(word)']")
    }

    /// What is stored.
    public func permissions() throws -> String {
        try call(
            "org.freedesktop.impl.portal.PermissionStore", "/org/freedesktop/impl/portal/PermissionStore",
            "org.freedesktop.impl.portal.PermissionStore.Lookup", "devices", "camera")
    }

    private func call(_ place: String, _ path: String, _ method: String, _ arguments: String...) throws -> String {
        try Child.run(
            "gdbus", ["call", "--session", "--dest", place, "--object-path", path, "--method", method] + arguments,
            environment: ["PATH": searchPath].merging(bus.environment) { $1 })
    }

    /// A script that runs a program in a sandbox like one of Flatpak, as the kernel, the portal and sessiond see it: with its own
    /// root folder, in which a file names the application. Its process stays the same.
    public static func sandbox(_ program: String, as application: String, in folder: PrivateFolder) throws -> String {
        let root = try folder.folder("sandbox")
        let path = try folder.file(
            "\(URL(fileURLWithPath: program).lastPathComponent)-in-\(application)",
            """
            #!/bin/bash
            mkdir -p "$XDG_RUNTIME_DIR/.flatpak/$$"
            printf '{ "child-pid": %s }' "$$" >"$XDG_RUNTIME_DIR/.flatpak/$$/bwrapinfo.json"
            exec unshare --mount --propagation private /bin/bash -ec '
                mount -t tmpfs sandbox "\(root)"
                for entry in /*; do
                    if [ -L "$entry" ]; then cp -P "$entry" "\(root)$entry"
                    elif [ -d "$entry" ]; then mkdir "\(root)$entry"; mount --rbind "$entry" "\(root)$entry"; fi
                done
                printf "[Application]\\nname=\(application)\\n\\n[Instance]\\ninstance-id=%s\\n" $$ >"\(root)/.flatpak-info"
                exec chroot "\(root)" "\(program)" "$@"
            ' sandbox "$@"

            """)
        chmod(path, 0o755)
        return path
    }
}
