import Foundation
import PluginAPI
import TestSupport

extension ForeignCrashTests {
    /// What outlives all crashes of the daemon: a sound server, and a program that plays on it at a volume that the
    /// user set.
    final class House {
        let pulse: any PrivateServer
        private var program: Stranger
        private var music: Tone?
        static let volume = 40_000

        init(_ kind: ServerKind, modules: [String] = []) throws {
            pulse = try kind.server(modules: (kind == .pulseAudio ? ForeignProgramTests.modules : []) + modules)
            program = try Stranger()
            music = try House.music(of: program, on: pulse)
            try turn(to: House.volume)
        }

        /// A program that does nothing, and is no descendant of the tests: a stream of a descendant belongs to the session
        /// that its ancestor has.
        private final class Stranger {
            let processID: Int32

            init() throws {
                // It has another parent as soon as the shell has ended.
                let text = try Child.run("sh", ["-c", "sleep 3600 </dev/null >/dev/null 2>&1 & echo $!"])
                guard let number = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                    throw SupportError("no process: \(text)")
                }
                processID = number
            }

            deinit { kill() }

            func kill() { Glibc.kill(processID, SIGKILL) }
        }

        /// Plays until the program or its server ends.
        private static func music(of program: Stranger, on pulse: any PrivateServer) throws -> Tone {
            try Tone(pulse, hertz: 440, name: "Music", processID: program.processID, latency: 0.2)
        }

        func turn(to volume: Int) throws {
            try pulse.control.setVolume(ofStream: stream().index, to: volume)
        }

        func move(to sink: String) throws {
            try pulse.moveStream(stream().index, to: sink)
        }

        /// Whether PipeWire's session manager has written that volume to its file, which it does a second after a
        /// change. Always true on PulseAudio, where the daemon sets the remembered volume itself.
        func remembers(_ volume: Int) -> Bool {
            guard pulse is PrivatePipeWire else { return true }
            let factor = pow(Double(volume) / 65_536, 3)
            return [remembered04, remembered05].contains { abs(($0 ?? 0) - factor) < 0.0001 }
        }

        /// The volume that WirePlumber 0.4 wrote for the music. Its file has a line for each property.
        private var remembered04: Double? {
            remembered(in: "restore-stream", "Output/Audio:application.name:Music:channelVolumes=")?
                .split(separator: ";").first.flatMap { Double($0) }
        }

        /// The volume that WirePlumber 0.5 wrote for the music, in a line of JSON.
        private var remembered05: Double? {
            guard let text = remembered(in: "stream-properties", "Output/Audio:application.name:Music="),
                let properties = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            else { return nil }
            return (properties["channelVolumes"] as? [Double])?.first
        }

        /// Whether PipeWire's session manager has written to its file that the music was last on the hold sink.
        var remembersHold: Bool {
            ["restore-stream", "stream-properties"].contains { file in
                remembered(in: file, "Output/Audio:application.name:Music", containing: "sessiond.hold") != nil
            }
        }

        /// When the session manager last wrote what it remembers of streams; nil: never, or on PulseAudio.
        var memoryTime: Date? {
            ["restore-stream", "stream-properties"].compactMap { file in
                let path = pulse.folder.path + "/state/wireplumber/" + file
                return (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
            }.max()
        }

        /// The rest of the line that begins with `key`, in a file of WirePlumber.
        private func remembered(in file: String, _ key: String, containing text: String = "") -> Substring? {
            let path = pulse.folder.path + "/state/wireplumber/" + file
            return (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n")
                .first { $0.hasPrefix(key) && (text.isEmpty || $0.contains(text)) }?.dropFirst(key.count)
        }

        func endProgram() throws {
            program.kill()
            music = nil
            guard try eventually({ try pulse.control.streams().isEmpty }) else {
                throw SupportError("the music continues")
            }
        }

        func beginProgram() throws {
            program = try Stranger()
            try play()
        }

        private func play() throws {
            music = try House.music(of: program, on: pulse)
            guard try eventually({ try pulse.control.streams().count == 1 }) else {
                throw SupportError("no music: \(try pulse.control.streams())")
            }
        }

        /// Kills and restarts the server. Then the same program plays again, or a new process of it.
        func loseServer(isSameProgram: Bool, meanwhile: () throws -> Void = {}) throws {
            pulse.kill()
            if !isSameProgram {
                program.kill()
                program = try Stranger()
            }
            try meanwhile()
            try pulse.restart()
            try play()
        }

        private func stream(_ place: Int = 0) throws -> ServerControl.Stream {
            guard let stream = try pulse.control.streams().dropFirst(place).first else {
                throw SupportError("the music has gone")
            }
            return stream
        }

        /// For messages: each stream's volume, mute and sink.
        var description: String {
            let streams = (try? pulse.control.streams()) ?? []
            return streams.isEmpty ? "no music" : "\(streams.map { ($0.volume, $0.isMuted, $0.sink) })"
        }

        /// The present volume, mute switch and sink of the music.
        func look(_ place: Int = 0) throws -> (volume: Int, isMuted: Bool, sink: String) {
            let stream = try stream(place)
            return (stream.volume, stream.isMuted, stream.sink)
        }

        func isUntouched() throws -> Bool {
            let (volume, isMuted, sink) = try look()
            return House.isSame(volume, House.volume) && !isMuted && sink == "speaker"
        }

        /// Whether a daemon that has ended left the music untouched. What it requested last may still be on the way on
        /// PipeWire, where the session manager carries it out; nobody else restores anything now.
        func isLeftUntouched() throws -> Bool {
            try pulse is PrivatePipeWire ? eventually(isUntouched) : isUntouched()
        }

        /// Compares two volumes. PipeWire stores a volume as a real number, so it may return a slightly different one.
        static func isSame(_ one: Int, _ other: Int) -> Bool { abs(one - other) < 3 }

        /// The volume after ducking by `decibels`. The factor of the amplitude is the cube of the volume.
        static func volume(_ volume: Int = volume, lowered decibels: Double) -> Int {
            Int((Double(volume) * pow(10, -decibels / 60)).rounded())
        }

        /// Whether the music is ducked by the 12 dB of the settings.
        func isLowered(_ place: Int = 0, of volume: Int = House.volume) throws -> Bool {
            let (found, isMuted, sink) = try look(place)
            return House.isSame(found, House.volume(volume, lowered: 12)) && !isMuted && sink == "speaker"
        }

        /// Whether the music is held. On a busy machine PipeWire's session manager may take longer for the move than
        /// the daemon waits; then the daemon mutes the stream.
        func isHeld() throws -> Bool {
            let (_, isMuted, sink) = try look()
            return isMuted ? pulse is PrivatePipeWire : sink == "sessiond.hold"
        }
    }
}
