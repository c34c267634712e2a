import DBus
import EventLoop
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import State
import TestSupport
import Testing

/// Invalid and extreme input (faults.md, B).
@Suite struct FaultInputTests {
    @Test func fuzzedCallsOfEveryMember_areAnsweredOnce() throws {
        let seed = ProcessInfo.processInfo.environment["SESSIOND_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
        let stage = try DaemonStage()
        try stage.surviving {
            let fuzzer = try BusFuzzer(
                bus: stage.bus.address, service: BusName.service, root: ObjectPath.root, seed: seed)
            let report = try fuzzer.run(calls: amount(10_000, long: 1_000_000))
            #expect(report.complaints == [], "seed \(seed)")
            #expect(report.returns + report.errors.values.reduce(0, +) == report.calls)
            #expect(report.members >= 24)
            #expect(report.returns > report.calls / 10, "almost all calls are refused; the fuzzer tests nothing")
            print("\(report.calls) calls, \(report.returns) returned, refused: \(report.errors)")
        }
    }

    /// The private servers that a program started end with it, however it ends.
    @Test(arguments: [0, SIGTERM, SIGKILL]) func fuzzerEnds_leavesNothingBehind(signal: Int32) throws {
        let calls = signal == 0 ? "100" : "100000000"
        let fuzzer = try Child(try builtProduct(named: "sessiond-fuzz"), ["bus", "--calls", calls])
        let line = try #require(fuzzer.line { $0.hasPrefix("bus unix:path=") })
        let folder = try #require(
            line.split(separator: "=").last.map { URL(fileURLWithPath: String($0)).deletingLastPathComponent().path })
        #expect(eventually { !processes(of: folder).isEmpty })
        if signal != 0 { fuzzer.signal(signal) }
        #expect(fuzzer.wait(timeout: 60) == (signal == 0 ? .code(0) : .signal(signal)))
        #expect(eventually { processes(of: folder).isEmpty && !FileManager.default.fileExists(atPath: folder) })
    }

