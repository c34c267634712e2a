/// A second model of the configuration of a capture session: a list of changes. A pair is a list that is replayed at its end on what
/// was there before.
package struct CaptureModel {
    package typealias Size = (width: Int, height: Int)

    private struct State {
        var cameras: [String: Size] = [:]
        var microphones: Set<String> = []
        var outputs: Set<String> = []
        var least: Size = (0, 0)

        var isPossible: Bool {
            cameras.values.allSatisfy { $0.width >= least.width && $0.height >= least.height }
        }
        func isPossible(after before: State) -> Bool {
            !cameras.isEmpty && outputs.contains("film") && least == before.least
                && microphones.isEmpty == before.microphones.isEmpty
        }
    }

    private var state = State()
    private var pending: [(inout State) -> Bool]?
    package var isRecording = false

    package init() {}

    package var inputs: Set<String> { Set(state.cameras.keys).union(state.microphones) }
    package var outputs: Set<String> { state.outputs }

    package mutating func begin() -> Bool {
        guard pending == nil else { return false }
        pending = []
        return true
    }

    package mutating func commit() -> Bool {
        guard let changes = pending else { return false }
        pending = nil
        var next = state
        for change in changes { _ = change(&next) }
        return take(next)
    }

    private mutating func take(_ next: State) -> Bool {
        guard next.isPossible, !isRecording || next.isPossible(after: state) else { return false }
        state = next
        return true
    }

    private mutating func apply(_ change: @escaping (inout State) -> Bool) -> Bool {
        guard let changes = pending else {
            var next = state
            return change(&next) && take(next)
        }
        var next = state
        for earlier in changes { _ = earlier(&next) }
        guard change(&next) else { return false }
        pending = changes + [change]
        return true
    }

    package mutating func add(_ id: String, isCamera: Bool, _ size: Size) -> Bool {
        apply { state in
            if isCamera {
                guard state.cameras.isEmpty else { return false }
                state.cameras[id] = size
            } else {
                guard state.microphones.isEmpty else { return false }
                state.microphones.insert(id)
            }
            return true
        }
    }

    package mutating func remove(_ id: String) -> Bool {
        apply { state in state.cameras.removeValue(forKey: id) != nil || state.microphones.remove(id) != nil }
    }

    package mutating func replaceCamera(_ id: String, _ size: Size) -> Bool {
        apply { state in
            guard !state.cameras.isEmpty else { return false }
            state.cameras = [id: size]
            return true
        }
    }

    package mutating func addOutput(_ kind: String) -> Bool { apply { $0.outputs.insert(kind).inserted } }
    package mutating func removeOutput(_ kind: String) -> Bool { apply { $0.outputs.remove(kind) != nil } }
    package mutating func setLeast(_ size: Size) -> Bool {
        apply { state in
            state.least = size
            return true
        }
    }
}
