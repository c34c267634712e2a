// swift-tools-version: 6.2
import PackageDescription

/// The settings of all targets: Swift 6, explicit existentials, imports that do not leak, warnings as errors.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// Each executable of plugins, with the D-Bus interfaces of its plugins and the modules it connects. `PluginKind`
/// describes the rest of a kind. Plugins with the same engines share one executable, which is installed under the name of
/// each.
let plugins: [(program: String, interfaces: [String], modules: [Target.Dependency])] = [
    (
        "sessiond-plugin", ["Player", "Recorder", "SoundEffects"],
        ["PluginKit", "MediaValues", "GStreamerBackend", "PulseBackend", "Installation", "DBus", "PluginAPI"]
    ),
    ("sessiond-movie", ["MoviePlayer"], ["Movie"]),
    ("sessiond-live", ["Live"], ["Live"]),
    ("sessiond-capture", ["Capture", "CaptureSession"], ["Capture"]),
    (
        "sessiond-transfer", ["Uploads", "AssetCache"],
        ["Uploads", "AssetCache", "Installation", "PluginKit", "DBus", "PluginAPI"]
    ),
    ("sessiond-assets", ["Assets"], ["Assets"]),
    ("sessiond-library", ["Library"], ["Library"]),
]

/// The XML of the D-Bus interfaces that the daemon and the plugins serve. `Interfaces` is a symbolic link in each
/// target that embeds them.
let served = ["Manager", "Session", "Plugins"].map { "Interfaces/org.sessiond1.\($0).xml" }
let played =
    (plugins.flatMap(\.interfaces) + ["Job", "LiveStream"]).map { "Interfaces/org.sessiond1.\($0).xml" }
    + ["", ".Player", ".TrackList", ".Playlists"].map { "Interfaces/mpris/org.mpris.MediaPlayer2\($0).xml" }

/// MPRIS, which an app serves for its own player.
let shown = ["", ".Player"].map { "Interfaces/mpris/org.mpris.MediaPlayer2\($0).xml" }

/// The interface of a plugin that others bring: nothing here serves it.
let foreign = ["Interfaces/org.sessiond1.MediaPicker.xml"]

/// Whether another package depends on this one: then it is in SwiftPM's folder of dependencies, or, while SwiftPM chooses
/// its version, in the root of a repository without a working copy.
let isDependency =
    Context.packageDirectory == "/"
    || ["/checkouts/", "/registry/downloads/"].contains { "\(Context.packageDirectory)/".contains($0) }

/// Optimizes also in a debug build: the values, the rules and D-Bus, which all programs of the tests execute most of the
/// time, targets that the tests run a million times, and others that analyze sound. SwiftPM refuses unsafe flags in a
/// dependency. Sanitizers (Scripts/sanitize) get no optimization: the thread sanitizer reports false races where the
/// optimizer copies an array before it writes to it.
let fast: [SwiftSetting] =
    isDependency || Context.environment["SESSIOND_SANITIZER"] != nil
    ? strict : strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// The groups of modules: each is a folder of Sources with a README that tells its rule. A module that is in no group is a
/// folder of Sources itself.
let groups: [(folder: String, modules: Set<String>)] = [
    (
        "Decisions",
        ["Decider", "Enforcement", "MediaControl", "Routing", "Scenario", "State", "Supervision", "Timeline"]
    ),
    (
        "Media",
        [
            "Capturing", "FileFormats", "LiveStreaming", "MediaCache", "MediaLibrary", "MediaValues", "TagFormats",
            "Uploading",
        ]
    ),
    (
        "Services",
        ["AssetCache", "Assets", "Capture", "FilmRequests", "Library", "Live", "MediaShare", "Movie", "Uploads"]
    ),
    ("Kits", ["AVNames", "PluginKit", "PluginKitTesting", "SessionKit"]),
    (
        "Platform",
        [
            "DBus", "EventLoop", "HTTP", "Installation", "LoopbackHTTP", "MediaPlayers", "Processes", "SessionBus",
            "Workers",
        ]
    ),
    (
        "Platform/C",
        [
            "CCurl", "CDBus", "CFilms", "CGStreamer", "CIsolation", "CLinux", "CMicroHTTPD", "CPulse", "CSDP",
            "CSQLite", "CStreaming", "CV4L2", "CVideo", "CWayland", "CWaylandClient", "CWebRTC", "CXCB", "CXKB",
        ]
    ),
    ("Programs", Set(plugins.map(\.program))),
]

