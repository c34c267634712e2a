import DBus
import EventLoop
import Foundation
import FoundationXML
import TestSupport
import Testing

@Suite struct IntrospectionTests {
    let world: World

    init() throws {
        world = try World()
        world.service.objects.export(Thing(), at: World.path, interfaces: [Thing.interface])
        for number in [10, 9, 1] {
            world.service.objects.export(Thing(), at: World.path + "/\(number)", interfaces: [Thing.interface])
        }
        world.service.objects.enableObjectManager(at: World.path)
    }

    func introspect(_ path: String) throws -> (text: String, document: XMLDocument) {
        let answer = try world.call("Introspect", interface: "org.freedesktop.DBus.Introspectable", path: path)
        let text = try #require(answer.first?.stringValue)
        return (text, try XMLDocument(xmlString: text))
    }

    func names(_ path: String, _ query: String) throws -> [String] {
        try introspect(path).document.nodes(forXPath: query).compactMap(\.stringValue)
    }

    @Test func object_listsItsInterfacesAndChildren() throws {
        let standard = ["Peer", "Introspectable", "Properties", "ObjectManager"].map { "org.freedesktop.DBus." + $0 }
        #expect(try names(World.path, "/node/interface/@name") == standard + [Thing.interfaceName])
        #expect(try names(World.path, "/node/node/@name") == ["1", "9", "10"])
        #expect(try names(World.path + "/1", "/node/node/@name") == [])
        let text = try introspect(World.path).text
        #expect(text.contains(Thing.introspection))
        #expect(text.hasPrefix("<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\""))
    }

    @Test func pathsBetween_leadToTheObject() throws {
        #expect(try names("/", "/node/node/@name") == ["org"])
        #expect(try names("/org", "/node/node/@name") == ["example"])
        #expect(try names("/org/example", "/node/node/@name") == ["thing"])
        #expect(try names("/", "/node/interface/@name").count == 3)
        for path in ["", "/1", "/9", "/10"] { world.service.objects.remove(path: World.path + path) }
        for path in ["/", "/org", World.path] {
            let failure = try world.failure("Introspect", interface: "org.freedesktop.DBus.Introspectable", path: path)
            #expect(failure?.name == Failure.Name.unknownObject)
        }
    }

    /// Runs a command-line client while the service answers it.
    func run(_ tool: String, _ arguments: [String]) throws -> String {
        let child = try Child(tool, arguments)
        // The end of the child does not wake the loop, so a timer checks it.
        var look: (() -> Void)?
        let timer = Timer(on: world.loop) { look?() }
        look = { [weak timer] in timer?.arm(after: 0.005) }
        look?()
        try world.wait { !child.isRunning }
        look = nil
        #expect(child.wait() == .code(0), "\(tool): \(child.errors)")
        return child.output.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    @Test func busctl_readsTheObject() throws {
        let bus = "--address=" + world.bus.address
        let service = world.service.uniqueName
        let members = try run("busctl", [bus, "introspect", service, World.path])
        for line in [".Add", ".Volume", ".GetManagedObjects"] { #expect(members.contains(line)) }
        let tree = try run("busctl", [bus, "--list", "tree", service])
        for path in [World.path, World.path + "/1", World.path + "/10"] {
            #expect(tree.split(separator: "\n").contains { $0 == path })
        }
        let sum = try run(
            "busctl",
            [bus, "call", service, World.path, Thing.interfaceName, "Add", "ua{sv}", "40", "1", "more", "u", "2"])
        #expect(sum == "u 42")
        #expect(try run("busctl", [bus, "get-property", service, World.path, Thing.interfaceName, "Level"]) == "u 7")
    }

    @Test func gdbus_readsAndWritesTheObject() throws {
        let common = ["--address", world.bus.address, "--dest", world.service.uniqueName, "--object-path", World.path]
        let members = try run("gdbus", ["introspect", "--recurse"] + common)
        #expect(members.contains("node /org/example/thing/10 {") && members.contains("Volume = 0.5"))
        let call = ["call"] + common + ["--method"]
        let properties = "org.freedesktop.DBus.Properties."
        #expect(
            try run("gdbus", call + [properties + "Set", Thing.interfaceName, "Volume", "<0.75>"]) == "()")
        #expect(
            try run("gdbus", call + [properties + "Get", Thing.interfaceName, "Volume"]) == "(<0.75>,)")
    }

    @Test func dbusSend_isAnswered() throws {
        let answer = try run(
            "dbus-send",
            [
                "--bus=" + world.bus.address, "--print-reply=literal", "--dest=" + world.service.uniqueName,
                World.path, Thing.interfaceName + ".Echo", "variant:string:hello",
            ])
        #expect(answer.contains("hello"))
    }
}
