import CLinux

/// The memory that a process keeps while it waits.
public enum Footprint {
    /// From now on a large block goes back to the system as soon as it is freed. To be called once, at the start.
    ///
    /// The C library keeps blocks from 128 kB on out of the heap, but raises that size to that of the largest one that
    /// was freed, up to 32 MB: after one huge message, all smaller blocks stay in the heap. A size that is set is not
    /// raised (`mallopt`, `M_MMAP_THRESHOLD`).
    public static func returnLargeBlocks() { mallopt(M_MMAP_THRESHOLD, 128 << 10) }

    /// Gives back what only starting needed: free heap (`malloc_trim`) and, from every loaded file, the pages that
    /// nothing writes to (`madvise`).
    ///
    /// Code that runs again is mapped again at its first use, from the file cache. Must be called when a service is up
    /// and idle.
    public static func releaseStartUp() { shim_release_start_up_memory() }

    /// Gives back the free part of the heap (`malloc_trim`). Only after something of unusual size.
    public static func releaseHeap() { shim_release_heap() }
}
