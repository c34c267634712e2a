package import Capturing
package import EventLoop
import FileFormats
import Glibc
package import PluginAPI
import Processes

/// What drivers can set of cameras, and the light beside them.
///
/// A driver may keep its caller waiting, so it is asked on another thread, for each camera one thing after the other.
package final class CameraHardware {
    /// Seconds in which a driver answers.
    private static let patience = 2.0

    /// Nothing is under way any more.
    package var onIdle: (() -> Void)?

    private let loop: EventLoop
    /// Where the kernel shows LEDs.
    private let leds: String
    private var lines: [String: Line] = [:]
    /// What was read last, by the id of the camera.
    private var known: [String: CaptureControls] = [:]

    /// What waits for one camera.
    private final class Line {
        var waiting: [() -> Void] = []
        var isWorking = false
    }

    /// - Parameter leds: nil: that of the environment (SESSIOND_LEDS), or the kernel's.
    package init(on loop: EventLoop, leds: String? = nil) {
        self.loop = loop
        self.leds = leds ?? getenv("SESSIOND_LEDS").map { String(cString: $0) } ?? "/sys/class/leds"
    }

    package var isIdle: Bool { lines.isEmpty }

    /// What can be set of a camera, as it was read last.
    package func controls(of camera: String) -> CaptureControls { known[camera] ?? CaptureControls() }

    /// Reads what can be set of cameras; those of a driver that does not answer stay as they were.
    /// - Parameter all: all cameras that there are: the only one has the light, whatever its position.
    package func read(_ cameras: [CaptureSource], among all: [CaptureSource], _ done: @escaping () -> Void) {
        var left = cameras.count
        guard left > 0 else { return done() }
        for camera in cameras {
            let hasLight = CameraLight.belongs(to: camera, among: all)
            let (path, leds) = (camera.videoDevice, leds)
            run(for: camera.id, { Self.read(path, hasLight ? leds : nil) }) { [weak self] found in
                if let found { self?.known[camera.id] = found }
                left -= 1
                if left == 0 { done() }
            }
        }
    }

    /// - Throws: `ResourceNotAvailable` with the words of the driver, `TimedOut` if it does not answer.
    package func perform(
        _ deed: CaptureControls.Deed, of camera: CaptureSource, _ control: String,
        _ done: @escaping (Result<Void, SessionError>) -> Void
    ) {
        guard deed != .nothing else { return done(.success(())) }
        let before = controls(of: camera.id)
        let (path, leds, light) = (camera.videoDevice ?? "", leds, before.light)
        run(
            for: camera.id,
            { () -> (problem: String?, now: CaptureControls) in
                let problem = Self.perform(deed, path, leds + "/" + (light?.name ?? ""))
                return (problem, Self.read(path.isEmpty ? nil : path, light == nil ? nil : leds))
            },
            done: { [weak self] answer in
                guard let answer else {
                    return done(
                        .failure(
                            SessionError(
                                .timedOut, "the driver of '\(camera.name)' did not answer when the \(control) was set"))
                    )
                }
                self?.known[camera.id] = answer.now
                done(
                    answer.problem.map { problem in
                        .failure(
                            SessionError(
                                .resourceNotAvailable, "the \(control) of '\(camera.name)' cannot be set: \(problem)"))
                    } ?? .success(()))
            })
    }

    // MARK: On another thread

    private static func read(_ device: String?, _ leds: String?) -> CaptureControls {
        CaptureControls(
            device.flatMap { path in try? VideoDevice.read(path) } ?? VideoControls(), leds.flatMap { light(in: $0) })
    }

    private static func light(in folder: String) -> CameraLight? {
        guard let name = CameraLight.choose(namesIn(folder)), let most = number(folder + "/\(name)/max_brightness"),
            most > 0
        else { return nil }
        return CameraLight(name: name, most: most, brightness: number(folder + "/\(name)/brightness") ?? 0)
    }

    /// - Returns: why it was not done.
    private static func perform(_ deed: CaptureControls.Deed, _ device: String, _ light: String) -> String? {
        switch deed {
        case .nothing: return nil
        case .writes(let writes):
            do throws(VideoDevice.Refusal) {
                try VideoDevice.write(writes, to: device)
                return nil
            } catch {
                return error.code == EACCES ? "this user may not change '\(device)'" : error.text
            }
        case .brightness(let value):
            let path = light + "/brightness"
            let file = open(path, O_WRONLY | O_CLOEXEC)
            guard file >= 0 else {
                return errno == EACCES
                    ? "this user may not write '\(path)'; a rule of udev can allow it"
                    : String(cString: strerror(errno))
            }
            defer { close(file) }
            let text = Array("\(value)\n".utf8)
            return write(file, text, text.count) == text.count ? nil : String(cString: strerror(errno))
        }
    }

    private static func number(_ path: String) -> Int? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let text = FileContent.bytes(of: file, at: 0, count: 32).prefix { $0 != UInt8(ascii: "\n") }
        return Int(String(decoding: text, as: UTF8.self))
    }

    // MARK: One after the other

    /// - Parameter done: called once, on the loop; nil: the driver has not answered in time.
    private func run<Answer>(
        for camera: String, _ body: @escaping @Sendable () -> Answer, done: @escaping (Answer?) -> Void
    ) {
        let line = lines[camera] ?? Line()
        lines[camera] = line
        var isAnswered = false
        func answer(_ value: Answer?) {
            guard !isAnswered else { return }
            isAnswered = true
            done(value)
        }
        let patience = Timer(on: loop) { answer(nil) }
        patience.arm(after: Self.patience)
        line.waiting.append { [weak self] in
            // Nobody waits for it any more.
            guard let self, !isAnswered else { return self?.next(camera) ?? () }
            let isStarted = Errand.run(on: loop, body) { [weak self] value in
                patience.disarm()
                answer(value)
                self?.next(camera)
            }
            if !isStarted {
                answer(nil)
                next(camera)
            }
        }
        if !line.isWorking { next(camera) }
    }

    private func next(_ camera: String) {
        guard let line = lines[camera] else { return }
        line.isWorking = !line.waiting.isEmpty
        if line.isWorking { return line.waiting.removeFirst()() }
        lines[camera] = nil
        if lines.isEmpty { onIdle?() }
    }
}