    /// The processes that have that folder in their arguments or their environment.
    private func processes(of folder: String) -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.filter { process in
            Int(process) != nil
                && ["cmdline", "environ"].contains { file in
                    let words = FileManager.default.contents(atPath: "/proc/\(process)/\(file)") ?? Data()
                    return words.range(of: Data(folder.utf8)) != nil
                }
        }
    }

    /// A corpus of an older format would be refused at once.
    @Test func statesOfTheCorpus_haveSessionsOfBothKinds() throws {
        let inputs = try corpus(of: .state, in: repository.appendingPathComponent("Fuzz/Corpus"))
        var owners: [StateRecord.Owner] = []
        for input in inputs {
            owners += (StateLog(input)?.summary?.entries ?? []).map(\.owner)
            owners += ((try? StateRecord(input[...]))?.changed ?? []).map(\.owner)
        }
        let clients = owners.count { if case .client = $0 { true } else { false } }
        #expect(clients > 10 && owners.count - clients > 2, "\(clients) of \(owners.count)")
    }

    @Test(arguments: Decoder.allCases) func mutatedBytes_areDecodedOrRefused(decoder: Decoder) throws {
        let folder = repository.appendingPathComponent("Fuzz/Corpus")
        let inputs = try corpus(of: decoder, in: folder)
        #expect(!inputs.isEmpty)
        for input in inputs { decoder.decode(input) }
        var mutator = Mutator(seed: 1, corpus: inputs)
        for _ in 0..<amount(2_000, long: 1_000_000) { decoder.decode(mutator.next()) }
    }

    @Test func extremeValues_areRefusedWithTheirError() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let client = try stage.client()
            func create(_ name: String, _ options: Value) -> String {
                do throws(Failure) {
                    let values = try client.connection.callAndWait(
                        BusName.service, ObjectPath.root, BusName.manager, "CreateSession", [.string(name), options])
                    client.call(values[0].objectPathValue ?? "", "Close")
                    return "done"
                } catch {
                    #expect(error.message.utf8.count < 1_000, "the error repeats a caller's long text")
                    #expect(error.message.unicodeScalars.allSatisfy { $0.value >= 0x20 }, "\(error.message)")
                    return "\(error.name.split(separator: ".").last ?? "") \(error.message)"
                }
            }
            func options(_ key: String, _ value: Value) -> String { create("A", .properties([(key, value)])) }
            #expect(options("pid", .int32(-1)).hasPrefix("InvalidArgs option 'pid'"))
            #expect(options("pid", .uint64(.max)).hasPrefix("InvalidArgs option 'pid'"))
            #expect(options("pid", .uint32(.max)).hasPrefix("BadParameter"))
            #expect(options("pid", .double(.nan)).hasPrefix("InvalidArgs option 'pid'"))
            #expect(options("notify-on-exit", .string("yes")).hasPrefix("InvalidArgs option 'notify-on-exit'"))
            #expect(options("options", .array(of: "v", [])).hasPrefix("InvalidArgs option 'options'"))
            #expect(options("category", .string("\u{1b}[2J\n\u{7}")).hasPrefix("BadParameter"))
            #expect(options("\u{1b}]0;x\u{7}", .bool(true)).hasPrefix("BadParameter"))
            #expect(options("mode", .string("\u{202e}tluafed")).hasPrefix("BadParameter"))
            #expect(create(String(repeating: "x", count: 1 << 20), .properties([])).hasPrefix("BadParameter"))
            #expect(options("category", .string(String(repeating: "x", count: 1 << 20))).hasPrefix("BadParameter"))
            #expect(options(String(repeating: "k", count: 1 << 20), .bool(true)).hasPrefix("BadParameter"))
            #expect(options("desktop-entry", .string(String(repeating: "x", count: 256))).hasPrefix("BadParameter"))
            #expect(options("desktop-entry", .string("../x")).hasPrefix("BadParameter"))
            #expect(options("desktop-entry", .string("x\nExec=y")).hasPrefix("BadParameter"))
            let many = (0..<10_000).map { ("key-\($0)", Value.uint32($0)) }
            #expect(create("A", .properties(many)).hasPrefix("BadParameter"))
            let same = (0..<10_000).map { _ in ("mode", Value.string("default")) }
            #expect(create("A", .properties(same)) == "done", "the last value of a repeated key is used")
            // The outermost variant belongs to the dictionary.
            let deep = (0..<40).reduce(Value.bool(true)) { value, _ in .variant(value) }
            #expect(options("notify-on-exit", deep).hasPrefix("InvalidArgs option 'notify-on-exit'"))
            // A name is text for people. The daemon keeps any text; the programs that show it escape it.
            #expect(create("\u{202e}نص\u{1b}[31m\n", .properties([])) == "done")
        }
    }

    @Test func preferencesOutOfRange_areRefusedAndChangeNothing() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A")
        for value in [Double.nan, .infinity, -.infinity, -1, 0, 1e300, .leastNonzeroMagnitude, -0.0] {
            for key in ["sample-rate", "io-buffer-duration"]
            where !(key != "sample-rate" && value == .leastNonzeroMagnitude) {
                #expect(
                    client.call(path, "SetPreferences", [.properties([(key, .double(value))])])
                        == "org.sessiond1.Error.BadParameter", "\(key) \(value)")
            }
        }
        #expect(try stage.property("IOBufferDuration", of: path) == .double(0))
        #expect(client.call(path, "SetPreferences", [.properties([("io-buffer-duration", .double(0.005))])]) == nil)
        #expect(try stage.property("IOBufferDuration", of: path) == .double(0.005))
    }

    @Test func hugeMessages_areAnsweredAndTheirMemoryIsFreed() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let client = try stage.client()
            func refusal(name: String = "A", _ options: [(String, Value)] = []) -> String? {
                do throws(Failure) {
                    _ = try client.connection.callAndWait(
                        BusName.service, ObjectPath.root, BusName.manager, "CreateSession",
                        [.string(name), .properties(options)], timeout: 60)
                    return nil
                } catch {
                    return error.name
                }
            }
            // The text is the name, because a dictionary, like any D-Bus array, must not exceed 64 MB.
            let text = String(repeating: "x", count: amount(32, long: 100) << 20)
            #expect(refusal(name: text) == "org.sessiond1.Error.BadParameter")
            let inOptions = String(repeating: "x", count: amount(8, long: 60) << 20)
            #expect(refusal([("category", .string(inOptions))]) == "org.sessiond1.Error.BadParameter")
            let values = Value.array(of: "y", Array(repeating: .byte(1), count: amount(1 << 20, long: 8 << 20)))
            #expect(refusal([("category", values)]) == "org.freedesktop.DBus.Error.LimitsExceeded")
            #expect(stage.isServing)
        }
    }

    @Test func standardErrors_nameTheMistake() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let session = try client.session("A")
        func refusal(_ path: String, _ interface: String, _ member: String, _ arguments: [Value]) -> Failure? {
            do throws(Failure) {
                _ = try client.connection.callAndWait(BusName.service, path, interface, member, arguments)
                return nil
            } catch {
                return error
            }
        }
        let properties = StandardName.properties
        #expect(refusal(session, BusName.session, "Dance", [])?.name == Failure.Name.unknownMethod)
        #expect(refusal(session, "org.example.X", "Close", [])?.name == Failure.Name.unknownInterface)
        #expect(refusal("/nowhere", BusName.session, "Close", [])?.name == Failure.Name.unknownObject)
        #expect(refusal(session, BusName.session, "Close", [.byte(1)])?.name == Failure.Name.invalidArgs)
        let readOnly = refusal(
            session, properties, "Set", [.string(BusName.session), .string("State"), .variant(.string("active"))])
        #expect(readOnly?.name == Failure.Name.propertyReadOnly)
        #expect(readOnly?.message.contains("State") == true)
        let unknown = refusal(session, properties, "Get", [.string(BusName.session), .string("Colour")])
        #expect(unknown?.name == Failure.Name.unknownProperty)
        let wrong = refusal(session, BusName.session, "Deactivate", [.properties([("notify-others", .uint32(1))])])
        #expect(wrong?.name == Failure.Name.invalidArgs)
        #expect(wrong?.message.contains("notify-others") == true)
    }

    @Test func endlessPluginRegistrations_areRefusedAndForgotten() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let blob = String(repeating: "x", count: 1 << 20)
            for round in 0..<4 {
                let client = try stage.client()
                for index in 0..<20 {
                    do throws(Failure) {
                        _ = try client.connection.callAndWait(
                            BusName.service, ObjectPath.root, BusName.plugins, "Register",
                            [
                                .string("fuzz-\(round)-\(index)"),
                                .properties([("object", .objectPath("/x")), ("name", .string(blob))]),
                            ])
                        Issue.record("a name of one megabyte was accepted")
                    } catch {
                        #expect(error.name == "org.sessiond1.Error.BadParameter")
                    }
                }
                client.connection.close()
            }
            do {
                let client = try stage.client()
                var refusals: Set<String> = []
                for index in 0..<300 {
                    do throws(Failure) {
                        _ = try client.connection.callAndWait(
                            BusName.service, ObjectPath.root, BusName.plugins, "Register",
                            [.string("small-\(index)"), .properties([("object", .objectPath("/x"))])])
                    } catch {
                        refusals.insert(error.name)
                    }
                }
                #expect(refusals == ["org.sessiond1.Error.ResourceNotAvailable"])
                client.connection.close()
            }
            #expect(
                try eventually {
                    try client(stage, "List")[0].arrayValue?.isEmpty == true
                })
        }
    }

    private func client(_ stage: DaemonStage, _ member: String) throws -> [Value] {
        try stage.observer.callAndWait(BusName.service, ObjectPath.root, BusName.plugins, member, [])
    }
}
