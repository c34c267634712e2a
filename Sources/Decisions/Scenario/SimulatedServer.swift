import Decider
import Enforcement
import PluginAPI
import SessionManager

/// The programs of a scenario and their streams, at a simulated sound server that carries out all requests at once.
struct SimulatedServer: Sendable {
    /// A program that does not use sessiond.
    struct App: Sendable, Hashable {
        var name: String
        var process: UInt32
        /// The file name of its executable.
        var executable: String
        /// The id of its sandbox; empty: none.
        var sandbox: String
        /// More names by which the settings may list it.
        var otherNames: [String] = []
        /// As in ``Enforcement/Program``.
        var mayCall = true
        var mayAlert = true
        var mayBeGuessed = true

        fileprivate var program: Program {
            Program(
                key: sandbox.isEmpty ? .process(process) : .sandbox(sandbox), name: name,
                names: Set(([name, executable, sandbox] + otherNames).filter { !$0.isEmpty }), mayCall: mayCall,
                mayAlert: mayAlert, mayBeGuessed: mayBeGuessed)
        }
    }

    /// A stream that a program begins.
    struct Beginning: Sendable, Hashable {
        let program: String
        let isRecording: Bool
        let role: String?
        /// `media.name`
        let title: String
        /// `event.id`; empty: none.
        var event = ""
        /// The uid of the output that the program or the user has chosen for it; nil: that of the route.
        var output: String?
    }

    private(set) var programs: [String: App] = [:]
    /// In the order in which they began.
    private(set) var streams: [(label: String, program: String, stream: AudioStream)] = []
    /// The chosen outputs, by the names of the streams.
    private var chosen: [String: String] = [:]
    /// The outputs that are there, and the route's, by their uids.
    private var outputs: Set<String> = []
    private var output = SimulatedServer.onlyOutput
    /// The output of a scenario without ports.
    private static let onlyOutput = "output"
    private var gone: Set<UInt32> = []
    private var count: UInt32 = 0
    /// The port that recordings use, and the device of the others.
    private static let input = Port(type: .microphoneBuiltIn, name: "Microphone", uid: "microphone", channels: 1)

    /// Whether any program was seen: before that the streams are not known.
    var isUsed: Bool { !programs.isEmpty }

    /// The name of a program in the file.
    func label(of key: Program.Key) -> String? { programs.first { $0.value.program.key == key }?.key }

    /// The same by the name for users: all alarms have one key.
    func label(named name: String) -> String? { programs.first { $0.value.name == name }?.key }

    func stream(_ label: String) -> AudioStream? { streams.first { $0.label == label }?.stream }

    /// The program of a stream, with its name in the file.
    func program(of stream: String) -> (label: String, app: App)? {
        streams.first { $0.label == stream }.flatMap { entry in programs[entry.program].map { (entry.program, $0) } }
    }

    /// The current state of the streams.
    var seen: StreamsSeen {
        var seen = StreamsSeen()
        seen.isConnected = true
        seen.canHold = true
        seen.defaultDevice = output
        seen.gone = gone
        seen.streams = streams.compactMap { entry in
            guard let program = programs[entry.program] else { return nil }
            return StreamFacts(
                stream: entry.stream, ancestry: [program.process],
                sandbox: program.sandbox.isEmpty ? nil : program.sandbox,
                program: program.program)
        }
        return seen
    }

    // MARK: Programs

    mutating func add(_ label: String, _ program: App) { programs[label] = program }

    mutating func begin(_ label: String, _ beginning: Beginning) {
        guard let program = programs[beginning.program] else { return }
        count += 1
        let input = SimulatedServer.input
        var stream = AudioStream(
            id: AudioStream.ID(beginning.isRecording ? .record : .playback, count), processID: program.process,
            isProcessVouched: true, applicationName: program.name, role: beginning.role,
            deviceName: "input", portUID: input.uid, portName: input.name, volume: [AudioStream.fullVolume])
        if !beginning.title.isEmpty { stream.properties["media.name"] = beginning.title }
        if !beginning.event.isEmpty { stream.properties["event.id"] = beginning.event }
        streams.append((label, beginning.program, stream))
        chosen[label] = beginning.output
        place()
    }

    /// The ports have changed: each stream plays on the output that was chosen for it, else on that of the route.
    mutating func follow(_ audio: Audio?) {
        outputs = Set(audio?.outputs.filter(\.isAvailable).map(\.uid) ?? [])
        output = audio?.route.outputs.first?.uid ?? SimulatedServer.onlyOutput
        place()
    }

    mutating func move(_ label: String, to output: String) {
        chosen[label] = output
        place()
    }

    private mutating func place() {
        for index in streams.indices where streams[index].stream.direction == .playback {
            let uid = chosen[streams[index].label].flatMap { outputs.contains($0) ? $0 : nil } ?? output
            streams[index].stream.deviceName = uid
            streams[index].stream.portUID = uid
            streams[index].stream.outputUID = uid
            streams[index].stream.portName = ""
        }
    }

    mutating func setPaused(_ label: String, _ isPaused: Bool) { change(label) { $0.isCorked = isPaused } }

    mutating func setVolume(_ label: String, _ volume: VolumeChange) {
        change(label) { $0.volume = volume.applied(to: $0.volume) }
    }

    mutating func end(_ label: String) { streams.removeAll { $0.label == label } }

    /// Ends the program with all its streams.
    mutating func end(program label: String) {
        streams.removeAll { $0.program == label }
        if let program = programs[label] { gone.insert(program.process) }
    }

    private mutating func change(_ label: String, _ body: (inout AudioStream) -> Void) {
        if let place = streams.firstIndex(where: { $0.label == label }) { body(&streams[place].stream) }
    }

    // MARK: Requests

    mutating func carryOut(_ command: StreamCommand) {
        guard let place = streams.firstIndex(where: { $0.stream.id == command.stream }) else { return }
        switch command {
        case .setVolume(_, let volume): streams[place].stream.volume = volume
        case .setMuted(_, let isMuted): streams[place].stream.isMuted = isMuted
        case .hold: streams[place].stream.isHeld = true
        case .letGo: streams[place].stream.isHeld = false
        }
    }
}

extension AudioStream {
    /// How the stream was changed at the server, in one word.
    var condition: StreamCondition {
        if isHeld { return .held }
        if isMuted { return .muted }
        return volume.allSatisfy { $0 == AudioStream.fullVolume } ? .untouched : .lowered
    }
}

/// How a stream was changed at the server.
enum StreamCondition: String, CaseIterable, Sendable {
    case held, muted, lowered, untouched
}
