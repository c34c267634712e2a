// swift-tools-version: 6.2
import PackageDescription

/// The flags of the house: Swift 6, explicit existentials, imports that do not leak, warnings are errors.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// The plugins: executable, the interfaces of its plugins, and the engines it is made of. What else there is to a kind says
/// PluginKind. Plugins with the same engines share one executable, which is installed under the name of each.
let plugins: [(program: String, interfaces: [String], engines: [Target.Dependency])] = [
    ("sessiond-plugin", ["Player", "Recorder", "SoundEffects"], ["GStreamerBackend", "PulseBackend"]),
    ("sessiond-assets", ["Assets"], ["FilmBackend", "Workers"]),
]

/// The contract's source, which `Interfaces` links to in the rooms that embed it: the daemon's, and the plugins'.
let served = ["Manager", "Session", "Plugins"].map { "Interfaces/org.sessiond1.\($0).xml" }
let played =
    (plugins.flatMap(\.interfaces) + ["Job"]).map { "Interfaces/org.sessiond1.\($0).xml" }
    + ["", ".Player", ".TrackList"].map { "Interfaces/mpris/org.mpris.MediaPlayer2\($0).xml" }

/// Optimized also in a debug build: what the tests run a million times, and what listens to sound. No target that somebody
/// else's package may use can have these flags. Not under a sanitizer (Scripts/sanitize): the thread sanitizer does not see
/// what the optimizer knows of an array that is copied before it is written.
let fast: [SwiftSetting] =
    Context.environment["SESSIOND_SANITIZER"] != nil
    ? strict : strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]

func room(
    _ name: String, path: String? = nil, _ dependencies: [Target.Dependency], embedding: [String] = [],
    exclude: [String] = [], _ settings: [SwiftSetting] = strict
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: path, exclude: exclude,
        resources: embedding.map { .embedInCode($0) }, swiftSettings: settings)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = strict) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

