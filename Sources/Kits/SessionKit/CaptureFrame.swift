import EventLoop
import Glibc
public import PluginAPI

/// A picture of a camera, without gaps between its rows (CMSampleBuffer with a CVPixelBuffer).
public struct CaptureFrame: Sendable, Hashable {
    /// It rises by one with each picture of the camera: a larger step tells how many this program was too slow for.
    public let number: UInt64
    /// When it came from the camera, by CLOCK_MONOTONIC.
    public let presentationTime: MediaTime
    public let size: PictureSize
    public let pixels: CapturePixels
    public let bytes: [UInt8]
}

/// The FIFO that pictures come through. Used on the thread of the loop alone.
// SAFETY: everything that changes is used on the thread of `LoopExecutor.shared`.
final class FramePipe: @unchecked Sendable {
    let path: String
    private let pixels: CapturePixels
    private var descriptor: Int32
    private var watch: IOWatch?
    /// A header, or a picture; what is there of it; and what its header told.
    private var part = UnsafeMutableRawBufferPointer.allocate(byteCount: header, alignment: 16)
    private var filled = 0
    private var picture: (number: UInt64, time: MediaTime, size: PictureSize, bytes: Int)?
    private var onEnd: (() -> Void)?

    private static let header = 32
    /// More than the largest picture of a camera.
    private static let limit = 1 << 28

    init(_ pixels: CapturePixels) throws(SessionError) {
        self.pixels = pixels
        let folder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? "/tmp"
        path = "\(folder)/sessiond-frames-" + String(UInt64.random(in: 0 ... .max), radix: 16)
        guard mkfifo(path, 0o600) == 0 else {
            throw SessionError(.resourceNotAvailable, "'\(path)' cannot be made: \(String(cString: strerror(errno)))")
        }
        descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            unlink(path)
            throw SessionError(.resourceNotAvailable, "'\(path)' cannot be read: \(reason)")
        }
    }

    deinit {
        if descriptor >= 0 { shut() }
        part.deallocate()
    }

    func read(_ body: @escaping (CaptureFrame) -> Void, onEnd: @escaping () -> Void) {
        self.onEnd = onEnd
        watch = IOWatch(on: LoopExecutor.shared.loop, descriptor: descriptor, events: .readable) { [weak self] _ in
            self?.readPart(body)
        }
    }

    func close() {
        watch = nil
        if descriptor >= 0 { shut() }
        descriptor = -1
        onEnd?()
        onEnd = nil
    }

    private func shut() {
        Glibc.close(descriptor)
        unlink(path)
    }

    /// Reads what is there, straight to its place in the picture.
    private func readPart(_ body: (CaptureFrame) -> Void) {
        guard let place = part.baseAddress else { return }
        let wanted = (picture == nil ? Self.header : part.count) - filled
        let count = Glibc.read(descriptor, place + filled, wanted)
        if count < 0, [EAGAIN, EINTR].contains(errno) { return }
        // The plugin has closed it.
        guard count > 0 else { return close() }
        filled += count
        guard count == wanted else { return }
        filled = 0
        guard let begun = picture else { return begin() }
        picture = nil
        let bytes = [UInt8](unsafeUninitializedCapacity: begun.bytes) { target, count in
            target.baseAddress?.update(from: place.assumingMemoryBound(to: UInt8.self), count: begun.bytes)
            count = begun.bytes
        }
        body(
            CaptureFrame(
                number: begun.number, presentationTime: begun.time, size: begun.size, pixels: pixels, bytes: bytes))
    }

    /// The header of a picture is complete.
    private func begin() {
        func number<Number: FixedWidthInteger>(_ place: Int, _: Number.Type) -> Number {
            part.loadUnaligned(fromByteOffset: place, as: Number.self)
        }
        let size = Int(number(4, UInt32.self))
        guard number(0, UInt32.self) == Self.header, (1...Self.limit).contains(size) else { return close() }
        picture = (
            number(8, UInt64.self), MediaTime(nanoseconds: Int64(clamping: number(16, UInt64.self))),
            PictureSize(width: Int(number(24, UInt32.self)), height: Int(number(28, UInt32.self))), size
        )
        guard part.count != max(size, Self.header) else { return }
        part.deallocate()
        part = .allocate(byteCount: max(size, Self.header), alignment: 16)
    }
}
