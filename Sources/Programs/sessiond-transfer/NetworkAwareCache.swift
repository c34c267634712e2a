import AssetCache
import PluginKit

/// The cache, which fetches nothing ahead of players while the network is metered.
final class NetworkAwareCache: Plugin {
    private let cache: CachePlugin
    private let machine: MachineWatch

    init(_ cache: CachePlugin, _ machine: MachineWatch) {
        (self.cache, self.machine) = (cache, machine)
        machine.onChanged = { [unowned self] in look() }
        look()
    }

    private func look() { cache.mayFill = machine.isKnown && !machine.isMetered }

    func end(_ done: @escaping () -> Void) { cache.end(done) }
}
