import ArgumentParser
import DBus
import MediaValues
import PluginAPI

/// `sessionctl effect`.
struct EffectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "effect", abstract: "Play short sounds, all at the same time, and wait until they end.",
        discussion: """
            Sounds of at most 30 s each. They mix with other sound, and the silent switch mutes them, unless a \
            different category is given.
            """)

    @Argument(help: "The sounds.", completion: .file())
    var files: [String]
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let paths = try files.map { file in
            let path = try FileArgument.path(file)
            return path
        }
        try Effects(paths, session.arguments(name: "sessionctl effect", in: .ambient), service).run()
    }
}

/// Plays sounds with its own plugin process: loads all files, then plays all.
final class Effects: FrontEnd {
    private let paths: [String]
    private var loaded: [UInt32] = []
    /// The number of unanswered requests.
    private var pending = 0
    /// The playing sounds, by number.
    private var playing: Set<UInt32> = []
    private var code: Int32 = 0
    /// There is no sound server; that is being told.
    private var isSilent = false

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
        // The other sounds would say the same.
        if SoundServerAdvice.concerns(failure.message) {
            if !isSilent { end(failure) }
            isSilent = true
            return
        }
        let complaint = service.complaint(failure)
        code = complaint.code
        complain(complaint.message)
    }

    private func endIfOver() { if pending == 0, playing.isEmpty, !isSilent { end(code) } }

    override func pressed(_ key: Keyboard.Key) { if case .letter("q") = key { end(code) } }
}
