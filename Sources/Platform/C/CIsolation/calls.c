// The system calls that an isolated process may use.
//
// GStreamer, gdk-pixbuf, the decoders and our own readers need these after the isolation; strace found them, with glibc
// 2.36 and 2.41, on all tests that use workers. To allow one more, add a line.
#define _GNU_SOURCE
#include "CIsolation.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// A condition for an argument: with this mask, it is one of these values.
struct check {
    unsigned char argument;
    // Whether it is a pointer, whose upper half must be zero. The kernel ignores that of the others.
    unsigned char is_wide;
    // Whether the number of this process is the only value.
    unsigned char is_own;
    unsigned char count;
    uint32_t mask;
    uint32_t values[6];
};

enum { most_checks = 2 };

struct row {
    struct isolation_call call;
    struct check checks[most_checks];
};

#define ARGUMENT(number, bits, ...)                                                                                    \
    {.argument = (number), .mask = (bits), .values = {__VA_ARGS__},                                                    \
     .count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)}
#define POINTER_IS_NULL(number) {.argument = (number), .is_wide = 1, .mask = ~0u, .count = 1, .values = {0}}
#define IS_OWN_PROCESS(number) {.argument = (number), .is_own = 1, .mask = ~0u, .count = 1}

// A new thread as glibc creates it; never a process or a namespace.
#define THREAD                                                                                                         \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS                   \
     | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
// Zero in the flags of a file that is opened for reading and neither created nor changed. The last one is part of
// O_TMPFILE.
#define CHANGES (O_ACCMODE | O_CREAT | O_TRUNC | 020000000)

