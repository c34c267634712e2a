import Glibc

/// The machine code that GStreamer's ORC writes at run time.
package enum MachineCode {
    /// Where a process may not have memory that is writable and executable, such as in a service of systemd with
    /// `MemoryDenyWriteExecute`, ORC looks for a folder for files with code. A process that has given up its rights to files finds
    /// none, and ORC 0.4.33 ends it. With `backup`, ORC calls compiled functions.
    ///
    /// Must be called before `gst_init`, in processes that give up their rights to files.
    package static func leaveIfForbidden() {
        let size = sysconf(Int32(_SC_PAGESIZE))
        let protection = PROT_READ | PROT_WRITE | PROT_EXEC
        let page = mmap(nil, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if page == MAP_FAILED {
            setenv("ORC_CODE", "backup", 0)
        } else {
            munmap(page, size)
        }
    }
}
