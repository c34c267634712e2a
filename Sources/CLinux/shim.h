// Linux headers that Swift's Glibc module does not contain.
#pragma once
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

// prctl is variadic.
static inline int shim_set_parent_death_signal(int signal) { return prctl(PR_SET_PDEATHSIG, signal); }

// The headers define memfd_create only with _GNU_SOURCE.
extern int memfd_create(const char *name, unsigned int flags);
enum { shim_close_on_exec = 1 };

// The headers define dl_iterate_phdr and its structure only with _GNU_SOURCE.
struct shim_loaded {
    Elf64_Addr address;
    const char *name;
    const Elf64_Phdr *headers;
    Elf64_Half count;
};
extern int dl_iterate_phdr(int (*each)(void *loaded, size_t size, void *context), void *context);

// Segments without write access are equal to their files. Pages that are used again are mapped again from there.
static inline int shim_unmap_segments(void *each, size_t size, void *context) {
    const struct shim_loaded *loaded = (const struct shim_loaded *)each;
    (void)size, (void)context;
    // A code segment with relocations differs from its file.
    for (Elf64_Half i = 0; i < loaded->count; i++)
        if (loaded->headers[i].p_type == PT_LOAD && (loaded->headers[i].p_flags & PF_W)
            && (loaded->headers[i].p_flags & PF_X))
            return 0;
    for (Elf64_Half i = 0; i < loaded->count; i++) {
        const Elf64_Phdr *header = &loaded->headers[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W)) continue;
        uintptr_t start = (loaded->address + header->p_vaddr + 4095) & ~(uintptr_t)4095;
        uintptr_t end = (loaded->address + header->p_vaddr + header->p_memsz) & ~(uintptr_t)4095;
        // Fails for pages without a file, such as those of the kernel, which then stay.
        if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

static inline void shim_release_heap(void) { malloc_trim(0); }

static inline void shim_release_start_up_memory(void) {
    malloc_trim(0);
    dl_iterate_phdr(shim_unmap_segments, NULL);
}

// Raises the soft limit of open files to the hard limit, and writes the former limits to `before`. In C, because the
// headers declare the resource as an enumeration for C and as a number for Swift.
static inline int shim_raise_open_files(struct rlimit *before) {
    if (getrlimit(RLIMIT_NOFILE, before) != 0) return -1;
    struct rlimit raised = {before->rlim_max, before->rlim_max};
    return before->rlim_cur == before->rlim_max ? 0 : setrlimit(RLIMIT_NOFILE, &raised);
}

// glibc has no capset, and prctl is variadic.

static inline int shim_read_capabilities(struct __user_cap_data_struct sets[2]) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    return (int)syscall(SYS_capget, &header, sets);
}

static inline int shim_write_capabilities(const struct __user_cap_data_struct sets[2]) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    return (int)syscall(SYS_capset, &header, sets);
}

// Removes all capabilities that started programs would inherit.
static inline void shim_clear_inherited_capabilities(void) {
    struct __user_cap_data_struct sets[2];
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (shim_read_capabilities(sets) != 0 || (sets[0].inheritable | sets[1].inheritable) == 0) return;
    sets[0].inheritable = sets[1].inheritable = 0;
    shim_write_capabilities(sets);
}

// Drops all capabilities except this one, which becomes permitted but not effective. Returns 1 if it is permitted.
static inline int shim_set_aside_capability(unsigned int number) {
    struct __user_cap_data_struct sets[2];
    if (shim_read_capabilities(sets) != 0) return 0;
    for (unsigned int i = 0; i < 2; i++) {
        sets[i].permitted &= i == number / 32 ? 1u << number % 32 : 0u;
        sets[i].effective = sets[i].inheritable = 0;
    }
    return shim_write_capabilities(sets) == 0 && (sets[0].permitted | sets[1].permitted) != 0;
}

static inline void shim_use_capability(unsigned int number, int is_used) {
    int error = errno;
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};
    sets[number / 32].permitted = 1u << number % 32;
    sets[number / 32].effective = is_used ? 1u << number % 32 : 0u;
    shim_write_capabilities(sets);
    errno = error;
}

// The restrictions for starting an untrusted program. posix_spawn cannot set them.
struct shim_confinement {
    // The limits of open files.
    struct rlimit files;
    // The limit of private writable memory, in bytes.
    rlim_t memory;
};

// Whether this process runs with a sanitizer, whose shadow memory is also private writable memory.
static inline int shim_is_sanitized(void) {
    return dlsym(NULL, "__asan_init") != NULL || dlsym(NULL, "__tsan_init") != NULL;
}

