// Starts untrusted programs, and takes rights away from a process that reads untrusted files.
#pragma once
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

// MARK: Starting (start.c)

// What an untrusted program gets. posix_spawn cannot set most of it.
struct isolation_start {
    // The limits of open files.
    struct rlimit files;
    // The limit of private writable memory, in bytes.
    rlim_t memory;
    // Becomes the standard output and the standard error; the standard input is empty. -1: all three are those of this
    // process.
    int output;
    // Whether the program gets a user and a process namespace of its own, if the kernel allows it. Then it ends with
    // all its descendants, and cannot name any other process.
    int has_namespaces;
};

// Starts a program in a new session, and so without a controlling terminal. Returns its process, or -1 with errno.
pid_t isolation_start_program(
    const char *path, char *const arguments[], char *const environment[], const struct isolation_start *start);

// Like fork. The child is in a new session and, if the kernel allows it, in a user and a process namespace of its own.
// It is killed when this process ends.
pid_t isolation_fork(void);

// Whether this process runs with a sanitizer, whose shadow memory is also private writable memory.
int isolation_is_sanitized(void);

// MARK: Taking rights away (isolate.c)

// The parts of the isolation, for a bit mask.
enum isolation_part {
    // The file system is read-only, and there is no network and no memory that other processes share (System V, POSIX
    // message queues).
    isolation_namespaces = 1,
    // All system calls but those in the table are refused.
    isolation_calls = 2,
    // No file can be created, removed or opened for writing, and other processes cannot be inspected (Landlock).
    isolation_files = 4,
};

// Isolates this process for the rest of its life. Must be called before it has a second thread. Returns the parts that
// the kernel supports and allows.
int isolation_isolate(void);

// The parts that a process of this user would have, tried in a child.
int isolation_probe(void);

// Disables core dumps and limits the memory. Not with a sanitizer, which needs more memory.
void isolation_limit(rlim_t memory);

// MARK: System calls (calls.c)

// A system call that an isolated process may use.
struct isolation_call {
    const char *name;
    // Its numbers; -1: the machine does not have it.
    int x86_64, arm64;
    // Whether it is allowed only with some arguments.
    int is_checked;
};

// The calls that are allowed, ended by one without a name. A call that is allowed with different combinations of
// arguments is there several times.
const struct isolation_call *isolation_allowed_calls(void);

// The filter of a machine (AUDIT_ARCH_…) for the process `own`. Returns the number of instructions; 0: the machine is
// unknown, or there is too little room.
size_t isolation_filter(uint32_t machine, uint32_t own, struct sock_filter *filter, size_t room);

// Makes any system call. For tests.
long isolation_try(long number, const unsigned long arguments[6]);

enum {
    // Enough room for the filter.
    isolation_filter_room = 1024,
    // From this number on, calls have the same number on all machines. They are newer than the oldest kernel that the
    // libraries support, so that libraries use older calls if these do not exist: ENOSYS is the answer that they expect.
    // Lower numbers are refused with EPERM.
    isolation_first_new_call = 424,
};
