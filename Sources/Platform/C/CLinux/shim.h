// Linux headers that Swift's Glibc module does not contain.
#pragma once
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
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
#include <unistd.h>

// prctl is variadic.
static inline int shim_set_parent_death_signal(int signal) { return prctl(PR_SET_PDEATHSIG, signal); }

// The headers define memfd_create only with _GNU_SOURCE.
extern int memfd_create(const char *name, unsigned int flags);
enum { shim_close_on_exec = 1 };

// The headers define fallocate only with _GNU_SOURCE. FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE.
extern int fallocate(int file, int mode, off_t offset, off_t size);
static inline int shim_punch(int file, off_t offset, off_t size) { return fallocate(file, 0x01 | 0x02, offset, size); }

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
