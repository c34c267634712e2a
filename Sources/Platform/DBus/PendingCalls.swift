import CDBus
import EventLoop

/// The calls of one connection that wait for an answer.
///
/// libdbus's pending calls are not used: each needs a timer, and so a file descriptor.
final class PendingCalls {
    private struct Call {
        let reply: (Result<[Value], Failure>) -> Void
        let deadline: UInt64
        /// The only peer besides the bus that may answer; nil if a well-known name was called.
        let callee: String?
    }

    private let loop: EventLoop
    private var calls: [UInt32: Call] = [:]
    private var timer: Deadline?
    /// When the timer fires. It stays armed while calls wait, because arming it for each call would cost more. Without
    /// waiting calls it is disarmed, so that it does not wake an idle process.
    private var armed = UInt64.max

    init(loop: EventLoop) { self.loop = loop }

    func add(
        _ serial: UInt32, to destination: String?, timeout: Double,
        _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        let deadline = MonotonicClock.now() &+ MonotonicClock.microseconds(timeout)
        let callee = destination.flatMap { $0.hasPrefix(":") || $0 == StandardName.bus ? $0 : nil }
        let earlier = calls.updateValue(Call(reply: reply, deadline: deadline, callee: callee), forKey: serial)
        // The same message sent twice has the same serial.
        earlier?.reply(.failure(.failed("The message was sent again")))
        arm(deadline)
    }

    private func arm(_ deadline: UInt64) {
        guard deadline < armed else { return }
        armed = deadline
        let timer = self.timer ?? Deadline(on: loop) { [weak self] in self?.expire() }
        self.timer = timer
        timer.arm(at: deadline)
    }

    private func expire() {
        armed = .max
        let now = MonotonicClock.now()
        let late = calls.filter { $0.value.deadline <= now }
        for serial in late.keys { calls[serial] = nil }
        if let next = calls.values.lazy.map(\.deadline).min() { arm(next) }
        for serial in late.keys.sorted() { late[serial]?.reply(.failure(.noReply("No answer in time"))) }
    }

    /// Passes an answer to its call. An answer that no call waits for, or that comes from another peer, is ignored.
    func complete(_ answer: Message) {
        let serial = answer.replySerial
        guard let call = calls[serial] else { return }
        // Serials are easy to guess, and a bus may let any peer send answers.
        if let callee = call.callee, let sender = answer.sender, sender != callee, sender != StandardName.bus { return }
        calls[serial] = nil
        if calls.isEmpty, armed != .max {
            armed = .max
            timer?.disarm()
        }
        call.reply(answer.outcome())
    }

    /// Removes all of them, oldest first, without answering.
    func removeAll() -> [(Result<[Value], Failure>) -> Void] {
        let replies = calls.sorted { $0.key < $1.key }.map(\.value.reply)
        calls = [:]
        timer = nil
        armed = .max
        return replies
    }
}