// name, number on x86-64, number on arm64, conditions: all of one line must be met.
#define CALLS(X)                                                                                                       \
    /* Memory */                                                                                                       \
    X(mmap, 9, 222) X(mprotect, 10, 226) X(munmap, 11, 215) X(brk, 12, 214) X(mremap, 25, 216) X(madvise, 28, 233)     \
    X(mlock, 149, 228) X(get_mempolicy, 239, 236) X(set_mempolicy, 238, 237)                                           \
    /* Threads */                                                                                                      \
    X(futex, 202, 98) X(sched_yield, 24, 124) X(set_robust_list, 273, 99) X(rseq, 334, 293) X(exit, 60, 93)            \
    X(exit_group, 231, 94) X(clone, 56, 220, ARGUMENT(0, ~0u, THREAD)) X(sched_getaffinity, 204, 123)                  \
    X(sched_getparam, 143, 121) X(sched_getscheduler, 145, 120) X(sched_get_priority_max, 146, 125)                    \
    X(sched_get_priority_min, 147, 126) X(getcpu, 309, 168) X(set_tid_address, 218, 96)                                \
    X(prctl, 157, 167, ARGUMENT(0, ~0u, PR_SET_NAME, PR_GET_NAME, 0x53564d41 /* PR_SET_VMA */))                        \
    /* Signals, to itself alone */                                                                                     \
    X(rt_sigaction, 13, 134) X(rt_sigprocmask, 14, 135) X(rt_sigreturn, 15, 139) X(sigaltstack, 131, 132)              \
    X(restart_syscall, 219, 128) X(tgkill, 234, 131, IS_OWN_PROCESS(0))                                                \
    /* Files, for reading */                                                                                           \
    X(openat, 257, 56, ARGUMENT(2, CHANGES, 0)) X(close, 3, 57) X(fstat, 5, 80) X(newfstatat, 262, 79)                 \
    X(statx, 332, 291) X(lseek, 8, 62) X(read, 0, 63) X(pread64, 17, 67) X(readv, 19, 65) X(preadv, 295, 69)           \
    X(getdents64, 217, 61) X(readlinkat, 267, 78) X(faccessat, 269, 48) X(faccessat2, 439, 439) X(getcwd, 79, 17)      \
    X(statfs, 137, 43) X(fstatfs, 138, 44) X(fadvise64, 221, 223) X(readahead, 187, 213) X(umask, 95, 166)             \
    /* Files that it was given */                                                                                      \
    X(write, 1, 64) X(pwrite64, 18, 68) X(writev, 20, 66) X(pwritev, 296, 70) X(ftruncate, 77, 46)                     \
    X(fallocate, 285, 47) X(fsync, 74, 82) X(fdatasync, 75, 83) X(sync_file_range, 277, 84) X(sendfile, 40, 71)        \
    X(dup, 32, 23) X(dup3, 292, 24)                                                                                    \
    /* Neither owners of signals nor locks nor leases */                                                               \
    X(fcntl, 72, 25, ARGUMENT(1, ~0u, F_DUPFD, F_GETFD, F_SETFD, F_GETFL, 1030 /* F_DUPFD_CLOEXEC */))                 \
    X(fcntl, 72, 25, ARGUMENT(1, ~0u, F_SETFL), ARGUMENT(2, 020000 /* O_ASYNC */, 0))                                  \
    X(ioctl, 16, 29, ARGUMENT(1, ~0u, TCGETS, FIONREAD, FIONBIO, FIOCLEX))                                             \
    /* The connection to the plugin, and pairs that wake threads. Other pairs could send to sockets of others. */     \
    X(recvmsg, 47, 212) X(recvfrom, 45, 207) X(sendto, 44, 206, POINTER_IS_NULL(4))                                    \
    X(socketpair, 53, 199, ARGUMENT(0, ~0u, AF_UNIX), ARGUMENT(1, 0xf, SOCK_STREAM))                                   \
    X(eventfd2, 290, 19) X(pipe2, 293, 59) X(ppoll, 271, 73) X(pselect6, 270, 72)                                      \
    /* Time */                                                                                                         \
    X(clock_gettime, 228, 113) X(clock_getres, 229, 114) X(clock_nanosleep, 230, 115) X(nanosleep, 35, 101)            \
    X(gettimeofday, 96, 169)                                                                                           \
    /* What it is and what the machine has */                                                                          \
    X(getpid, 39, 172) X(getppid, 110, 173) X(gettid, 186, 178) X(getuid, 102, 174) X(geteuid, 107, 175)               \
    X(getgid, 104, 176) X(getegid, 108, 177) X(uname, 63, 160) X(sysinfo, 99, 179) X(getrandom, 318, 278)              \
    X(getrusage, 98, 165) X(times, 100, 153) X(prlimit64, 302, 261, ARGUMENT(0, ~0u, 0))

// Older forms of calls above, which only x86-64 has.
#define OLD_CALLS(X)                                                                                                   \
    X(open, 2, -1, ARGUMENT(1, CHANGES, 0)) X(stat, 4, -1) X(lstat, 6, -1) X(access, 21, -1) X(readlink, 89, -1)       \
    X(poll, 7, -1) X(select, 23, -1) X(dup2, 33, -1) X(time, 201, -1) X(getrlimit, 97, -1)

