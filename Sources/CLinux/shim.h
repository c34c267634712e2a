// Linux headers that Swift's Glibc module leaves out.
#pragma once
#include <elf.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

// prctl is variadic.
static inline int shim_set_parent_death_signal(int signal) { return prctl(PR_SET_PDEATHSIG, signal); }

// memfd_create is there for GNU sources alone.
extern int memfd_create(const char *name, unsigned int flags);
enum { shim_close_on_exec = 1 };

// dl_iterate_phdr and its structure are there for GNU sources alone.
struct shim_loaded {
    Elf64_Addr address;
    const char *name;
    const Elf64_Phdr *headers;
    Elf64_Half count;
};
extern int dl_iterate_phdr(int (*each)(void *loaded, size_t size, void *context), void *context);

// Segments that nothing writes to are as they are in their files: what is touched again is mapped again from there.
static inline int shim_unmap_segments(void *each, size_t size, void *context) {
    const struct shim_loaded *loaded = (const struct shim_loaded *)each;
    (void)size, (void)context;
    // A segment with relocations in its text is not as it is in its file.
    for (Elf64_Half i = 0; i < loaded->count; i++)
        if (loaded->headers[i].p_type == PT_LOAD && (loaded->headers[i].p_flags & PF_W)
            && (loaded->headers[i].p_flags & PF_X))
            return 0;
    for (Elf64_Half i = 0; i < loaded->count; i++) {
        const Elf64_Phdr *header = &loaded->headers[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W)) continue;
        uintptr_t start = (loaded->address + header->p_vaddr + 4095) & ~(uintptr_t)4095;
        uintptr_t end = (loaded->address + header->p_vaddr + header->p_memsz) & ~(uintptr_t)4095;
        // Fails for what is no file, such as the kernel's own pages: then they stay.
        if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

static inline void shim_release_heap(void) { malloc_trim(0); }

static inline void shim_release_start_up_memory(void) {
    malloc_trim(0);
    dl_iterate_phdr(shim_unmap_segments, NULL);
}