// Runs in the child, which shares its parent's memory until it executes the program. So it must not allocate memory.
static inline void shim_confine(const struct shim_confinement *confinement, int is_sanitized) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // Otherwise a program of root would get all capabilities again.
    prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    shim_write_capabilities(none);
    setrlimit(RLIMIT_NOFILE, &confinement->files);
    struct rlimit memory;
    if (is_sanitized || getrlimit(RLIMIT_DATA, &memory) != 0) return;
    if (memory.rlim_max > confinement->memory) {
        memory.rlim_cur = memory.rlim_max = confinement->memory;
        setrlimit(RLIMIT_DATA, &memory);
    }
}

// Starts a program in a new process group. Returns its process, or -1 with errno.
static inline pid_t shim_start_confined(
    const char *path, char *const arguments[], char *const environment[], const struct shim_confinement *confinement
) {
    const int is_sanitized = shim_is_sanitized();
    sigset_t all, before, none;
    sigfillset(&all);
    sigemptyset(&none);
    // Our signal handlers must not run in the child, because it uses our memory.
    sigprocmask(SIG_SETMASK, &all, &before);
    volatile int error = 0;
    pid_t process = vfork();
    if (process == 0) {
        struct sigaction action = {0};
        action.sa_handler = SIG_DFL;
        for (int number = 1; number < 65; number++) sigaction(number, &action, NULL);
        setpgid(0, 0);
        shim_confine(confinement, is_sanitized);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(path, arguments, environment);
        error = errno;
        _exit(127);
    }
    int failure = process < 0 ? errno : error;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (process > 0 && failure != 0) {
        // The child could not execute the program.
        while (waitpid(process, NULL, 0) < 0 && errno == EINTR) {}
        process = -1;
    }
    errno = failure;
    return process;
}

// Descriptors on a socket: the macros of control messages are function-like.

enum { shim_most_descriptors = 8 };

// Sends bytes, with copies of the descriptors at the first byte. Returns the number of bytes sent; -1 with errno.
static inline long shim_send_with_descriptors(int socket, const void *bytes, size_t size, const int *descriptors, int count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * shim_most_descriptors)];
    } control;
    struct iovec piece = {(void *)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (count > shim_most_descriptors) {
        errno = EINVAL;
        return -1;
    }
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * (size_t)count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Receives bytes, and the descriptors that came with them, at most shim_most_descriptors. Returns the number of bytes,
// 0 at the end, -1 with errno.
static inline long shim_receive_with_descriptors(int socket, void *bytes, size_t size, int *descriptors, int *count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * shim_most_descriptors)];
    } control;
    struct iovec piece = {bytes, size};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    long received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    *count = 0;
    if (received <= 0) return received;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int number = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(descriptors, CMSG_DATA(header), sizeof(int) * (size_t)number);
        *count = number;
    }
    return received;
}

// Disables core dumps and limits the memory. Not with a sanitizer, which needs more memory.
static inline void shim_limit_worker(rlim_t memory) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    struct rlimit most;
    if (shim_is_sanitized() || getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_max <= memory) return;
    most.rlim_cur = most.rlim_max = memory;
    setrlimit(RLIMIT_AS, &most);
}

