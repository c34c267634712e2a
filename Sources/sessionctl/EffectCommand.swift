import ArgumentParser
import DBus
import MediaValues
import PluginAPI

/// `sessionctl effect`.
struct EffectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "effect", abstract: "Play short sounds, all at once, and wait for their end.",
        discussion: """
            Sounds of at most 30 s each. They mix with what plays, and the silent switch silences them, unless a \
            category says otherwise.
            """)

    @Argument(help: "The sounds.", completion: .file())
    var files: [String]
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let paths = try files.map { file in
            guard let path = FileURI.absolute(file) else {
                throw Complaint.refused("\(file.escaped): the current folder is gone; give an absolute path")
            }
            return path
        }
        try Effects(paths, session.arguments(name: "sessionctl effect", in: .ambient), service).run()
    }
}

/// Plays sounds through a program of its own: first all are loaded, then all sound.
final class Effects: FrontEnd {
    private let paths: [String]
    private var loaded: [UInt32] = []
    /// Orders that were not answered.
    private var pending = 0
    /// What sounds, by the numbers of the playings.
    private var playing: Set<UInt32> = []
    private var code: Int32 = 0

    init(_ paths: [String], _ arguments: [String], _ service: Service) throws {
        self.paths = paths
        try super.init(.soundEffects, arguments, service)
        plugin.onCompleted = { [unowned self] number, wasWhole in
            if !wasWhole { code = 1 }
            playing.remove(number)
            endIfOver()
        }
    }

    override func start() {
        pending = paths.count
        for path in paths {
            plugin.call("Load", [.string(path)]) { [weak self] answer in
                guard let self else { return }
                pending -= 1
                switch answer {
                case .failure(let failure): refused(failure)
                case .success(let values): loaded += values.prefix(1).compactMap(\.uint32Value)
                }
                if pending == 0 { play() }
            }
        }
    }

    private func play() {
        pending = loaded.count
        for effect in loaded {
            plugin.call("Play", [.uint32(effect)]) { [weak self] answer in
                guard let self else { return }
                pending -= 1
                switch answer {
                case .failure(let failure): refused(failure)
                case .success(let values): playing.formUnion(values.prefix(1).compactMap(\.uint32Value))
                }
                endIfOver()
            }
        }
        endIfOver()
    }

    private func refused(_ failure: Failure) {
        let complaint = service.complaint(failure)
        code = complaint.code
        complain(complaint.message)
    }

    private func endIfOver() { if pending == 0, playing.isEmpty { end(code) } }

    override func pressed(_ key: Keyboard.Key) { if case .letter("q") = key { end(code) } }
}
