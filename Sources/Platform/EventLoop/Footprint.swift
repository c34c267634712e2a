import CLinux

/// Reduces the memory that a process keeps while it waits.
public enum Footprint {
    /// From now on, large blocks are returned to the system as soon as they are freed. Must be called once, at the
    /// start.
    ///
    /// The C library allocates blocks from 128 kB on outside of the heap. But it raises this size to that of the
    /// largest freed block, up to 32 MB: after one huge message, all smaller blocks are in the heap. It does not raise
    /// a size that was set explicitly (`mallopt`, `M_MMAP_THRESHOLD`).
    public static func returnLargeBlocks() { mallopt(M_MMAP_THRESHOLD, 128 << 10) }

    /// Returns memory that only the start needed: the free heap (`malloc_trim`) and, of every loaded file, the pages
    /// without write access (`madvise`).
    ///
    /// Code that runs again is mapped again at its first use, from the file cache. Must be called when a service is up
    /// and idle.
    public static func releaseStartUp() { shim_release_start_up_memory() }

    /// Returns the free part of the heap (`malloc_trim`). Only useful after an unusually large allocation.
    public static func releaseHeap() { shim_release_heap() }
}
