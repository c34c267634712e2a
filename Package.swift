// swift-tools-version: 6.2
import PackageDescription

/// The flags of the house: Swift 6, explicit existentials, imports that do not leak, warnings are errors.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

func room(_ name: String, path: String? = nil, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target
{
    .target(name: name, dependencies: dependencies, path: path, resources: resources, swiftSettings: strict)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

func system(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([apt])])
}

let package = Package(
    name: "sessiond",
    products: [
        .library(name: "SessionKit", targets: ["SessionKit"]),
        .executable(name: "sessiond", targets: ["sessiond"]),
        .executable(name: "sessionctl", targets: ["sessionctl"]),
        .executable(name: "sessiond-player", targets: ["sessiond-player"]),
        .executable(name: "sessiond-recorder", targets: ["sessiond-recorder"]),
    ],
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

        // Words and rules: standard library only.
        room("PluginAPI", []),
        room("SessionManager", ["PluginAPI"]),

        // The loop and the bus.
        room("EventLoop", ["CLinux", "CPulse"]),
        room("DBus", ["CDBus", "EventLoop"]),
        room("SessionBus", ["DBus", "EventLoop", "PluginAPI"]),

        // Adapters; none imports SessionManager.
        room("PulseBackend", path: "Sources/Backends/Pulse", ["CPulse", "EventLoop", "PluginAPI"]),
        room("GStreamerBackend", path: "Sources/Backends/GStreamer", ["CGStreamer", "EventLoop", "PluginAPI"]),
        room("InMemoryBackend", path: "Sources/Backends/InMemory", ["PluginAPI"]),

        // What authors of apps and plugins import.
        room("SessionKit", ["SessionBus", "DBus", "EventLoop", "PluginAPI"]),

        // Programs: wiring only.
        program(
            "sessiond",
            [
                "SessionManager", "SessionBus", "PulseBackend", "DBus", "EventLoop", "PluginAPI",
                .product(name: "Logging", package: "swift-log"),
            ]),
        program(
            "sessionctl",
            [
                "SessionKit", "SessionBus", "SessionManager", "DBus", "EventLoop", "PluginAPI",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        program("sessiond-player", ["SessionKit", "SessionBus", "GStreamerBackend", "DBus", "EventLoop", "PluginAPI"]),
        program("sessiond-recorder", ["SessionKit", "SessionBus", "GStreamerBackend", "DBus", "EventLoop", "PluginAPI"]),

        // Private real servers, and ears: what the monitor of a sink hears.
        room("TestSupport", path: "Tests/Support", ["CPulse", "DBus", "EventLoop"]),
        tests("PluginAPITests", ["PluginAPI"]),
        tests("SessionManagerTests", ["SessionManager", "PluginAPI"]),
        tests("EventLoopTests", ["EventLoop"]),
        tests("DBusTests", ["DBus", "EventLoop", "TestSupport"]),
        tests(
            "PulseBackendTests", ["PulseBackend", "InMemoryBackend", "EventLoop", "PluginAPI", "TestSupport"]),
        tests("GStreamerBackendTests", ["GStreamerBackend", "EventLoop", "PluginAPI", "TestSupport"]),
        // The real daemon, its clients and programs on private servers.
        tests("DaemonTests", ["SessionBus", "SessionKit", "DBus", "EventLoop", "PluginAPI", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
