import Foundation
import PluginAPI
import Testing

/// Tests the table of kinds, and the files that must agree with it.
@Suite struct PluginKindTests {
    @Test func rows_haveNoValueInCommon() {
        for column in [
            \PluginKind.word, \.id, \.program, \.interface, \.objectPath, \.busName, \.action,
        ] as [KeyPath<PluginKind, String>] {
            #expect(Set(PluginKind.all.map { $0[keyPath: column] }).count == PluginKind.all.count)
        }
    }

    @Test func eachKind_hasOneManifest() throws {
        let manifests = try names("data/plugins", ending: ".plugin").map { name in
            try PluginManifest(bytes: Repository.bytes("data/plugins/\(name).plugin"), file: name)
        }
        #expect(Set(manifests.map(\.id)) == Set(PluginKind.all.map(\.id)))
        for manifest in manifests {
            let kind = PluginKind.all.first { $0.id == manifest.id }
            #expect(manifest.kind == kind?.word)
            #expect(manifest.exec == [kind?.program ?? ""])
            #expect(manifest.schemes.contains("file"))
        }
    }

    @Test func eachInterface_hasAFileWithItsName() throws {
        // A media picker is brought by others; jobs, streams and capture sessions are objects that clients create.
        let objects = ["Job", "LiveStream", "CaptureSession"]
        let own = (["Manager", "Session", "Plugins", "MediaPicker"] + objects).map { "org.sessiond1.\($0)" }
        #expect(try Set(names("data/dbus", ending: ".xml")) == Set(own + PluginKind.all.flatMap(\.interfaces)))
        for kind in PluginKind.all {
            for interface in kind.interfaces {
                let text = try Repository.text("data/dbus/\(interface).xml")
                #expect(text.contains("<interface name=\"\(interface)\">"))
            }
        }
    }

    @Test func packages_containTheManifests() throws {
        for kind in PluginKind.all {
            let name = kind.id.split(separator: ".").last ?? ""
            let files = try Repository.text("debian/\(kind.package).install")
            #expect(files.contains("usr/share/sessiond/plugins/\(name).plugin\n"), "\(kind.word)")
            let readme = try Repository.text("README.md")
            #expect(readme.contains("| `\(kind.package)` |"), "\(kind.word)")
        }
    }

    @Test func guideAndManual_nameEachKind() throws {
        let guide = try Repository.text("docs/plugins.md")
        let manual = try Repository.text("man/sessiond-plugin.5")
        for kind in PluginKind.all {
            let interface = "[\(kind.interface)](../data/dbus/\(kind.interface).xml)"
            #expect(guide.contains("| `\(kind.word)` | \(interface) | `\(kind.objectPath)` |\n"), "\(kind.word)")
            #expect(manual.contains(".Cm \(kind.word)"), "\(kind.word)")
        }
    }

    @Test func busPolicy_allowsTheNamesOfEachKind() throws {
        let policy = try Repository.text("data/dbus-1/system.d/org.sessiond1.conf")
        for kind in PluginKind.all {
            for rule in ["own_prefix", "send_destination_prefix", "send_destination"] {
                #expect(policy.contains("<allow \(rule)=\"\(kind.busName)\"/>"), "\(rule) of \(kind.word)")
            }
        }
        #expect(policy.split(separator: "own_prefix=").count == PluginKind.all.count + 1)
    }

    @Test func package_namesTheInterfaceOfEachKind() throws {
        let package = try Repository.text("Package.swift")
        for kind in PluginKind.all {
            let interface = kind.interface.split(separator: ".").last ?? ""
            #expect(package.contains("\"\(interface)\""), "\(kind.word)")
        }
    }

    @Test func makefile_installsTheProgramOfEachKind() throws {
        let make = Process()
        make.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        make.currentDirectoryURL = Repository.root
        let rule = "names: ; @echo $(programs) $(plugins)"
        make.arguments = ["make", "-s", "--no-print-directory", "--eval", rule, "names"]
        let output = Pipe()
        make.standardOutput = output
        try make.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        make.waitUntilExit()
        let programs = text.split(whereSeparator: \.isWhitespace).map(String.init)
        #expect(
            Set(programs)
                == Set(
                    ["sessiond", "sessionctl", "sessiond-plugin", "sessiond-assets"] + PluginKind.all.map(\.program)))
    }

    private func names(_ folder: String, ending: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: Repository.root.path + "/" + folder)
            .filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) }
    }
}