func system(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let package = Package(
    name: "sessiond",
    products: [
        .library(name: "SessionKit", targets: ["SessionKit"]),
        .library(name: "PluginKit", targets: ["PluginKit"]),
        .executable(name: "sessiond", targets: ["sessiond"]),
        .executable(name: "sessionctl", targets: ["sessionctl"]),
    ] + plugins.map { .executable(name: $0.program, targets: [$0.program]) },
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    ],
    targets: [
        // C libraries.
        system("CDBus", pkgConfig: "dbus-1", apt: "libdbus-1-dev"),
        .systemLibrary(name: "CLinux"),
        system("CPulse", pkgConfig: "libpulse", apt: "libpulse-dev"),
        system("CGStreamer", pkgConfig: "gstreamer-1.0", apt: "libgstreamer1.0-dev"),
        system("CFilms", pkgConfig: "gstreamer-pbutils-1.0", apt: "libgstreamer-plugins-base1.0-dev"),

        // Words and rules: standard library only.
        room("PluginAPI", []),
        room("SessionManager", ["PluginAPI"], fast),
        // What of them survives a restart, and the bytes it is kept in.
        room("State", ["SessionManager", "PluginAPI"]),
        // Where sound goes.
        room("Routing", ["SessionManager", "PluginAPI"]),
        // Whose a stream is, and what is done to it.
        room("Enforcement", ["PluginAPI"]),
        // All decisions behind one function: facts in, actions out.
        room("Decider", ["Enforcement", "Routing", "SessionManager", "PluginAPI"], fast),
        // Where settings and manifests are, for the daemon and for who asks what is wrong with them.
        room("Installation", ["Processes", "PluginAPI"]),
        // The same rules on a written scenario, and the text it is written in.
        room("Scenario", ["Decider", "Enforcement", "Routing", "SessionManager", "PluginAPI"]),

        // The loop and the bus.
        room("EventLoop", ["CLinux", "CPulse"]),
        // Starting programs, and what becomes of them.
        room("Processes", ["CLinux"]),
        // Processes that open files of strangers.
        room("Workers", ["Processes", "EventLoop", "CLinux"]),
        room("DBus", ["CDBus", "EventLoop"]),
        room("SessionBus", ["DBus", "EventLoop", "PluginAPI"], embedding: served, exclude: played),

        // Players of others: what may be paused and resumed, whom the media keys reach; and the same on the bus.
        room("MediaControl", ["PluginAPI"]),
        room("MediaPlayers", ["MediaControl", "DBus", "EventLoop"]),

        // What is played after what, and what files say of themselves: values and bytes, without a bus or an engine.
        room("MediaValues", ["PluginAPI"]),
        room("FileFormats", ["PluginAPI"]),

        // Adapters; none imports SessionManager.
        room("PulseBackend", path: "Sources/Backends/Pulse", ["CPulse", "EventLoop", "PluginAPI"]),
        room(
            "GStreamerBackend", path: "Sources/Backends/GStreamer",
            ["CGStreamer", "FileFormats", "EventLoop", "PluginAPI"]),
        // What opens films, in a worker: nothing else is linked to it.
        room("FilmBackend", path: "Sources/Backends/Films", ["CFilms", "Workers", "PluginAPI"]),

        // What authors of apps import, and what authors of plugins do.
        room("SessionKit", ["SessionBus", "DBus", "EventLoop", "CLinux", "PluginAPI"]),
        room(
            "PluginKit",
            [
                "SessionKit", "MediaValues", "FileFormats", "SessionBus", "DBus", "EventLoop", "Processes", "Workers",
                "PluginAPI",
            ],
            embedding: played, exclude: served),

        // Programs: wiring only.
        program(
            "sessiond",
            [
                "Decider", "SessionManager", "State", "Routing", "Enforcement", "Installation", "Scenario",
                "SessionBus",
                "PulseBackend", "DBus", "EventLoop", "Processes", "PluginAPI", "MediaPlayers", "MediaControl",
                .product(name: "Logging", package: "swift-log"),
            ]),
        program(
            "sessionctl",
            [
                "SessionKit", "MediaValues", "SessionBus", "SessionManager", "Installation", "PulseBackend",
                "Scenario", "DBus", "EventLoop", "Processes", "PluginAPI",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),

        // Private real servers, and ears: what the monitor of a sink hears. Unoptimized, listening took more of the
        // processor than all that was listened to.
        .target(
            name: "TestSupport", dependencies: ["CPulse", "DBus", "EventLoop", "PluginAPI"], path: "Tests/Support",
            exclude: ["FakeBluetooth.py"], swiftSettings: fast),
        .executableTarget(
            name: "sessiond-demo", dependencies: ["TestSupport", "SessionBus", "DBus", "EventLoop", "PluginAPI"],
            path: "Examples/Demo", swiftSettings: strict),
        // An app in a page, as its author writes it: nothing of ours but SessionKit.
        .executableTarget(
            name: "example-radio", dependencies: ["SessionKit"], path: "Examples/Radio", swiftSettings: strict),
        // A player plugin in a page, as a stranger writes it.
        .executableTarget(
            name: "example-paplay", dependencies: ["PluginKit", "EventLoop"], path: "Examples/Plugins/Paplay",
            exclude: ["paplay.plugin"], swiftSettings: strict),
        // What must survive anything: decoders by bytes, the bus by calls; Scripts/fuzz runs them for long.
        room(
            "Fuzzing", path: "Fuzz/Fuzzing",
            ["CDBus", "DBus", "EventLoop", "SessionBus", "Scenario", "State", "SessionManager", "PluginAPI"]),
        .executableTarget(
            name: "sessiond-fuzz", dependencies: ["Fuzzing", "TestSupport"], path: "Fuzz/sessiond-fuzz",
            swiftSettings: strict),
        // Counts allocations, so it is linked into nothing else.
        .target(name: "AllocationCount", path: "Benchmarks/AllocationCount"),
        .executableTarget(
            name: "sessiond-benchmark", dependencies: ["SessionManager", "PluginAPI", "AllocationCount"],
            path: "Benchmarks/Core", swiftSettings: strict),
        tests("PluginAPITests", ["PluginAPI", "ReferenceModel"]),
        // The rules a second time, written independently.
        room("ReferenceModel", path: "Tests/Model", ["SessionManager", "PluginAPI"], fast),
        .testTarget(
            name: "RoutingTests", dependencies: ["Routing", "SessionManager", "PluginAPI", "ReferenceModel"],
            exclude: ["Transcripts"], swiftSettings: strict),
        tests(
            "DeciderTests",
            ["Decider", "Scenario", "Enforcement", "Routing", "SessionManager", "PluginAPI", "ReferenceModel"], fast),
        tests("EnforcementTests", ["Enforcement", "Processes", "PluginAPI", "ReferenceModel"]),
        tests("SessionManagerTests", ["SessionManager", "PluginAPI", "ReferenceModel", "TestSupport"], fast),
        tests("StateTests", ["State", "SessionManager", "PluginAPI", "ReferenceModel"]),
        tests("ScenarioTests", ["Scenario", "SessionManager", "PluginAPI", "ReferenceModel", "TestSupport"]),
        tests("MediaControlTests", ["MediaControl", "PluginAPI", "ReferenceModel"]),
        tests("MediaValuesTests", ["MediaValues", "PluginAPI"]),
        tests("FileFormatsTests", ["FileFormats", "PluginAPI"]),
        tests(
            "PluginKitTests",
            ["PluginKit", "SessionBus", "DBus", "EventLoop", "PluginAPI", "TestSupport", "ReferenceModel"]),
        tests("EventLoopTests", ["EventLoop"]),
        tests("WorkersTests", ["Workers", "EventLoop", "TestSupport", "ReferenceModel"]),
        tests(
            "FilmTests",
            [
                "FilmBackend", "Workers", "PluginKit", "SessionKit", "SessionBus", "DBus", "EventLoop", "FileFormats",
                "PluginAPI", "TestSupport", "ReferenceModel",
            ]),
        tests("DBusTests", ["DBus", "EventLoop", "TestSupport"]),
        tests(
            "PulseBackendTests", ["PulseBackend", "EventLoop", "PluginAPI", "TestSupport", "ReferenceModel"]),
        tests(
            "GStreamerBackendTests", ["GStreamerBackend", "EventLoop", "PluginAPI", "TestSupport", "ReferenceModel"]),
        // What others build against this project in other languages.
        tests("BindingsTests", ["TestSupport"]),
        // The real daemon, its clients and programs on private servers.
        tests(
            "DaemonTests",
            [
                "SessionBus", "SessionKit", "DBus", "EventLoop", "PluginAPI", "TestSupport", "Fuzzing",
                "SessionManager", "Scenario", "State", "ReferenceModel",
            ]),
    ]
        + plugins.map {
            program($0.program, ["PluginKit", "MediaValues", "DBus", "EventLoop", "PluginAPI"] + $0.engines)
        },
    swiftLanguageModes: [.v6]
)

// libFuzzer comes from the linker's command line, so the program is there for Scripts/fuzz alone.
if Context.environment["SESSIOND_LIBFUZZER"] != nil {
    package.targets.append(
        .executableTarget(
            name: "sessiond-libfuzzer", dependencies: ["Fuzzing"], path: "Fuzz/libfuzzer", swiftSettings: strict))
}
