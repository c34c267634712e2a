import EventLoop
import Foundation
import Fuzzing
import TestSupport

// sessiond-fuzz bus --calls N --seed N: starts a daemon on a private bus and calls all its members. sessiond-fuzz
// decoders --seconds N --seed N --corpus FOLDER: mutates corpora, on machines where libFuzzer does not link. sessiond-fuzz
// films --seconds N --seed N --program PATH --found FOLDER: gives damaged films to the workers of sessiond-assets.

func option(_ name: String, _ fallback: String) -> String {
    let words = CommandLine.arguments
    guard let index = words.firstIndex(of: name), index + 1 < words.count else { return fallback }
    return words[index + 1]
}

func number<Number: LosslessStringConvertible>(_ name: String, _ fallback: Number) -> Number {
    guard let value = Number(option(name, "\(fallback)")) else {
        FileHandle.standardError.write(Data("sessiond-fuzz: \(name) needs a number\n".utf8))
        exit(64)
    }
    return value
}

let seed = number("--seed", UInt64.random(in: 1...UInt64(UInt32.max)))

switch CommandLine.arguments.dropFirst().first {
case "bus":
    print("seed \(seed)")
    let bus = try PrivateBus()
    print("bus \(bus.address)")
    fflush(nil)
    var environment = bus.environment
    environment["PULSE_SERVER"] = "unix:\(bus.folder.path)/absent"
    environment["XDG_RUNTIME_DIR"] = bus.folder.path
    environment["XDG_DATA_HOME"] = bus.folder.path
    environment["XDG_DATA_DIRS"] = bus.folder.path
    let daemon = try Child(try builtProduct(named: "sessiond"), [], environment: environment)
    guard daemon.line(where: { $0.contains("serves") }) != nil else {
        print("sessiond did not start: \(daemon.errors)")
        exit(69)
    }
    let fuzzer = try BusFuzzer(bus: bus.address, service: "org.sessiond1", root: "/org/sessiond1", seed: seed)
    let begun = monotonicNow()
    let report = try fuzzer.run(calls: number("--calls", 1_000_000))
    print(
        "\(report.calls) calls of \(report.members) members in \(Int(monotonicNow() - begun)) s: "
            + "\(report.returns) returned, \(report.errors.values.reduce(0, +)) refused")
    for (name, count) in report.errors.sorted(by: { $0.value > $1.value }) { print("  \(count)  \(name)") }
    for complaint in report.complaints { print("WRONG: \(complaint)") }
    if !daemon.isRunning { print("WRONG: the daemon ended: \(daemon.errors.suffix(20).joined(separator: "\n"))") }
    exit(report.complaints.isEmpty && daemon.isRunning ? 0 : 1)
case "decoders":
    print("seed \(seed)")
    let folder = URL(fileURLWithPath: option("--corpus", "Fuzz/Corpus"))
    let seconds = number("--seconds", 60.0) / Double(Decoder.allCases.count)
    for decoder in Decoder.allCases {
        var mutator = Mutator(seed: seed, corpus: try corpus(of: decoder, in: folder))
        let end = monotonicNow() + seconds
        var count = 0
        while monotonicNow() < end {
            decoder.decode(mutator.next())
            count += 1
        }
        print("\(decoder.rawValue): \(count) inputs")
    }
case "films":
    print("seed \(seed)")
    let folder = option("--found", ".build/fuzz-films")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let films = try TestMedia.all.map { film in
        (name: film.name, bytes: [UInt8](try Data(contentsOf: URL(fileURLWithPath: film.path()))))
    }
    setenv("GST_REGISTRY", TestMedia.registry, 1)
    let fuzzer = FilmFuzzer(
        program: option("--program", ".build/debug/sessiond-assets"), films: films,
        folder: URL(fileURLWithPath: folder).standardizedFileURL.path, seed: seed, on: EventLoop())
    let report = try fuzzer.run(seconds: number("--seconds", 60.0))
    print("\(report.inputs) damaged files of \(films.count)")
    for (name, count) in report.answers.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
        print("  \(count)  \(name)")
    }
    for slow in report.slow { print("slow: \(slow)") }
    for complaint in report.complaints { print("WRONG: \(complaint)") }
    exit(report.complaints.isEmpty ? 0 : 1)
default:
    FileHandle.standardError.write(
        Data("usage: sessiond-fuzz bus|decoders|films [--calls N] [--seconds N] [--seed N]\n".utf8))
    exit(64)
}
