public import Foundation
import Synchronization

// The calls of AVFoundation block their thread until they have an answer. So do those of this module that have no
// `async`. Swift prefers the ones of SessionKit in asynchronous functions.

/// Makes a request and waits for its answer. The daemon and the plugins answer within seconds; a request to one that does
/// not fails. Only for the main thread and threads of the app: in a task, the thread would be missing to the request.
func waiting<Answer: Sendable>(
    _ request: @escaping @Sendable () async throws(SessionError) -> Answer
) throws(SessionError) -> Answer {
    let answer = Mutex<Result<Answer, SessionError>?>(nil)
    let isThere = DispatchSemaphore(value: 0)
    let box = Box(answer)
    Task.detached {
        let result: Result<Answer, SessionError>
        do throws(SessionError) { result = .success(try await request()) } catch { result = .failure(error) }
        box.answer.withLock { $0 = result }
        isThere.signal()
    }
    isThere.wait()
    guard let result = box.answer.withLock({ $0 }) else { preconditionFailure("signalled without an answer") }
    return try result.get()
}

/// The same for a call that reports no error on iOS: the error is logged.
@discardableResult
func trying<Answer: Sendable>(
    _ call: String, _ request: @escaping @Sendable () async throws(SessionError) -> Answer
) -> Answer? {
    do throws(SessionError) {
        return try waiting(request)
    } catch {
        logged(call, error)
        return nil
    }
}

func logged(_ call: String, _ error: SessionError) { NSLog("%@", "\(call): \(error.message)") }

private final class Box<Answer: Sendable>: Sendable {
    let answer: Mutex<Result<Answer, SessionError>?>

    init(_ answer: consuming sending Mutex<Result<Answer, SessionError>?>) { self.answer = answer }
}

/// Foundation's URL can be given to every call of SessionKit that takes an address.
extension URL: MediaAddress {}

/// The delegates of objects that have none themselves. A delegate is not kept alive.
final class Delegates: Sendable {
    static let all = Delegates()

    // SAFETY: the references are only read; what they refer to is used on the main actor alone.
    private struct Reference: @unchecked Sendable {
        weak var owner: AnyObject?
        weak var delegate: AnyObject?
    }

    private let references = Mutex<[ObjectIdentifier: Reference]>([:])

    func delegate(of object: AnyObject) -> AnyObject? {
        references.withLock { $0[ObjectIdentifier(object)]?.delegate }
    }

    /// - Returns: whether it is the first one of this object: then somebody has to listen to its events.
    func set(_ delegate: AnyObject?, of object: AnyObject) -> Bool {
        let reference = Reference(owner: object, delegate: delegate)
        return references.withLock { references in
            // Objects that have ended. A new one may be at the same place.
            references = references.filter { $0.value.owner != nil }
            return references.updateValue(reference, forKey: ObjectIdentifier(object)) == nil
        }
    }
}
