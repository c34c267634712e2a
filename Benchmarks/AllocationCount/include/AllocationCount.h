// Counts what a program allocates, by standing in for the C library's functions: nothing is preloaded or traced.
#pragma once

/// Calls of malloc, calloc, realloc and the aligned ones since the program started. For one thread.
unsigned long allocation_count(void);