// Installs a filter of system calls for the rest of this process's life: no new socket, no other program, no new
// namespace, no call that affects other processes. Refused calls fail with EPERM. Returns 1 if the kernel supports it.
static inline int shim_refuse_calls(void) {
#if defined(__x86_64__)
    const unsigned int machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    const unsigned int machine = AUDIT_ARCH_AARCH64;
#else
    return 0;
#endif
#define SHIM_REFUSE(name)                                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
// Refuses a system call whose first argument (its low 32 bits) is not `own`.
#define SHIM_REFUSE_OTHER(name, own)                                                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                                                             \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),                                       \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (own), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
    const unsigned int own = (unsigned int)getpid();
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#if defined(__x86_64__)
        // The system call numbers of the x32 ABI.
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
#endif
        SHIM_REFUSE(socket), SHIM_REFUSE(connect), SHIM_REFUSE(bind), SHIM_REFUSE(listen), SHIM_REFUSE(execve),
        SHIM_REFUSE(execveat), SHIM_REFUSE(ptrace), SHIM_REFUSE(process_vm_readv), SHIM_REFUSE(process_vm_writev),
        SHIM_REFUSE(pidfd_getfd), SHIM_REFUSE(io_uring_setup), SHIM_REFUSE(bpf), SHIM_REFUSE(keyctl),
        SHIM_REFUSE(unshare), SHIM_REFUSE(setns), SHIM_REFUSE(mount), SHIM_REFUSE(umount2), SHIM_REFUSE(chroot),
        SHIM_REFUSE(sendmsg), SHIM_REFUSE(sendmmsg), SHIM_REFUSE(kill), SHIM_REFUSE(tkill),
        SHIM_REFUSE(rt_sigqueueinfo), SHIM_REFUSE(rt_tgsigqueueinfo), SHIM_REFUSE(pidfd_send_signal),
        SHIM_REFUSE(pidfd_open), SHIM_REFUSE(userfaultfd), SHIM_REFUSE(add_key), SHIM_REFUSE(request_key),
        SHIM_REFUSE(mq_open), SHIM_REFUSE(perf_event_open), SHIM_REFUSE(open_by_handle_at),
        SHIM_REFUSE_OTHER(tgkill, own), SHIM_REFUSE_OTHER(prlimit64, 0),
        // GStreamer wakes its threads by pairs of stream sockets. A pair of another type could send to sockets of other
        // processes.
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + sizeof(uint64_t)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        // glibc starts threads by clone if there is no clone3. The filter cannot read the flags of clone3.
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435 /* clone3 */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        // All CLONE_NEW… flags.
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020080, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
#undef SHIM_REFUSE
#undef SHIM_REFUSE_OTHER
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static inline void shim_write_map(const char *file, unsigned int id) {
    char line[32];
    int size = snprintf(line, sizeof line, "%u %u 1", id, id);
    int descriptor = open(file, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    if (write(descriptor, line, (size_t)size) < 0) {}
    close(descriptor);
}

// Moves the process into namespaces with a read-only file system and without a network interface, if an ordinary user
// may create them. Open files, and descriptors that the process receives later, stay usable as before.
static inline int shim_leave_system(void) {
    unsigned int user = geteuid(), group = getegid();
    const int user_namespace = 0x10000000, network = 0x40000000, mounts = 0x00020000;
    if (syscall(SYS_unshare, user_namespace | network | mounts) != 0) return 0;
    int descriptor = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        if (write(descriptor, "deny", 4) < 0) {}
        close(descriptor);
    }
    shim_write_map("/proc/self/uid_map", user);
    shim_write_map("/proc/self/gid_map", group);
    const unsigned long recursive = 0x4000, private_mounts = 1ul << 18;
    if (syscall(SYS_mount, NULL, "/", NULL, recursive | private_mounts, NULL) != 0) return 0;
    // struct mount_attr. glibc 2.36 has it in a header that conflicts with Linux's own.
    struct {
        uint64_t set, clear, propagation, descriptor;
    } attributes = {1 /* MOUNT_ATTR_RDONLY */ | 2 /* NOSUID */, 0, 0, 0};
    long changed = syscall(442 /* mount_setattr */, -100, "/", 0x8000 /* AT_RECURSIVE */, &attributes, sizeof attributes);
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    shim_write_capabilities(none);
    return changed == 0;
}

// Landlock: no file can be created, removed or opened for writing. Other processes cannot be inspected and, from Linux
// 6.12 on, cannot be sent signals. Works also where users may not create namespaces. Returns 1 if the kernel supports
// it.
static inline int shim_lock_files(void) {
    const int create = 444, restrict_self = 446;
    long version = syscall(create, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    if (version < 1) return 0;
    // struct landlock_ruleset_attr; ABI versions below 4 and 6 have only its first fields.
    struct {
        uint64_t files, network, scopes;
    } rules = {0, 0, 0};
    // WRITE_FILE, and REMOVE_DIR … MAKE_SYM.
    rules.files = 1 << 1 | 0x1ff << 4;
    // Abstract sockets, and signals.
    if (version >= 6) rules.scopes = 1 << 0 | 1 << 1;
    size_t size = version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    int ruleset = (int)syscall(create, &rules, size, 0);
    if (ruleset < 0) return 0;
    long result = syscall(restrict_self, ruleset, 0);
    close(ruleset);
    return result == 0;
}

// Returns a bit mask. 1: no files can be written; 2: system calls are refused; 4: no file can be created, removed or
// opened for writing, and other processes cannot be inspected.
static inline int shim_isolate(void) {
    int result = shim_leave_system();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return result;
    result |= shim_lock_files() << 2;
    return result | shim_refuse_calls() << 1;
}
