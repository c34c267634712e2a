import DBus
import Foundation
import FoundationXML
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The XML in data/dbus, the introspection of the running daemon, and the members that it serves are identical.
@Suite struct InterfaceTests {
    private let folder = repository.appendingPathComponent("data/dbus")

    @Test(arguments: ["Manager", "Plugins", "Session"]) func introspection_isTheXML(name: String) throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let session = try client.session("A")
        let path = name == "Session" ? session : ObjectPath.root
        let text =
            try client.connection.callAndWait(
                BusName.service, path, "org.freedesktop.DBus.Introspectable", "Introspect", [])[0].stringValue ?? ""
        let full = "org.sessiond1.\(name)"
        let served = try #require(Description(xml: Data(text.utf8), interface: full))
        let source = try #require(
            Description(xml: try Data(contentsOf: folder.appendingPathComponent("\(full).xml")), interface: full))
        #expect(served == source)

        // Every property has its type, and GetAll returns exactly these properties.
        let all =
            try client.connection.callAndWait(
                BusName.service, path, StandardName.properties, "GetAll", [.string(full)])[0].asProperties
            ?? [:]
        #expect(Set(all.keys) == Set(source.properties.keys))
        for (property, type) in source.properties { #expect(all[property]?.signature == type, "\(property)") }
        // Every method exists, with that signature only.
        for (method, signature) in source.methods {
            let wrong: [Value] = signature == "yy" ? [] : [.byte(0), .byte(0)]
            do throws(Failure) {
                _ = try client.connection.callAndWait(BusName.service, path, full, method, wrong)
                Issue.record("\(method) accepted (yy)")
            } catch {
                #expect(error.name == Failure.Name.invalidArgs, "\(method)")
                #expect(error.message.contains("(\(signature))"), "\(method): \(error.message)")
            }
        }
        // Every property is read-only.
        for property in source.properties.keys {
            do throws(Failure) {
                _ = try client.connection.callAndWait(
                    BusName.service, path, StandardName.properties, "Set",
                    [.string(full), .string(property), .variant(all[property] ?? .bool(false))])
                Issue.record("\(property) was set")
            } catch {
                #expect(error.name == Failure.Name.propertyReadOnly, "\(property)")
            }
        }
    }

    @Test func managedObjects_areTheSessions() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let session = try client.session("A")
        let objects =
            try client.connection.callAndWait(
                BusName.service, ObjectPath.root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", []
            )[0].dictionaryValue ?? []
        #expect(objects.map(\.key.objectPathValue) == [session])
        let listed = try stage.manager("ListSessions")[0].arrayValue?.compactMap(\.asProperties) ?? []
        #expect(listed.map { $0["path"] } == [.objectPath(session)])
        #expect(listed.first?["Name"] == .string("A"))
        #expect(listed.first?["Owner"] == .string(client.connection.uniqueName))
        #expect(listed.first?["ProcessId"] == .uint32(UInt32(ProcessInfo.processInfo.processIdentifier)))
    }
}

/// The members of one interface, with their types.
private struct Description: Equatable {
    var methods: [String: String] = [:]
    var results: [String: String] = [:]
    var signals: [String: String] = [:]
    var properties: [String: String] = [:]
    var access: [String: String] = [:]

    init?(xml: Data, interface: String) {
        guard let document = try? XMLDocument(data: xml),
            let element = try? document.nodes(forXPath: "/node/interface[@name='\(interface)']").first as? XMLElement
        else { return nil }
        for child in (element.children ?? []).compactMap({ $0 as? XMLElement }) {
            let name = child.attribute(forName: "name")?.stringValue ?? ""
            let arguments = child.elements(forName: "arg")
            func types(_ direction: String?) -> String {
                arguments.filter { direction == nil || $0.attribute(forName: "direction")?.stringValue == direction }
                    .compactMap { $0.attribute(forName: "type")?.stringValue }.joined()
            }
            switch child.name {
            case "method":
                methods[name] = types("in")
                results[name] = types("out")
            case "signal": signals[name] = types(nil)
            case "property":
                properties[name] = child.attribute(forName: "type")?.stringValue
                access[name] = child.attribute(forName: "access")?.stringValue
            default: break
            }
        }
    }
}
