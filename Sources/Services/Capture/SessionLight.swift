import CameraBackend
import Capturing
import EventLoop
import PluginAPI

/// The light beside a camera, as far as one capture session has switched it on: it goes out with the session.
final class SessionLight {
    /// Seconds in which a camera gets used to the light.
    private static let time = 0.6

    private let hardware: CameraHardware
    private let loop: EventLoop
    private let onChange: (CaptureSource) -> Void
    /// The camera whose light this session has switched on.
    private var lit: CaptureSource?
    /// Photos that wait until the camera has got used to the light.
    private var waiting: [(SessionError?) -> Void] = []
    /// How many photos need the light, and what is restored after them.
    private var photos = 0
    private var before = (lit: CaptureSource?.none, level: 0.0)
    private var isBright = false
    private lazy var adaptation = Timer(on: loop) { [unowned self] in take(nil) }

    /// - Parameter onChange: called when the light of a camera was changed, or could not be.
    init(of hardware: CameraHardware, on loop: EventLoop, onChange: @escaping (CaptureSource) -> Void) {
        (self.hardware, self.loop, self.onChange) = (hardware, loop, onChange)
    }

    /// The client sets the light of a camera.
    func note(_ level: CameraSetting, of camera: CaptureSource) { lit = level == .number(0) ? nil : camera }

    /// Switches the light on for a photo.
    /// - Parameter body: called when the camera has got used to it, or with the reason if there is no light. ``endPhoto()`` follows.
    func photograph(with camera: CaptureSource, _ body: @escaping (SessionError?) -> Void) {
        waiting.append(body)
        photos += 1
        guard photos == 1 else {
            if isBright { adaptation.arm(after: Self.time) }
            return
        }
        before = (lit, 0)
        if case .number(let level) = hardware.controls(of: camera.id).values[.torch] { before.level = level }
        lit = camera
        set(1, of: camera) { [weak self] problem in
            guard let self else { return }
            isBright = problem == nil
            if isBright { adaptation.arm(after: Self.time) } else { take(problem) }
        }
    }

    func endPhoto() {
        photos -= 1
        guard photos == 0, let camera = lit else { return }
        isBright = false
        lit = before.lit
        set(before.level, of: camera) { _ in }
    }

    /// Photos that wait for it are not taken.
    func goOut() {
        adaptation.disarm()
        take(SessionError(.cancelled, "the light went out before the photo was taken"))
        guard let camera = lit else { return }
        lit = nil
        set(0, of: camera) { _ in }
    }

    private func take(_ problem: SessionError?) {
        let bodies = waiting
        waiting = []
        for body in bodies { body(problem) }
    }

    private func set(_ level: Double, of camera: CaptureSource, _ done: @escaping (SessionError?) -> Void) {
        let name = CaptureControl.torch.rawValue
        var controls = hardware.controls(of: camera.id)
        do throws(SessionError) {
            let deed = try controls.set(name, .number(level), of: camera.name)
            hardware.perform(deed, of: camera, name) { [weak self] result in
                self?.onChange(camera)
                if case .failure(let error) = result { done(error) } else { done(nil) }
            }
        } catch {
            done(error)
        }
    }
}