func folder(of module: String) -> String {
    let group = groups.first { $0.modules.contains(module) }
    return (["Sources"] + (group.map { [$0.folder] } ?? []) + [module]).joined(separator: "/")
}

func room(
    _ name: String, path: String? = nil, _ dependencies: [Target.Dependency], embedding: [String] = [],
    exclude: [String] = [], _ settings: [SwiftSetting] = strict
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: path ?? folder(of: name), exclude: exclude,
        resources: embedding.map { .embedInCode($0) }, swiftSettings: settings)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, path: folder(of: name), swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = strict) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

func system(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: folder(of: name), pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let package = Package(
    name: "sessiond",
    products: [
        .library(name: "SessionKit", targets: ["SessionKit"]),
        .library(name: "AVNames", targets: ["AVNames"]),
        .library(name: "PluginKit", targets: ["PluginKit"]),
        .library(name: "PluginKitTesting", targets: ["PluginKitTesting"]),
        .executable(name: "sessiond", targets: ["sessiond"]),
        .executable(name: "sessionctl", targets: ["sessionctl"]),
    ] + plugins.map { .executable(name: $0.program, targets: [$0.program]) },
    traits: [
        .trait(name: "Programs", description: "The daemon and sessionctl, which need packages of others."),
        .default(enabledTraits: ["Programs"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    ],
    targets: [
        // C libraries.
        system("CDBus", pkgConfig: "dbus-1", apt: "libdbus-1-dev"),
        .systemLibrary(name: "CLinux", path: folder(of: "CLinux")),
        .systemLibrary(name: "CV4L2", path: folder(of: "CV4L2")),
        // Starts untrusted programs, and takes rights away from processes that read untrusted files.
        .target(name: "CIsolation", path: folder(of: "CIsolation")),
        system("CPulse", pkgConfig: "libpulse", apt: "libpulse-dev"),
        system("CGStreamer", pkgConfig: "gstreamer-1.0", apt: "libgstreamer1.0-dev"),
        // What runs on GStreamer's own threads.
        .target(name: "CStreaming", dependencies: ["CGStreamer"], path: folder(of: "CStreaming")),
        system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        system("CMicroHTTPD", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),
        system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        // The window of films.
        system("CVideo", pkgConfig: "gstreamer-video-1.0", apt: "libgstreamer-plugins-base1.0-dev"),
        system("CXCB", pkgConfig: "xcb", apt: "libxcb1-dev"),
        system("CWaylandClient", pkgConfig: "wayland-client", apt: "libwayland-dev"),
        system("CXKB", pkgConfig: "xkbcommon", apt: "libxkbcommon-dev"),
        .target(
            name: "CWayland", dependencies: ["CGStreamer", "CWaylandClient", "CXKB"], path: folder(of: "CWayland")),
        // Live streams by WebRTC.
        system("CSDP", pkgConfig: "gstreamer-sdp-1.0", apt: "libgstreamer-plugins-base1.0-dev"),
        .target(name: "CWebRTC", dependencies: ["CGStreamer", "CSDP"], path: folder(of: "CWebRTC")),
        system("CFilms", pkgConfig: "gstreamer-pbutils-1.0", apt: "libgstreamer-plugins-base1.0-dev"),

        // Values and rules. They import only the standard library.
        room("PluginAPI", [], fast),
        room("SessionManager", ["PluginAPI"], fast),
        // The state that survives a restart of the daemon, and its file format.
        room("State", ["Enforcement", "SessionManager", "PluginAPI"], fast),
        // Decides which sink and source each stream uses.
        room("Routing", ["SessionManager", "PluginAPI"], fast),
        // Decides which session a stream belongs to, and how to duck or hold it.
        room("Enforcement", ["SessionManager", "PluginAPI"], fast),
        // Makes all decisions in one function: it takes facts and returns actions.
        room("Decider", ["Enforcement", "MediaControl", "Routing", "SessionManager", "PluginAPI"], fast),
        // Reads settings and manifests, for the daemon and for `sessionctl doctor`.
        room("Installation", ["Processes", "PluginAPI"]),
        // Runs the same rules on a scenario, and parses scenario files.
        room("Scenario", ["Decider", "Enforcement", "MediaControl", "Routing", "SessionManager", "PluginAPI"], fast),

        // The event loop and D-Bus.
        room("EventLoop", ["CLinux", "CPulse"], fast),
        // Starts programs and reports how they end.
        room("Processes", ["CLinux", "CIsolation"]),
        // Decides when a plugin is started and ended.
        room("Supervision", ["Processes"]),
        // Processes that open files of strangers.
        room("Workers", ["Processes", "EventLoop", "CLinux", "CIsolation"]),
        room("DBus", ["CDBus", "EventLoop"], fast),
        room(
            "SessionBus", ["DBus", "PluginAPI"], embedding: served, exclude: played + foreign,
            fast),

        // MPRIS players: which to pause and resume, which one receives the media keys. MediaPlayers does it over D-Bus.
        room("MediaControl", ["SessionManager", "PluginAPI"], fast),
        room("MediaPlayers", ["MediaControl", "DBus", "EventLoop"]),

        // The order of the tracks in a queue, and the metadata of files. Neither needs D-Bus or GStreamer.
        room("MediaValues", ["PluginAPI"], fast),
        room("FileFormats", ["PluginAPI"], fast),
        // Who was heard over time, as text, SVG and HTML; for `sessionctl timeline`.
        room("Timeline", []),

        // Uploads: the rules and the records as values; and HTTP requests by libcurl, on the event loop.
        room("Uploading", ["PluginAPI"], fast),
        room("HTTP", ["CCurl", "EventLoop"]),

        // A cache of web resources: the rules and the records as values; and a web server for players on this machine.
        room("MediaCache", [], fast),
        room("LoopbackHTTP", ["CMicroHTTPD", "EventLoop"]),

        // A camera and a microphone, and films of them: the rules as values.
        room("Capturing", ["LiveStreaming", "PluginAPI"], fast),

        // The music library: the tags of music files, and the database with its queries and the rules of a scan.
        room("TagFormats", [], fast),
        room("MediaLibrary", ["CSQLite", "TagFormats", "MediaValues", "FileFormats", "Processes", "PluginAPI"], fast),

        // Backends. None imports SessionManager.
        room("PulseBackend", path: "Sources/Backends/Pulse", ["CPulse", "EventLoop", "Processes", "PluginAPI"]),
        // The common part of everything that uses GStreamer.
        room("GStreamerBase", path: "Sources/Backends/GStreamer/Base", ["CGStreamer", "PluginAPI"]),
        room(
            "GStreamerBackend", path: "Sources/Backends/GStreamer/Sound",
            [
                "GStreamerBase", "CGStreamer", "CStreaming", "FileFormats", "LiveStreaming", "EventLoop", "Processes",
                "PluginAPI",
            ]),
        room(
            "VideoBackend", path: "Sources/Backends/GStreamer/Video",
            [
                "GStreamerBackend", "GStreamerBase", "CGStreamer", "CStreaming", "CVideo", "CWayland", "CXCB",
                "EventLoop", "PluginAPI",
            ]),
        // Live streams: when a connection is made again, and the address with its key; and encoders with their users.
        room("LiveStreaming", ["MediaValues", "PluginAPI"], fast),
        room(
            "LiveBackend", path: "Sources/Backends/GStreamer/Live",
            [
                "CameraBackend", "Capturing", "GStreamerBackend", "GStreamerBase", "CGStreamer", "CStreaming",
                "CWebRTC",
                "HTTP", "LiveStreaming", "EventLoop", "PluginAPI",
            ]),
        room(
            "CameraBackend", path: "Sources/Backends/GStreamer/Camera",
            [
                "Capturing", "FileFormats", "GStreamerBackend", "GStreamerBase", "VideoBackend", "CGStreamer",
                "CStreaming", "CV4L2", "CVideo", "EventLoop", "Processes", "PluginAPI",
            ]),
        // The requests of the plugin for films to its workers, typed.
        room("FilmRequests", ["Workers", "PluginAPI"]),
        // What opens films, in a worker: nothing else is linked to it.
        room(
            "FilmBackend", path: "Sources/Backends/GStreamer/Films",
            ["GStreamerBase", "CFilms", "FileFormats", "TagFormats", "FilmRequests", "Workers", "PluginAPI"]),

        // The libraries for apps (SessionKit) and for plugins (PluginKit).
        room(
            "SessionKit", ["SessionBus", "DBus", "EventLoop", "Processes", "CLinux", "PluginAPI"], embedding: shown,
            exclude: served + played.filter { !shown.contains($0) } + foreign),
        // The names of AVFoundation and MediaPlayer for SessionKit.
        room("AVNames", ["SessionKit"]),
        room(
            "PluginKit",
            [
                "SessionKit", "LiveStreaming", "MediaValues", "SessionBus", "DBus", "EventLoop", "Processes",
                "PluginAPI",
            ],
            embedding: played, exclude: served + foreign),
        // Services: what a plugin does, as a library that tests use without a process.
        room(
            "Assets",
            [
                "PluginKit", "FilmBackend", "FilmRequests", "FileFormats", "MediaValues", "Workers", "Processes",
                "SessionBus", "DBus", "EventLoop", "PluginAPI",
            ]),
        room(
            "Library",
            [
                "PluginKit", "MediaLibrary", "TagFormats", "FileFormats", "MediaValues", "Workers", "Installation",
                "Processes", "SessionBus", "DBus", "EventLoop", "PluginAPI",
            ]),
        room(
            "Movie",
            [
                "PluginKit", "VideoBackend", "GStreamerBackend", "Installation", "MediaValues", "Processes",
                "SessionBus", "DBus", "EventLoop", "PluginAPI",
            ]),
        room(
            "Live",
            [
                "PluginKit", "LiveBackend", "LiveStreaming", "GStreamerBackend", "SessionBus", "DBus", "PluginAPI",
            ]),
        room(
            "Capture",
            [
                "PluginKit", "CameraBackend", "LiveBackend", "VideoBackend", "GStreamerBackend", "Capturing",
                "LiveStreaming", "FileFormats", "Installation", "Processes", "SessionBus", "DBus", "EventLoop",
                "PluginAPI",
            ]),
        room(
            "Uploads", ["PluginKit", "HTTP", "Uploading", "Processes", "SessionBus", "DBus", "EventLoop", "PluginAPI"]),
        // The music library for televisions and speakers; in sessionctl.
        room("MediaShare", ["MediaValues", "SessionBus", "DBus", "PluginAPI"]),
        // An engine without sound and a daemon without rules, for the tests of plugins.
        room("PluginKitTesting", ["SessionBus", "DBus", "EventLoop", "PluginAPI"]),

        // The cache for media of the web.
        room(
            "AssetCache",
            [
                "MediaCache", "LoopbackHTTP", "HTTP", "PluginKit", "MediaValues", "SessionBus", "DBus", "EventLoop",
                "Processes", "PluginAPI",
            ]),

        // Programs. They only connect the modules above.
        program(
            "sessiond",
            [
                "Decider", "SessionManager", "State", "Routing", "Enforcement", "Installation", "Scenario",
                "Supervision", "SessionBus", "PulseBackend", "DBus", "EventLoop", "Processes", "PluginAPI",
                "MediaPlayers", "MediaControl",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Programs"])),
            ]),
        program(
            "sessionctl",
            [
                "SessionKit", "MediaValues", "SessionBus", "SessionManager", "Installation", "PulseBackend",
                "Scenario", "DBus", "EventLoop", "FileFormats", "MediaShare", "Processes", "PluginAPI", "Timeline",
                "Workers",
                .product(
                    name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["Programs"])),
            ]),

        // Starts private sound servers for the tests, and records and analyzes the monitors of their sinks. Without
        // optimization, the analysis used more processor time than the tested programs.
        .target(
            name: "TestSupport", dependencies: ["CPulse", "DBus", "EventLoop", "PluginAPI"], path: "Tests/Support",
            exclude: [
                "FakeBluetooth.py", "FakeDialogs.py", "FakeMachine.py", "UploadServer.py", "TusPeer.py", "TagCorpus.py",
                "UPnPClient.py",
                "StreamFlood.py", "RetaggedFiles.py", "OriginServer.py", "DeafPeer.py",
                "RTSPServer.py", "TLSRelay.py", "LossyRelay.py", "WHIPServer.py", "WHIPPeer.py",
            ],
            swiftSettings: fast),
        .executableTarget(
            name: "sessiond-demo", dependencies: ["TestSupport", "SessionBus", "DBus", "EventLoop", "PluginAPI"],
            path: "Examples/Demo", swiftSettings: strict),
        // An example app of one page. Like the app of another author, it uses only SessionKit.
        .executableTarget(
            name: "example-radio", dependencies: ["SessionKit"], path: "Examples/Radio", swiftSettings: strict),
        // Another one, which plays from the music library.
        .executableTarget(
            name: "example-jukebox", dependencies: ["SessionKit"], path: "Examples/Jukebox", swiftSettings: strict),
        // Another one, which keeps what it plays from the web.
        .executableTarget(
            name: "example-episode", dependencies: ["SessionKit"], path: "Examples/Episode", swiftSettings: strict),
        // An app that records and plays by itself.
        .executableTarget(
            name: "example-voice-notes", dependencies: ["SessionKit"], path: "Examples/VoiceNotes",
            swiftSettings: strict),
        // An app of iOS (Examples/iOS/VoiceNotes), ported.
        .executableTarget(
            name: "example-ported-notes", dependencies: ["AVNames"], path: "Examples/Ported",
            swiftSettings: [.treatAllWarnings(as: .error)]),
        // A camera app of iOS, ported.
        .executableTarget(
            name: "example-ported-camera", dependencies: ["AVNames"], path: "Examples/PortedCamera",
            swiftSettings: [.treatAllWarnings(as: .error)]),
        // An example player plugin of one page, as another author would write it.
        .executableTarget(
            name: "example-paplay", dependencies: ["PluginKit", "EventLoop"], path: "Examples/Plugins/Paplay",
            exclude: ["paplay.plugin"], swiftSettings: strict),
        // Fuzzes the decoders with bytes and the daemon with D-Bus calls. Scripts/fuzz runs it for a long time.
        room(
            "Fuzzing", path: "Fuzz/Fuzzing",
            [
                "CDBus", "DBus", "Enforcement", "EventLoop", "FileFormats", "SessionBus", "Scenario", "State",
                "SessionManager", "Workers", "PluginAPI",
            ]),
        .executableTarget(
            name: "sessiond-fuzz", dependencies: ["Fuzzing", "TestSupport", "EventLoop"], path: "Fuzz/sessiond-fuzz",
            swiftSettings: strict),
        // Replaces malloc to count allocations, so only the benchmark is linked to it.
        .target(name: "AllocationCount", path: "Benchmarks/AllocationCount"),
        .executableTarget(
            name: "sessiond-benchmark", dependencies: ["SessionManager", "PluginAPI", "AllocationCount"],
            path: "Benchmarks/Core", swiftSettings: strict),
        tests("PluginAPITests", ["PluginAPI", "ReferenceModel"]),
        // An independent second implementation of the rules.
        room("ReferenceModel", path: "Tests/Model", ["SessionManager", "PluginAPI"], fast),
        .testTarget(
            name: "RoutingTests", dependencies: ["Routing", "SessionManager", "PluginAPI", "ReferenceModel"],
            exclude: ["Transcripts"], swiftSettings: strict),
        tests(
            "DeciderTests",
            [
                "Decider", "Scenario", "Enforcement", "MediaControl", "Routing", "SessionManager", "PluginAPI",
                "ReferenceModel",
            ], fast),
        tests("EnforcementTests", ["Enforcement", "SessionManager", "Processes", "PluginAPI", "ReferenceModel"]),
        tests("SessionManagerTests", ["SessionManager", "PluginAPI", "ReferenceModel", "TestSupport"], fast),
        tests("SupervisionTests", ["Supervision", "Processes", "ReferenceModel"]),
        tests("StateTests", ["State", "Enforcement", "SessionManager", "PluginAPI", "ReferenceModel"]),
        tests("ScenarioTests", ["Scenario", "SessionManager", "PluginAPI", "ReferenceModel", "TestSupport"]),
        tests("MediaControlTests", ["MediaControl", "PluginAPI", "ReferenceModel"]),
        tests("MediaValuesTests", ["MediaValues", "PluginAPI"]),
        tests("FileFormatsTests", ["FileFormats", "PluginAPI"]),
        tests("CapturingTests", ["Capturing", "LiveStreaming", "PluginAPI", "ReferenceModel"], fast),
        tests(
            "CaptureTests",
            [
                "Capture", "CameraBackend", "Capturing", "SessionKit", "FileFormats", "CXCB", "SessionBus", "DBus",
                "EventLoop", "PluginAPI", "TestSupport",
            ]),
        tests("TimelineTests", ["Timeline"]),
        tests(
            "PluginKitTests",
            [
                "PluginKit", "PluginKitTesting", "SessionKit", "SessionBus", "DBus", "EventLoop", "PluginAPI",
                "TestSupport", "ReferenceModel",
            ]),
        tests("AVNamesTests", ["AVNames", "SessionKit"]),
        tests("EventLoopTests", ["EventLoop", "TestSupport"]),
        tests("HTTPTests", ["HTTP", "EventLoop", "TestSupport"]),
        tests(
            "AssetsTests",
            [
                "Assets", "PluginKit", "FilmRequests", "FileFormats", "Workers", "SessionBus", "DBus", "PluginAPI",
                "TestSupport",
            ]),
        tests(
            "LibraryTests",
            ["Library", "MediaLibrary", "Workers", "SessionBus", "DBus", "EventLoop", "TestSupport"]),
        tests("MediaShareTests", ["MediaShare", "SessionBus", "DBus", "EventLoop", "PluginAPI", "TestSupport"]),
        tests("UploadsTests", ["Uploads", "Uploading", "HTTP", "SessionBus", "DBus", "PluginAPI", "TestSupport"]),
        tests("UploadingTests", ["Uploading", "PluginAPI", "ReferenceModel"]),
        tests(
            "AssetCacheTests",
            [
                "AssetCache", "MediaCache", "HTTP", "LoopbackHTTP", "PluginKit", "SessionBus", "DBus", "EventLoop",
                "PluginAPI", "TestSupport",
            ]),
        tests("MediaCacheTests", ["MediaCache", "ReferenceModel"], fast),
        tests("TagFormatsTests", ["TagFormats", "ReferenceModel", "TestSupport"]),
        tests("MediaLibraryTests", ["MediaLibrary", "TagFormats", "ReferenceModel", "TestSupport"], fast),
        tests("WorkersTests", ["Workers", "CIsolation", "EventLoop", "TestSupport", "ReferenceModel"]),
        tests(
            "FilmTests",
            [
                "FilmBackend", "FilmRequests", "GStreamerBase", "Workers", "PluginKit", "SessionKit", "SessionBus",
                "DBus", "EventLoop",
                "FileFormats",
                "PluginAPI", "TestSupport", "ReferenceModel",
            ]),
        tests("DBusTests", ["DBus", "EventLoop", "TestSupport"]),
        tests(
            "PulseBackendTests", ["PulseBackend", "EventLoop", "PluginAPI", "TestSupport", "ReferenceModel"]),
        tests(
            "GStreamerBackendTests",
            [
                "GStreamerBackend", "GStreamerBase", "CGStreamer", "CStreaming", "EventLoop", "PluginAPI",
                "TestSupport", "ReferenceModel",
            ]),
        tests(
            "MovieTests",
            [
                "VideoBackend", "GStreamerBackend", "LiveBackend", "LiveStreaming", "CXCB", "SessionBus", "DBus",
                "EventLoop", "PluginAPI", "TestSupport", "ReferenceModel",
            ]),
        tests(
            "LiveTests",
            [
                "LiveBackend", "LiveStreaming", "GStreamerBackend", "EventLoop", "PluginAPI", "TestSupport",
                "ReferenceModel",
            ]),
        // Clients in other languages.
        tests("BindingsTests", ["TestSupport"]),
        // The real daemon with its clients and other programs, on private servers.
        tests(
            "DaemonTests",
            [
                "SessionBus", "SessionKit", "PluginKit", "PluginKitTesting", "DBus", "Enforcement", "EventLoop",
                "PluginAPI", "TestSupport", "Fuzzing", "SessionManager", "Scenario", "State", "ReferenceModel",
            ]),
    ]
        + plugins.map { program($0.program, $0.modules) },
    swiftLanguageModes: [.v6]
)

// An app gets the libraries and the plugins. Only the daemon and sessionctl need other packages.
if isDependency {
    package.dependencies.removeAll()
    for program in ["sessiond", "sessionctl"] {
        package.targets.removeAll { $0.name == program }
        package.products.removeAll { $0.name == program }
    }
}

// Only Scripts/fuzz builds this program: libFuzzer comes from the linker's command line.
if Context.environment["SESSIOND_LIBFUZZER"] != nil {
    package.targets.append(
        .executableTarget(
            name: "sessiond-libfuzzer", dependencies: ["Fuzzing"], path: "Fuzz/libfuzzer", swiftSettings: strict))
}

/// Removes all targets but these and what they need.
@MainActor func keepOnly(_ kept: Set<String>) {
    var needed = kept
    while true {
        let found = package.targets.filter { needed.contains($0.name) }.flatMap(\.dependencies).compactMap {
            if case .byNameItem(let name, _) = $0 { name } else { nil }
        }
        guard !needed.isSuperset(of: found) else { break }
        needed.formUnion(found)
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products.removeAll()
}

// The short runs of Scripts/sanitize build only what their tests need: half of the package.
if let sanitizer = Context.environment["SESSIOND_SHORT"] {
    var tests: Set = ["EventLoopTests", "DBusTests", "PulseBackendTests"]
    // No other thread uses values.
    if sanitizer != "thread" { tests.formUnion(["PluginAPITests", "SessionManagerTests"]) }
    let daemonTests = package.targets.first { $0.name == "DaemonTests" }
    daemonTests?.sources = [
        "ContractTests", "InterfaceTests", "FaultInputTests", "FaultServiceTests", "FaultStage", "DaemonStage",
    ].map { "\($0).swift" }
    keepOnly(tests.union(["DaemonTests", "sessiond", "sessiond-fuzz"]))
}

// `Scripts/test --values` builds only the tests of values, which need no server: after an edit they are built within
// seconds, as no test of a program is linked with them.
if Context.environment["SESSIOND_VALUES"] != nil {
    keepOnly([
        "PluginAPITests", "SessionManagerTests", "RoutingTests", "EnforcementTests", "MediaControlTests",
        "DeciderTests", "StateTests", "ScenarioTests", "SupervisionTests", "TimelineTests", "MediaValuesTests",
        "MediaCacheTests", "MediaLibraryTests", "FileFormatsTests", "TagFormatsTests", "UploadingTests",
    ])
}
