import Foundation

/// Waits until `condition` is true; false if `timeout` seconds have passed before.
///
/// For what happens in other processes and threads. What happens on a loop waits with
/// `EventLoop.iterate(timeout:until:)`.
@discardableResult
public func eventually(timeout: Double = 10, _ condition: () throws -> Bool) rethrows -> Bool {
    let end = monotonicNow() + timeout
    while true {
        if try condition() { return true }
        if monotonicNow() >= end { return false }
        usleep(1_000)
    }
}

/// CLOCK_MONOTONIC in seconds.
public func monotonicNow() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The path of an executable of this package, beside the running tests.
public func builtProduct(named name: String) throws -> String {
    let running = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    var folder = URL(fileURLWithPath: running).deletingLastPathComponent()
    for _ in 0..<5 {
        let path = folder.appendingPathComponent(name).path
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue { return path }
        folder.deleteLastPathComponent()
    }
    throw SupportError("no executable '\(name)' beside \(running): swift build first")
}
