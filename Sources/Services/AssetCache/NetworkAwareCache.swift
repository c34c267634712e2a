public import EventLoop
public import PluginKit

/// The cache, which fetches nothing ahead of players while the network is metered.
public final class NetworkAwareCache: Plugin {
    private let cache: CachePlugin
    private let machine: MachineWatch

    public init(_ cache: CachePlugin, on loop: EventLoop) {
        (self.cache, machine) = (cache, MachineWatch(on: loop))
        machine.onChanged = { [unowned self] in look() }
        look()
    }

    private func look() { cache.mayFill = machine.isKnown && !machine.isMetered }

    public func end(_ done: @escaping () -> Void) { cache.end(done) }
}
