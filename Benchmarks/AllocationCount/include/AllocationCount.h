// Counts the allocations of a program. It replaces the functions of the C library, without preloading or tracing.
#pragma once

/// The number of calls of malloc, calloc, realloc and the aligned functions since the program started. Not thread-safe.
unsigned long allocation_count(void);
