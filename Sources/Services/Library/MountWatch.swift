import EventLoop
import Glibc
import Processes

/// Reports when a file system is mounted or unmounted in the mount namespace of this process.
final class MountWatch {
    /// A mount point and its device.
    struct Mount: Hashable {
        let point: [UInt8]
        let device: [UInt8]

        /// Whether the mount point is that folder, in it, or above it.
        func concerns(_ folder: [UInt8]) -> Bool { point.isPath(in: folder) || folder.isPath(in: point) }
    }

    private static let path = "/proc/self/mountinfo"
    /// Seconds to wait after a change, because several changes often come together.
    private static let quiet = 0.5

    private let descriptor: Int32
    private var watch: IOWatch?
    private let settled: Timer

    /// Nil if the kernel does not report changes.
    init?(on loop: EventLoop, _ onChanged: @escaping () -> Void) {
        settled = Timer(on: loop, onChanged)
        descriptor = open(Self.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // poll reports a change once, as an error condition; the file itself is always readable.
        watch = IOWatch(on: loop, descriptor: descriptor, events: .error) { [unowned self] _ in
            settled.arm(after: Self.quiet)
        }
    }

    deinit {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
    }

    /// The current mounts.
    static var mounts: Set<Mount> {
        var mounts: Set<Mount> = []
        for line in (readFile(path, limit: 4 << 20) ?? []).split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard words.count > 5 else { continue }
            mounts.insert(Mount(point: unescaped(words[4]), device: Array(words[2])))
        }
        return mounts
    }

    /// The file contains spaces and similar bytes as octal escapes.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            guard byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ (0x30...0x37).contains($0) })
            else {
                bytes.append(byte)
                continue
            }
            bytes.append(UInt8(truncatingIfNeeded: digits.reduce(0) { $0 * 8 + Int($1 - 0x30) }))
            rest = rest.dropFirst(3)
        }
        return bytes
    }
}