#define ROW(name, x86_64, arm64, ...)                                                                                  \
    {{#name, x86_64, arm64, sizeof((struct check[]){{0}, __VA_ARGS__}) > sizeof(struct check)}, {__VA_ARGS__}},
static const struct row rows[] = {CALLS(ROW) OLD_CALLS(ROW)};
#undef ROW

// The numbers of the machine that this is compiled for.
#if defined(__x86_64__)
#define ASSERTION(name, x86_64, arm64, ...) _Static_assert(SYS_##name == x86_64, #name);
CALLS(ASSERTION) OLD_CALLS(ASSERTION)
#elif defined(__aarch64__)
#define ASSERTION(name, x86_64, arm64, ...) _Static_assert(SYS_##name == arm64, #name);
CALLS(ASSERTION)
#endif

enum { row_count = sizeof rows / sizeof *rows };

const struct isolation_call *isolation_allowed_calls(void) {
    static struct isolation_call calls[row_count + 1];
    for (size_t i = 0; i < row_count; i++) calls[i] = rows[i].call;
    return calls;
}

// MARK: The filter

struct builder {
    struct sock_filter *filter;
    size_t count, room;
};

static void add(struct builder *builder, uint16_t code, uint32_t value, uint8_t yes, uint8_t no) {
    if (builder->count < builder->room)
        builder->filter[builder->count] = (struct sock_filter){code, yes, no, value};
    builder->count++;
}

static void load(struct builder *builder, size_t offset) {
    add(builder, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(struct builder *builder, uint32_t action) { add(builder, BPF_RET | BPF_K, action, 0, 0); }

// The instructions of a check that fails by a jump over `rest` instructions behind it.
static void add_check(struct builder *builder, const struct check *check, uint32_t own, uint8_t rest) {
    // Little endian: the lower half comes first.
    const size_t argument = offsetof(struct seccomp_data, args) + check->argument * sizeof(uint64_t);
    if (check->is_wide) {
        load(builder, argument + sizeof(uint32_t));
        const int masks = check->mask != ~0u;
        add(builder, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint8_t)(1 + masks + check->count + rest));
    }
    load(builder, argument);
    if (check->mask != ~0u) add(builder, BPF_ALU | BPF_AND | BPF_K, check->mask, 0, 0);
    for (uint8_t i = 0; i < check->count; i++) {
        const uint8_t left = (uint8_t)(check->count - 1 - i);
        add(builder, BPF_JMP | BPF_JEQ | BPF_K, check->is_own ? own : check->values[i], left, left ? 0 : rest);
    }
}

static uint8_t size_of(const struct check *check) {
    return (uint8_t)(1 + 2 * check->is_wide + (check->mask != ~0u) + check->count);
}

static void add_row(struct builder *builder, const struct row *row, int number, uint32_t own) {
    if (!row->call.is_checked) {
        add(builder, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
        return answer(builder, SECCOMP_RET_ALLOW);
    }
    uint8_t rest = 0;
    for (int i = 0; i < most_checks; i++) if (row->checks[i].count) rest = (uint8_t)(rest + size_of(&row->checks[i]));
    // The checks, the permission, and the number of the call again, for the next line.
    add(builder, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, (uint8_t)(rest + 2));
    for (int i = 0; i < most_checks; i++) {
        if (!row->checks[i].count) continue;
        rest = (uint8_t)(rest - size_of(&row->checks[i]));
        add_check(builder, &row->checks[i], own, (uint8_t)(rest + 1));
    }
    answer(builder, SECCOMP_RET_ALLOW);
    load(builder, offsetof(struct seccomp_data, nr));
}

size_t isolation_filter(uint32_t machine, uint32_t own, struct sock_filter *filter, size_t room) {
    if (machine != AUDIT_ARCH_X86_64 && machine != AUDIT_ARCH_AARCH64) return 0;
    struct builder builder = {filter, 0, room};
    load(&builder, offsetof(struct seccomp_data, arch));
    add(&builder, BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0);
    // The calls of 32-bit programs have other numbers.
    answer(&builder, SECCOMP_RET_ERRNO | EPERM);
    load(&builder, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < row_count; i++) {
        const int number = machine == AUDIT_ARCH_X86_64 ? rows[i].call.x86_64 : rows[i].call.arm64;
        if (number >= 0) add_row(&builder, &rows[i], number, own);
    }
    // So are those of the x32 ABI.
    add(&builder, BPF_JMP | BPF_JGE | BPF_K, isolation_first_new_call, 0, 1);
    answer(&builder, SECCOMP_RET_ERRNO | ENOSYS);
    answer(&builder, SECCOMP_RET_ERRNO | EPERM);
    return builder.count <= room ? builder.count : 0;
}

long isolation_try(long number, const unsigned long arguments[6]) {
    return syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
