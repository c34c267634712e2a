import CLinux

/// The memory that a process keeps while it waits.
public enum Footprint {
    /// Gives back what only starting needed: free heap (`malloc_trim`) and, from every loaded file, the pages that
    /// nothing writes to (`madvise`).
    ///
    /// What runs again is mapped again at its first use, from the cache of files. To be called when a service is up and
    /// has nothing to do.
    public static func releaseStartUp() { shim_release_start_up_memory() }

    /// Gives back what is free of the heap (`malloc_trim`): after something of unusual size, not after each little thing.
    public static func releaseHeap() { shim_release_heap() }
}
