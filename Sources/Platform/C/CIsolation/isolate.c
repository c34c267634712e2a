// Takes rights away from a process that reads untrusted files.
#define _GNU_SOURCE
#include "CIsolation.h"
#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_file(const char *file, const char *text, size_t size) {
    const int descriptor = open(file, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    const ssize_t count = write(descriptor, text, size);
    close(descriptor);
    return count == (ssize_t)size;
}

static int write_map(const char *file, unsigned int id) {
    char line[32];
    return write_file(file, line, (size_t)snprintf(line, sizeof line, "%u %u 1", id, id));
}

int isolation_keep_ids(unsigned int user, unsigned int group) {
    write_file("/proc/self/setgroups", "deny", 4);
    return write_map("/proc/self/gid_map", group) && write_map("/proc/self/uid_map", user);
}

void isolation_drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    // glibc has no capset.
    syscall(SYS_capset, &header, none);
}

// Moves the process into namespaces with a read-only file system, without a network interface and without IPC objects,
// if an ordinary user may create them. Open files, and descriptors that the process receives later, stay usable as
// before.
static int leave_system(void) {
    const unsigned int user = geteuid(), group = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC) != 0) return 0;
    isolation_keep_ids(user, group);
    // struct mount_attr. glibc 2.36 has it in a header that conflicts with Linux's own.
    struct {
        uint64_t set, clear, propagation, descriptor;
    } attributes = {1 /* MOUNT_ATTR_RDONLY */ | 2 /* NOSUID */, 0, 0, 0};
    const int changed =
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && syscall(442 /* mount_setattr */, AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, &attributes, sizeof attributes)
            == 0;
    isolation_drop_capabilities();
    return changed;
}

// Landlock: no file can be created, removed or opened for writing. Other processes cannot be inspected and, from Linux
// 6.12 on, cannot be sent signals. Works also where users may not create namespaces. Returns 1 if the kernel supports
// it.
static int lock_files(void) {
    const int create = 444, restrict_self = 446;
    const long version = syscall(create, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    if (version < 1) return 0;
    // struct landlock_ruleset_attr; ABI versions below 4 and 6 have only its first fields.
    struct {
        uint64_t files, network, scopes;
    } rules = {0, 0, 0};
    // WRITE_FILE, and REMOVE_DIR … MAKE_SYM.
    rules.files = 1 << 1 | 0x1ff << 4;
    // Abstract sockets, and signals.
    if (version >= 6) rules.scopes = 1 << 0 | 1 << 1;
    const size_t size =
        version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    const int ruleset = (int)syscall(create, &rules, size, 0);
    if (ruleset < 0) return 0;
    const long result = syscall(restrict_self, ruleset, 0);
    close(ruleset);
    return result == 0;
}

// Installs the filter of system calls. Refused calls fail, and end nothing.
static int refuse_calls(void) {
#if defined(__x86_64__)
    const uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    const uint32_t machine = AUDIT_ARCH_AARCH64;
#else
    const uint32_t machine = 0;
#endif
    struct sock_filter filter[isolation_filter_room];
    const size_t count = isolation_filter(machine, (uint32_t)getpid(), filter, isolation_filter_room);
    if (count == 0) return 0;
    struct sock_fprog program = {(unsigned short)count, filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int isolation_isolate(void) {
    int parts = leave_system() ? isolation_namespaces : 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return parts;
    if (lock_files()) parts |= isolation_files;
    if (refuse_calls()) parts |= isolation_calls;
    return parts;
}

int isolation_probe(void) {
    const pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) _exit(isolation_isolate());
    int status = 0;
    while (waitpid(child, &status, 0) < 0) if (errno != EINTR) return 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

void isolation_limit(rlim_t memory) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    struct rlimit most;
    if (isolation_is_sanitized() || getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_max <= memory) return;
    most.rlim_cur = most.rlim_max = memory;
    setrlimit(RLIMIT_AS, &most);
}
