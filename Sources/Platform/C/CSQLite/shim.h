#pragma once
#include <sqlite3.h>

// SQLITE_TRANSIENT tells SQLite to copy the value. The header defines it by a cast, which Swift does not import.
static inline sqlite3_destructor_type shim_transient(void) { return SQLITE_TRANSIENT; }
